#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 7200
# Programs that go on after the failure of ranks (mrrun --recover): in shared memory, between hosts, over datagrams; ranks
# that die of SIGKILL at random moments. --all: 200 such runs.
. "$(dirname "$0")/../tap.sh"
case ${1:-} in --all) runs=200 stopped=5 rounds=100 ranks=64 all=1 hung=600 ;; *) runs=5 stopped=2 rounds=15 ranks=32 all= hung=90 ;; esac
export hung # real seconds until a job tells what its ranks wait for: 100 rounds have taken 60 s on a busy machine
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
program=$BUILD/tests/mpi/recover

recover() { # RANKS CASE ARGS...: inside this machine, or on the hosts of the fabric around; $by: options of mrrun
  # shellcheck disable=SC2086
  MRMPI_LOG_LEVEL=0 timeout 110 mrrun ${by:-} --recover --timeout $hung -n "$1" "$program" "${@:2}" >"$tmp/out" 2>&1 </dev/null
}
between_hosts() { # COMMAND...
  MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$topology" --model hdr -- "$@"
}
goes_on() { like "it is told of the rank that died" 'was killed by signal 9 .*the job goes on without this rank' "$tmp/out"; }
far() { between_hosts bash -c 'recover "$@"; s=$?; cat "$tmp/out"; exit $s' _ "$@"; }
export tmp program rounds by=
export -f recover

for n in 3 6; do
  ok "$n ranks in shared memory: one dies, the others see the same" recover $n failure
  goes_on
  ok "the first dies" recover $n root
  ok "a revocation reaches ranks that wait in any way" recover $n revoke
  ok "and in windows made from the communicator" recover $n revoked
  ok "and in files opened with it" recover $n revoked-files
  ok "agreements and shrinks in the background" recover $n background
done
for dead in 0 1 3; do
  ok "a rank dies with locks of windows (rank $dead, the last one's parts)" recover 4 windows $dead
done
ok "operations on a window that one rank has not got are errors of the failure" recover 4 abandoned
for dead in 0 1; do
  ok "with files open (rank $dead)" recover 4 files $dead
done
for dead in 0 3; do
  ok "a survivor frees and closes what others still use (rank $dead died)" recover 4 early $dead
done
not_ok "an error with it under MPI_ERRORS_ABORT ends the job" recover 4 abort
like "as an abort" 'rank 0 .*abort' "$tmp/out"
not_ok "and nothing goes on" grep -q "it goes on" "$tmp/out"
ok "ranks die one by one" recover 8 told
# 1 ms on the node and 40 ms between hosts have been measured; without a word of the launcher MRMPI_PATIENCE passes, 60 s.
soon() { awk -v most="$1" '/^told after/ {print; f = $3 < most} END {exit !f}' "$tmp/out"; }
ok "which others on the node soon know" soon 200
# The file and the launcher's event race: on a busy machine a job may have no end that the file tells first.
file_tells() { # COMMAND...: in one of five jobs
  local i
  for i in 1 2 3 4 5; do
    "$@" || return
    [ "$(counted ends_read 0)" -gt 0 ] && return
  done
  return 1
}
by=--stats ok "which the first reads in the launcher's file, before any other news" file_tells recover 8 told
ok "agreements of two groups, one of which loses its leader" recover 5 groups
ok "all but one die" recover 5 all
not_ok "without --recover the job ends" timeout 60 mrrun -n 3 "$program" failure
ok "without a failure nothing differs" recover 4 chaos 1 30 0

for kind in auto ud; do
  export MRMPI_LINKS=$kind
  for case in failure root revoke revoked revoked-files abandoned background groups "windows 0" "windows 1" "windows 2" "windows 3" "files 0" "files 3" "early 0" ${all:+"early 2"}; do
    # shellcheck disable=SC2086
    ok "two hosts ($kind): $case" far 4 $case
  done
  ok "two hosts ($kind): ranks die one by one" far 4 told
  ok "which others soon know" soon 2000
done
unset MRMPI_LINKS
printf '#!/bin/sh\nhost=$1\nshift\nexec simfab exec "$host" -- "$@"\n' >"$tmp/on"
chmod +x "$tmp/on"
for case in failure root; do
  by="--launcher $tmp/on --hosts h1,h2" ok "two hosts with agents: $case" far 4 $case
  goes_on
done
by="--launcher $tmp/on --hosts h1,h2 --stats" ok "two hosts with agents: ranks die one by one" far 4 told
ok "which others soon know" soon 2000
by="--launcher $tmp/on --hosts h1,h2 --stats" ok "which the first reads in the file of its host's agent, before any other news" \
  file_tells far 4 told
by="--launcher $tmp/on --hosts h1,h2" ok "a host dies with its ranks" far 4 host
like "which is told" "host h2: its agent is lost: .*the job goes on without its ranks" "$tmp/out"

# Ranks that live and lose each other: one side is ended, so that all survivors see the same.
cut() {
  simfab fault link "h2 mlx5_0" loss=1 at=50ms
  simfab fault link "h2 mlx5_1" loss=1 at=50ms
  MRMPI_PATIENCE=1 recover 4 cut
  s=$?
  cat "$tmp/out"
  return $s
}
export -f cut
ok "a host that is cut off" between_hosts bash -c cut
like "loses its ranks" "rank 3 .* cannot reach each other: ending rank 3" "$tmp/out"
not_ok "no other rank goes" grep -q "ending rank [01]" "$tmp/out"

# Nobody is taken for dead that lives: stopped for a while, behind rails that lose packets.
ok "a rank that is stopped for $stopped s is not lost" recover 4 calm 1 20 1000 $stopped
for kind in auto ud; do
  MRMPI_LINKS=$kind ok "nor on two hosts ($kind)" far 4 calm 1 20 1000 $stopped
done
lossy() {
  simfab fault link "h2 mlx5_0" loss=0.01 at=0ms
  simfab fault link "h2 mlx5_1" loss=0.01 at=0ms
  recover 4 calm 1 $rounds 0 $stopped
}
export stopped
export -f lossy
for kind in auto ud; do
  ok "nor behind rails that lose 1 % of packets, stopped or not ($kind)" between_hosts env MRMPI_LINKS=$kind bash -c lossy
done

# Survivors check what they agree on, and each message between them.
killed=0 bad=0
for ((seed = 1; seed <= runs; seed++)); do
  recover $((3 + seed % 6)) chaos "$seed" 400 40000 || { bad=$((bad + 1)); sed "s/^/# seed $seed: /" "$tmp/out"; }
  killed=$((killed + $(grep -c 'was killed by signal 9' "$tmp/out")))
done
is "$runs runs with ranks that die at random moments: survivors agree, messages are exact, none hangs" $bad 0
ok "ranks did die ($killed)" test $killed -gt 0

chaos_far() {
  local seed bad=0 killed=0
  for ((seed = 1; seed <= $1; seed++)); do
    recover $((4 + seed % 3)) chaos "$seed" 400 4000 || { bad=$((bad + 1)); sed "s/^/seed $seed: /" "$tmp/out"; }
    killed=$((killed + $(grep -c 'was killed by signal 9' "$tmp/out")))
  done
  echo "$killed were killed"
  [ $bad = 0 ] && [ $killed -gt 0 ]
}
export -f chaos_far
for kind in auto ud; do
  ok "the same on two hosts ($kind), $((runs / 5)) times" env MRMPI_LINKS=$kind \
    timeout 3000 simfab run --topology "$topology" --model hdr -- bash -c "chaos_far $((runs / 5))"
done

# an agreement goes up a tree and down again, as an allreduce does
[ -z "$(sanitizers)" ] || ranks=16 # they take several times as long
export ranks
costs() { recover $ranks costs && awk '/^agree/ {print; exit !($2 <= 3 * $4 && $6 < 20000)}' "$tmp/out"; }
export -f costs
ok "$ranks ranks on two hosts: an agreement takes at most 3 allreduces, a shrink less than 20 ms" \
  between_hosts bash -c costs
done_testing
