#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 1800
# Ranks under MPICH's launcher, Hydra: PMI-1 and PMI-2, by an inherited socket and by a port, on one node and on several.
# --all: all MPI programs of shm, started by Hydra.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
[ "${1:-}" = --all ] && tap_exec bash "$here/../mpi/run-mpi.sh" hydra
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../mrrun/lsan.supp:print_suppressions=0}
export LD_LIBRARY_PATH=$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
client=$BUILD/tests/mrrun/test_launch_client
command -v mpiexec.hydra >/dev/null || { [ -z "${LAB_REQUIRED:-}" ] && skip_all "no mpiexec.hydra (package mpich)"; }

# Hydra dies of SIGPIPE (141) in one of 400 jobs that abort, when a proxy of its own is gone before it writes to it: once more
hydra() {
  local rc=141
  for ((n = 0; n < 3 && rc == 141; n++)); do
    timeout -k 5 60 mpiexec.hydra -launcher fork "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
  done
  return $rc
}
two_nodes=(-hosts 127.0.0.1,127.0.0.2 -ppn 2)
worlds() { sort "$tmp/out" | sed 's/ job [^ ]*//'; }

# ---- who is who
four="rank 0/4 local 0/2 nodes 2 node 127.0.0.1 map 0,0,1,1 peers 0,1
rank 1/4 local 1/2 nodes 2 node 127.0.0.1 map 0,0,1,1 peers 0,1
rank 2/4 local 0/2 nodes 2 node 127.0.0.2 map 0,0,1,1 peers 2,3
rank 3/4 local 1/2 nodes 2 node 127.0.0.2 map 0,0,1,1 peers 2,3"
for protocol in auto pmi1 pmi2; do
  MRMPI_LAUNCHER=$protocol hydra "${two_nodes[@]}" -n 4 "$client"
  is "$protocol: four ranks on two nodes exchange addresses" "$? $(worlds)" "0 $four"
  MRMPI_LAUNCHER=$protocol hydra -pmi-port -n 3 "$client"
  is "$protocol: three ranks connect to a port" "$? $(grep -c '^rank [012]/3 local [012]/3 nodes 1 .* map 0,0,0 ' "$tmp/out")" "0 3"
done
is "ranks of a job know it by one name" "$(grep -o 'job [^ ]*' "$tmp/out" | sort -u | wc -l)" 1
hydra -n 32 "$client"
is "32 ranks" "$? $(grep -c '^rank [0-9]*/32 local' "$tmp/out")" "0 32"
hydra -n 1 "$client"
is "one rank" "$? $(cut -d' ' -f1-4 "$tmp/out")" "0 rank 0/1 local 0/1"

# ---- how jobs end
hydra -n 3 "$client" abort:1:42
is "abort: its code" $? 42
like "rank, code and reason are told" "^mrmpi: rank 1 aborted the job with code 42: told to" "$tmp/err"
hydra -n 3 "$client" late:2:9
is "a code after MPI_Finalize is the job's status" $? 9
hydra -n 3 "$client" kill:1:6
not_ok "a rank that is killed ends the job" test $? -eq 0

# The launcher dies while ranks wait for each other: they must not stay.
mpiexec.hydra -launcher fork -n 2 bash -c "echo \$\$ >>$tmp/pids; exec $client lost $tmp/lost.\$PMI_RANK" >/dev/null 2>&1 &
pid=$!
wait_for 60 grep -q waiting "$tmp/lost.0"
wait_for 60 grep -q waiting "$tmp/lost.1"
kill -9 $pid; wait $pid 2>/dev/null
is "two ranks run" "$(wc -l <"$tmp/pids")" 2
while read -r p; do ok "rank of process $p goes with the launcher" process_gone "$p"; done <"$tmp/pids"

# ---- launchers inside launchers
hydra -n 1 mrrun -n 2 "$client"
is "mrrun inside a rank of Hydra starts its own ranks" "$(cut -d' ' -f1-2 "$tmp/out" | sort | tr '\n' ' ')" "rank 0/2 rank 1/2 "
timeout 60 mrrun -n 1 mpiexec.hydra -launcher fork -n 2 "$client" >"$tmp/out" 2>"$tmp/err"
is "Hydra inside a rank of mrrun, too" "$(cut -d' ' -f1-2 "$tmp/out" | sort | tr '\n' ' ')" "rank 0/2 rank 1/2 "
hydra -n 2 bash -c "exec {PMI_FD}>&-; exec $client"
is "a wrapper that closes PMI_FD makes no jobs of one rank" "$? $(grep -c '^rank' "$tmp/out")" "1 0"
like "launcher, cause and remedy are told" "PMI_FD=[0-9]+ is not an open socket: a program between Hydra's mpiexec and this one.*MRMPI_LAUNCHER=none" "$tmp/out"
hydra -n 2 env MRMPI_LAUNCHER=none "$client"
is "MRMPI_LAUNCHER=none: two processes of their own" "$(cut -d' ' -f1-4 "$tmp/out" | tr '\n' ' ')" "rank 0/1 local 0/1 rank 0/1 local 0/1 "

# ---- MPI programs
mpi() { # WHAT N WORDS...
  local what=$1 n=$2
  shift 2
  hydra "${options[@]}" -n "$n" "$@"
  local rc=$?
  cat "$tmp/out" "$tmp/err" >"$tmp/both"
  is "$what, $n ranks" "$rc $(head -n 5 "$tmp/both")" "0 "
}
export MRMPI_LEAKS=yes
options=()
for p in env comm coll session p2p_sizes p2p_modes threads; do mpi "$p under Hydra" 4 "$BUILD/tests/mpi/$p"; done
mpi "session by the world under Hydra" 2 "$BUILD/tests/mpi/session" world
MRMPI_LAUNCHER=pmi2 mpi "coll under Hydra by PMI-2" 7 "$BUILD/tests/mpi/coll"
for words in "some 3" "launcher pmi" "parts" "tree"; do
  # shellcheck disable=SC2086
  MRMPI_LAUNCHER_TIMEOUT_S=10 mpi "spawn $words: Hydra starts the processes" 2 "$BUILD/tests/mpi/spawn" $words
done
MRMPI_LAUNCHER=pmi2 hydra -n 2 "$BUILD/tests/mpi/spawn" launcher mrrun
is "and mrrun where Hydra is not asked (PMI-2)" $? 0
hydra -n 2 "$BUILD/tests/mpi/session" again
like "MPI that starts again is refused" "Hydra's mpiexec \(PMI-1\) takes a process into its job once" "$tmp/err"
hydra -n 2 "$BUILD/tests/mpi/fatal" abort
not_ok "MPI_Abort ends the job" test $? -eq 0

# ---- the same on two simulated hosts: Hydra's nodes are theirs
cat >"$tmp/on-host" <<'SH'
#!/bin/bash
exec simfab exec h$((PMI_RANK / 2 + 1)) -- "$@"
SH
chmod +x "$tmp/on-host"
cat >"$tmp/sim" <<'SH'
for p in coll p2p_sizes p2p_modes; do
  timeout -k 5 120 mpiexec.hydra -launcher fork -hosts 127.0.0.1,127.0.0.2 -ppn 2 -n 4 "$1/on-host" "$BUILD/tests/mpi/$p" </dev/null >"$1/sim.out" 2>&1
  echo "$p $? $(head -n 3 "$1/sim.out")"
done
MRMPI_STATS=1 MRMPI_LOG_LEVEL=2 timeout 60 mpiexec.hydra -launcher fork -hosts 127.0.0.1,127.0.0.2 -ppn 2 -n 4 "$1/on-host" \
  "$BUILD/tests/mpi/coll" 2>&1 </dev/null | grep -o 'net_sent[ =][0-9]*' | head -n 1
SH
export BUILD
MRMPI_LOG_LEVEL=0 MRMPI_OVERSUBSCRIBED=0 timeout 300 simfab run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- \
  bash "$tmp/sim" "$tmp" >"$tmp/simulated" 2>&1
while read -r p rc rest; do
  [[ $p == net_sent* ]] || is "$p under Hydra on two simulated hosts" "$rc $rest" "0 "
done <"$tmp/simulated"
like "and the network carried it" '^net_sent[ =][1-9]' "$tmp/simulated"
done_testing
