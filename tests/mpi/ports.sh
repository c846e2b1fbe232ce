#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# Jobs that connect to each other (ports.c): on one machine, with and without a launcher; between simulated hosts.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
program=${PORTS_PROGRAM:-$BUILD/tests/mpi/ports} # standard/abi.sh has its own
forbid=$BUILD/tests/libmrmpi/forbid

# job RANKS CASE...; 0 RANKS: a process without launcher. $by: options of mrrun; $under: words before the program, in
# all jobs, or where the case is $one
job() {
  local n=$1
  shift
  # shellcheck disable=SC2086
  if [ "${one:-$1}" = "$1" ]; then set -- ${under:-} "$program" "$@"; else set -- "$program" "$@"; fi
  # shellcheck disable=SC2086
  case $n in
  0) timeout -k 5 100 "$@" ;;
  *) timeout -k 5 100 mrrun ${by:-} -n "$n" "$@" ;;
  esac </dev/null
}

# jobs STATUS "RANKS WORDS"...: at the same time; prints their output, and succeeds if all end well, the last with STATUS
jobs_end() {
  local i=0 want=$1 bad=0 pids=() pid
  shift
  rm -f "$tmp"/port*
  for words; do
    # shellcheck disable=SC2086
    job $words >"$tmp/out.$i" 2>&1 &
    pids+=($!)
    i=$((i + 1))
  done
  for pid in "${pids[@]}"; do
    i=$((i - 1))
    wait "$pid"
    [ $? -eq "$([ $i -eq 0 ] && echo "$want" || echo 0)" ] || bad=1
  done
  cat "$tmp"/out.*
  rm -f "$tmp"/out.*
  return $bad
}
far() { # LINKS WORDS...: jobs_end on the hosts of a fabric
  MRMPI_LINKS=$1 MRMPI_LOG_LEVEL=0 by="--ppn 1" timeout -k 5 300 simfab run --topology "$topology" --model hdr -- \
    bash -c 'jobs_end "$@"; s=$?; exit $s' _ "${@:2}"
}
export tmp program forbid
export -f job jobs_end

ok "halves of a job" job 4 within
ok "names of services, in a job" job 3 names
ok "and without launcher" job 0 names
ok "wrong ports are errors, and so are closed ones" job 2 errors
p=$tmp/port
for sizes in "1 1" "2 3" "4 1" "0 2" "0 0"; do
  read -r a b <<<"$sizes"
  ok "two jobs of $a and $b (0: no launcher), twice" jobs_end 0 "$a serve $p 2" "$b call $p 2"
done
ok "three jobs, two of which have met through the third" jobs_end 0 "2 a $p" "1 b $p" "2 c $p"
ok "a hundred connections in a row leave no descriptor" jobs_end 0 "1 many-serve $p 100" "1 many-call $p 100"
ok "the other job ends: its last messages arrive" jobs_end 0 "2 stay $p" "3 leave $p"
ok "the other job dies: an error, and this job goes on" jobs_end 137 "2 mourn $p" "2 die $p"
ok "a thousand strangers connect, and say nothing" jobs_end 0 "1 crowded $p" "1 call $p 1"
ok "a job is slow with its first words" jobs_end 0 "2 serve $p 1" "3 slow $p"
ok "processes meet over a socket of theirs" jobs_end 0 "1 join $p l" "0 join $p call"

# copies_of WORDS...: the ranks of two jobs, one of them under `forbid WORDS --`, that have read another's memory
copies_of() {
  under="$*" MRMPI_STATS=1 jobs_end 0 "1 serve $p 1" "1 call $p 1" >"$tmp/all" 2>&1 || cat "$tmp/all"
  grep -c shm_single_copy_bytes "$tmp/all"
}
is "on one node receivers read large messages" "$(copies_of)" 2
if "$forbid" process_vm_readv -- true 2>"$tmp/why"; then
  # the leak checker of sanitized builds is a tracer
  [ -z "$(sanitizers)" ] || export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
  is "unless the kernel forbids it" "$(copies_of "$forbid" process_vm_readv --)" 0
  for sizes in "1 1" "2 3"; do
    read -r a b <<<"$sizes"
    under="$forbid process_vm_readv --" ok "jobs of $a and $b ranks that may not" jobs_end 0 "$a serve $p 2" "$b call $p 2"
    under="$forbid process_vm_readv --" one=call ok "jobs of $a and $b ranks, of which one may" jobs_end 0 "$a serve $p 2" "$b call $p 2"
  done
else
  echo "# no seccomp filters: $(cat "$tmp/why")"
fi
MRMPI_SINGLE_COPY=no ok "nor by their settings" jobs_end 0 "1 serve $p 1" "2 call $p 1"
MRMPI_OVERSUBSCRIBED=1 ok "ranks that sleep early" jobs_end 0 "3 serve $p 1" "2 call $p 1"

for links in auto ud; do
  ok "jobs on two hosts ($links)" far $links 0 "2 serve $p 1" "2 call $p 1"
  ok "three jobs on two hosts ($links)" far $links 0 "2 a $p" "2 b $p" "1 c $p"
done
ok "a job on two hosts dies" far auto 137 "2 mourn $p" "2 die $p"
done_testing
