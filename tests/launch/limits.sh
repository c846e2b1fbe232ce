#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# No rank waits for a launcher that is gone or silent: each question to the launcher (PMIx; PMI: Hydra) has a limit, and a
# fence asks for signs of life. A rank that comes late is waited for.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/../mrrun/lsan.supp:print_suppressions=0}
limits=$BUILD/tests/launch/limits
export MRMPI_LAUNCHER_TIMEOUT_S=2
run() { timeout 120 mrrun --grace 1 -n 2 "$limits" "$@" >"$tmp/out" 2>"$tmp/err"; }
took() { awk -v least="$1" -v most="$2" '/^[a-z]*: [0-9.]+ s: / {n = 1; s = $2} END {print "took " s " s"; exit !(n && s >= least && s < most)}' "$tmp/out"; }

for operation in put get fence steps; do
  run closed $operation
  like "a connection that has ended, $operation: told" "^$operation: .* mrrun \(PMIx\) has closed its connection to rank 0: it is gone" "$tmp/out"
  ok "at once" took 0 2
  run silent $operation
  like "a silent launcher, $operation: told" "^$operation: .* mrrun \(PMIx\) gave no answer for 2 s \(MRMPI_LAUNCHER_TIMEOUT_S\)" "$tmp/out"
  ok "in time" took 1.5 20
done
run closed init
like "a connection that ends in MPI_Init: told" '^init: .* its PMIx server cannot be reached' "$tmp/out"
run silent init
like "a silent launcher in MPI_Init: told" '^init: .* mrrun \(PMIx\) gave no answer for 2 s \(MRMPI_LAUNCHER_TIMEOUT_S\)' "$tmp/out"
for way in closed silent; do
  run $way abort
  is "a rank that aborts without a launcher ($way) ends with its code" $? 42
done

run late 6
is "a rank that is later than the limit is waited for" "$? $(grep -c 'no error$' "$tmp/out")" "0 2"
ok "as long as it takes" took 11 110
MRMPI_LAUNCHER_TIMEOUT_S=0 run late 1
is "without a limit, too" "$? $(grep -c 'no error$' "$tmp/out")" "0 2"

# ---- PMI
if ! command -v mpiexec.hydra >/dev/null; then
  ok "the same under Hydra # SKIP no mpiexec.hydra (package mpich)" true
  done_testing
fi
hydra() { # Hydra may drop output of a job that is aborted: ranks write it themselves
  : >"$tmp/out"
  OUT=$tmp/out timeout 120 mpiexec.hydra -launcher fork -n 2 sh -c 'exec "$0" "$@" >>"$OUT"' "$limits" "$@" 2>"$tmp/err" </dev/null
}
for operation in get fence steps; do
  hydra stopped proxy $operation
  like "a proxy of Hydra's that is stopped, $operation: told" "^$operation: .* Hydra's mpiexec \(PMI-1\) gave no answer for 2 s \(MRMPI_LAUNCHER_TIMEOUT_S\)" "$tmp/out"
  ok "in time" took 1.5 20
done
hydra stopped mpiexec fence
like "a stopped mpiexec whose proxy lives, fence: told" "^fence: .* Hydra's mpiexec \(PMI-1\) gave no answer for 2 s \(MRMPI_LAUNCHER_TIMEOUT_S\)" "$tmp/out"
hydra late 6
is "Hydra waits for a rank that is later than the limit" "$? $(grep -c 'no error$' "$tmp/out")" "0 2"
ok "as long as it takes" took 11 110
MRMPI_LAUNCHER_TIMEOUT_S=0 hydra late 1
is "without a limit, too" "$? $(grep -c 'no error$' "$tmp/out")" "0 2"
done_testing
