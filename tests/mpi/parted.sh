#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that others wait for have called MPI_Finalize, or the network to some members of a communicator has gone, and the
# rest has seen that in an earlier operation and left, or computes. All who wait are told by an error, soon.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

# result TEXT RANKS: so many waited, and were told within 3 s
result() {
  sed 's/^/# /' "$tmp/out"
  is "$1" "$(grep -cE '^rank [0-9]+: [1-9][0-9]* errors within [0-3] s$' "$tmp/out")" "$2"
}
for n in 2 4; do
  timeout -k 5 60 mrrun -n $n "$BUILD/tests/mpi/parted" ends >"$tmp/out" 2>&1 </dev/null
  result "$n ranks of a node: the odd ones end" $((n / 2))
done

# far WHAT [FAULT]: over a network that fails 60 ms after its beginning
far() {
  local faults=
  [ $# -lt 2 ] || faults="simfab fault link 'h1 *' 1 $2 at=60ms; simfab fault link 'h2 *' 1 $2 at=60ms;"
  MRMPI_PATIENCE=1 MRMPI_RAILS_MAX=1 MRMPI_RC_TIMEOUT=12 MRMPI_RC_RETRY=2 timeout -k 5 120 \
    simfab run --topology "$topology" --model "${model:-sdr-pcix}" -- bash -c "$faults exec timeout -k 5 90 mrrun -n 4 --ppn 2 '$BUILD/tests/mpi/parted' $1" \
    >"$tmp/out" 2>&1 </dev/null
}
far ends
result "two ranks on each of two hosts: the odd ones end" 2
model=hdr far late
result "one that has announced a receive, and is told, has its memory for itself" 2
far lost loss=1
result "the network goes; the odd ones have seen it in another operation, and end" 2
far stays loss=1
result "they compute instead" 2
done_testing
