#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Connecting to peers that are slow, cannot, or are many.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
topologies=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies

# job TOPOLOGY MRRUN_ARGUMENTS... [-- SIMFAB_OPTIONS...]
job() {
  local topology=$1 command=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do command+=("$1"); shift; done
  [ $# -gt 0 ] && shift
  timeout -k 5 110 simfab run --topology "$topologies/$topology.net" "$@" -- timeout -k 5 100 mrrun --stats "${command[@]}" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  return $rc
}
export MRMPI_LOG_LEVEL=2

# 15 s, when even 500 requests without an answer would take 8
ok "a rank computes for long before it communicates" \
  env MRMPI_CONNECT_TIMEOUT_MS=1 bash -c "$(declare -f job); tmp=$tmp topologies=$topologies job two-hosts-two-rails -n 2 --hosts h1,h2 $BUILD/tests/mpi/late 15000"
like "it is waited for, and named" 'warning: rank 0 on h1 has not answered the request to connect for 10 s' "$tmp/out"
is "once" "$(grep -c 'has not answered' "$tmp/out")" 1
like "and answers at once when it comes" '^1 of 1 in [0-9]\.. ms' "$tmp/out"
not_ok "who asks for a bound" \
  env MRMPI_CONNECT_TIMEOUT_MS=1 MRMPI_CONNECT_RETRIES=20 bash -c "$(declare -f job); tmp=$tmp topologies=$topologies job two-hosts-two-rails -n 2 --hosts h1,h2 $BUILD/tests/mpi/late 15000"
like "gets it" 'rank 0 on h1 does not answer the request to connect \(21 attempts\)' "$tmp/out"

# four ranks on h1 have eight queue pairs for datagrams, of which four are in reserve, so the adapter has five left for the rank
# on h2: two for each of two ranks, and the third does with one
printf 'hca:\n  max_qp: 13\n' >"$tmp/few.yaml"
export MRMPI_RAILS_MAX=1
not_ok "a peer that has no queue pair left" job two-hosts-two-rails -n 5 --hosts h1,h2 --ppn 4 "$BUILD/tests/mpi/refused" -- --model "$tmp/few.yaml"
like "refuses, with a reason" 'mrmpi\[4@h2\] error: rank 3 on h1 refuses to connect: it has no memory or queue pairs left \(Cannot allocate memory\)' "$tmp/out"
like "its own log has it too" 'mrmpi\[3@h1\] error: no rail leads to rank 4 on h2: Cannot allocate memory' "$tmp/out"
like "at once" '^rank 3 after [0-9] ms: ' "$tmp/out"
like "the program is told there" '^rank 3 is told too: ' "$tmp/out"
unset MRMPI_RAILS_MAX

ok "64 ranks want to connect to one" job eight-hosts-two-rails -n 64 "$BUILD/tests/mpi/late" 0
like "which takes no back-off" '^63 of 63 in [0-9]\.. ms' "$tmp/out"
ok "hardly a request is repeated ($(counted connect_retries))" test "$(counted connect_retries)" -le 10
like "so it is when all connect to all" '^all to all in [0-9]\.. ms' "$tmp/out"
done_testing
