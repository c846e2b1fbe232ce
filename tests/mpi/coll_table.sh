#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 300
# The file of MRMPI_COLL_TABLE: rows of it are taken, in their order and for their sizes and ranks; what cannot be read is an
# error; bench/tune writes one that can.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 1
export MRMPI_LOG_LEVEL=1

run() { # RANKS PROGRAM: with $tmp/table
  MRMPI_COLL_TABLE=$tmp/table timeout -k 5 60 mrrun -n "$1" "$BUILD/tests/mpi/$2" >"$tmp/out" 2>&1 </dev/null
}
table() { printf '%s\n' "$@" >"$tmp/table"; }

# coll_node wants its operations to have gone through the memory that ranks share, but those of 0 to 500
table '# nothing' '' 'bcast binomial 8 2 any # a comment'
ok "a table that leaves most as it was" run 4 coll_node
messages=()
for c in barrier:dissemination bcast:binomial reduce:binomial allreduce:doubling gather:linear scatter:linear allgather:ring alltoall:pairwise; do
  messages+=("${c%:*} ${c#*:} any 2 any")
done
table "${messages[@]}"
not_ok "rows for all: none goes through memory" run 4 coll_node
ok "and results are right" run 4 coll
table "${messages[@]/ any 2 any/ any 5 any}"
ok "rows for more ranks are not taken" run 4 coll_node
table "${messages[@]/ any 2 any/ any 2 3}"
ok "nor those for fewer" run 4 coll_node
usual=()
for c in barrier bcast reduce allreduce gather scatter allgather alltoall; do usual+=("$c usual any 2 any"); done
table "${usual[@]}" "${messages[@]}"
ok "the first that fits is taken, the usual choice too" run 4 coll_node

# what has a part for each rank: short operations go through memory unless a row says otherwise
through() { # operations of rank 0 that do
  table "$@"
  MRMPI_LOG_LEVEL=2 MRMPI_STATS=1 run 4 coll_parts && sed -n 's/.*\[0@.*coll_node=\([0-9]*\).*/\1/p' "$tmp/out"
}
all=$(through '# the usual')
for c in allgatherv:ring reduce_scatter:pairwise scan:doubling; do
  some=$(through "${c%:*} ${c#*:} any 2 any")
  ok "${c%:*}: by messages where a row says so, $some of $all operations are left" test "${some:-$all}" -lt "${all:-0}"
done

# a nonblocking one has no shared memory, for which the usual rules ask before they spread
sent() { # messages of rank 0
  table "$@"
  MRMPI_LOG_LEVEL=2 MRMPI_STATS=1 run 4 coll_i && sed -n 's/.*\[0@.*eager_sent=\([0-9]*\).*/\1/p' "$tmp/out"
}
spread=$(sent 'alltoall spread any 2 any') bruck=$(sent 'alltoall bruck any 2 any')
ok "alltoall: spread has other messages than bruck: $spread, $bruck" test "${spread:-0}" -gt "${bruck:-99999}"
is "and is taken where it is the first" "$(sent 'alltoall spread any 2 any' 'alltoall bruck any 2 any')" "$spread"

for bad in 'bcast ring any 2 any' 'bcast binomial 8k 2 any' 'bcast binomial 8 2' 'bcast binomial 8 2 any more' 'cast binomial 8 2 any' \
  'bcast binomial -1 2 any' 'bcast binomial 8 99999999999 any'; do
  table 'bcast binomial 8 2 any' "$bad"
  not_ok "an error: $bad" run 2 coll
  like "its line is named" 'table:2: not "COLLECTIVE ALGORITHM' "$tmp/out"
done
rm "$tmp/table"
not_ok "no file: an error" run 2 coll
like "which says so" 'MRMPI_COLL_TABLE' "$tmp/out"

tune() { RANKS="2 3" RUNS=1 COLLS="barrier bcast allreduce" BYTES="8 4096 65536" bash bench/tune >"$tmp/table"; }
ok "bench/tune measures" tune
ok "a row for each collective and number of ranks at least" test "$(grep -c '^[a-z]* .* any \+[23] ' "$tmp/table")" -eq 6
ok "the library reads it" run 3 coll
done_testing
