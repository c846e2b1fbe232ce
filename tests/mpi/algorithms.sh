#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every algorithm of every collective, at all sizes and several numbers of ranks: the setting MRMPI_COLL and the programs of
# the collectives.
. "$(dirname "$0")/../tap.sh"

run() { # RANKS ALGORITHMS
  MRMPI_COLL=$2 timeout -k 5 100 mrrun -n "$1" "$BUILD/tests/mpi/coll" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}

first=bcast:binomial,reduce:binomial,allreduce:doubling,gather:binomial,scatter:binomial,allgather:bruck,allgatherv:spread
first+=,alltoall:bruck,reduce_scatter:pairwise
second=bcast:scatter-allgather,reduce:ring,allreduce:ring,gather:linear,scatter:linear,allgather:ring,allgatherv:ring
second+=,alltoall:pairwise,reduce_scatter:spread,scan:doubling
for n in 1 2 3 6 8; do
  ok "the first of each, $n ranks" run $n $first
  ok "the second of each, $n ranks" run $n $second
done
for n in 2 3 5 8; do
  ok "the third of each, $n ranks" run $n barrier:spread,bcast:linear,reduce:linear,alltoall:spread,allreduce:halving,allgather:spread
  ok "the fourth of each, $n ranks" run $n barrier:dissemination,allreduce:spread
done
node=barrier:node,bcast:node,reduce:node,allreduce:node,gather:node,scatter:node,allgather:node,alltoall:node
node+=,allgatherv:node,reduce_scatter:node,scan:node
for n in 1 2 3 5 8 9; do
  ok "through memory that all share, $n ranks" run $n $node
done
ok "a barrier by messages" run 4 barrier:dissemination
ahead() {
  timeout -k 5 60 taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')" mrrun -n "$1" "$BUILD/tests/mpi/coll_ahead" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}
for n in 2 4 9; do
  ok "$n ranks on a core get far ahead of each other in short operations" ahead $n
done
mad() { timeout -k 5 60 mrrun -n "$1" "$BUILD/tests/mpi/coll_node" mad >"$tmp/out" 2>&1 </dev/null; }
for n in 2 5; do
  ok "nonsense in the memory that $n ranks share is an error, on that communicator only" mad $n
  like "said once for each who sees it" 'has written an impossible number into the shared memory of a communicator' "$tmp/out"
done
MRMPI_COLL=bcast:ring,allreduce:ring,nothing mrrun -n 2 "$BUILD/tests/mpi/pmpi" >"$tmp/out" 2>&1
is "what does not exist is warned about, once each" "$(grep -c 'MRMPI_COLL: there is no' "$tmp/out")" 2
like "by name" 'there is no bcast:ring' "$tmp/out"
done_testing
