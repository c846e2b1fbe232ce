#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 900
# The algorithms for several nodes, by name and at all sizes, with one, two and four ranks a node; and where nodes have
# unequally many, and other algorithms take their place.
. "$(dirname "$0")/../tap.sh"
if [ -z "${SIMFAB_DIR:-}" ]; then
  simfab topology star --hosts 4 --rails 2 >"$tmp/net" || exit 1
  simfab run --topology "$tmp/net" -- bash "$0"
  exit $?
fi
export MRMPI_LOG_LEVEL=0 MRMPI_LEAKS=yes

run() { # RANKS OPTIONS PROGRAM
  # shellcheck disable=SC2086  # options are words
  timeout -k 5 120 mrrun -n "$1" $2 "$BUILD/tests/mpi/"$3 >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}

export MRMPI_COLL=bcast:two-level,reduce:two-level,allreduce:two-level,reduce_scatter:two-level,allgather:two-level,allgatherv:two-level
for p in coll coll_i coll_init; do
  ok "$p, two nodes, one rank each" run 2 "--ppn 1" $p
  ok "$p, two nodes, two ranks each" run 4 "--ppn 2" $p
  ok "$p, two nodes, four ranks each" run 8 "--ppn 4" $p
done
ok "coll, four nodes, one rank each" run 4 "--ppn 1" coll
ok "coll_node, over four nodes with one rank each: types with holes on some of them" run 4 "--ppn 1" "coll_node world"
ok "coll, four nodes, two ranks each" run 8 "--ppn 2" coll
ok "coll, three nodes, four ranks each" run 12 "--ppn 4" coll
ok "coll, nodes with three ranks and with one" run 4 "--ppn 3" coll
for p in coll_c coll_errors inter_coll nbc ops; do
  ok "$p, three nodes, two ranks each" run 6 "--ppn 2" $p
done
h=hierarchical
export MRMPI_COLL=barrier:$h,bcast:$h,reduce:$h,allreduce:$h,gather:$h,scatter:$h,allgather:$h,alltoall:$h
for p in coll coll_i coll_c coll_errors nbc ops; do
  ok "$p, through memory on two nodes with four ranks each" run 8 "--ppn 4" $p
done
ok "coll, through memory on four nodes with two ranks each" run 8 "--ppn 2" coll
ok "coll_node, over two nodes with four ranks each" run 8 "--ppn 4" "coll_node world"
ok "coll_node, over four nodes with two ranks each" run 8 "--ppn 2" "coll_node world"
ok "coll, through memory on three nodes with four ranks each" run 12 "--ppn 4" coll
ok "coll, through memory but for nodes with three ranks and with one" run 4 "--ppn 3" coll
unset MRMPI_COLL
ok "coll, two nodes with four ranks each, the table's choice" run 8 "--ppn 4" coll
ok "coll, four nodes, two ranks each, the table's choice" run 8 "--ppn 2" coll
done_testing
