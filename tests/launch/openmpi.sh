#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks under Open MPI's mpirun, which speaks PMIx, and processes that inherited a launcher's variables and nothing else.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../mrrun/lsan.supp:print_suppressions=0}
export LD_LIBRARY_PATH=$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
client=$BUILD/tests/mrrun/test_launch_client
command -v mpiexec.openmpi >/dev/null || { [ -z "${LAB_REQUIRED:-}" ] && skip_all "no mpiexec.openmpi (package openmpi-bin)"; }
# it runs as root when told twice, and takes one machine for as many slots as it has cores
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$tmp
openmpi() { timeout -k 5 60 mpiexec.openmpi --oversubscribe --bind-to none "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }

openmpi -n 3 "$client"
is "three ranks under Open MPI's mpirun" "$? $(grep -c '^rank [012]/3 local [012]/3 nodes 1 .* map 0,0,0 peers 0,1,2' "$tmp/out")" "0 3"
openmpi -n 3 "$BUILD/tests/mpi/coll"
is "a program of collectives" "$? $(cat "$tmp/out")" "0 "
for words in "some 2" "launcher pmix" "tree"; do
  # shellcheck disable=SC2086
  MRMPI_LAUNCHER_TIMEOUT_S=20 openmpi -n 2 "$BUILD/tests/mpi/spawn" $words
  is "spawn $words: mpirun starts the processes" "$? $(cat "$tmp/out")" "0 "
done
openmpi -n 2 env -u PMIX_NAMESPACE "$client"
is "without its PMIx: no jobs of one rank" "$(($? != 0)) $(grep -c '^rank' "$tmp/out")" "1 0"
like "launcher and remedy are told" "Open MPI's mpirun started this process as one of several.*mpiexec.hydra" "$tmp/out"

# What ranks of mrrun find in their environment is nothing by which another launcher takes itself for a rank.
timeout -k 5 60 mrrun -n 1 mpiexec.openmpi --oversubscribe --bind-to none -n 2 "$client" >"$tmp/out" 2>"$tmp/err"
is "Open MPI's mpirun inside a rank of mrrun starts its own ranks" "$? $(cut -d' ' -f1-2 "$tmp/out" | sort | tr '\n' ' ')" "0 rank 0/2 rank 1/2 "

# A job that has ended, and somebody who kept its variables.
mrrun -n 1 env | grep -E '^PMIX_' >"$tmp/stale"
env -S "$(tr '\n' ' ' <"$tmp/stale")" "$client" >"$tmp/out" 2>"$tmp/err"
is "variables of a job that is gone: no job of one rank" "$? $(grep -c '^rank' "$tmp/out")" "1 0"
like "launcher and remedy are told" "mrrun started this process .*its PMIx server cannot be reached: .*MRMPI_LAUNCHER=none" "$tmp/out"
env -S "$(tr '\n' ' ' <"$tmp/stale")" MRMPI_LAUNCHER=none "$client" >"$tmp/out" 2>"$tmp/err"
is "MRMPI_LAUNCHER=none runs it" "$? $(cut -d' ' -f1-2 "$tmp/out")" "0 rank 0/1"
done_testing
