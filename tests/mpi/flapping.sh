#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The links of a rail break and are opened again, 1,000 times: nothing is lost, and nothing leaks.
# timeout: 3000
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
times=${1:-1000}

# each round that is a multiple of three and one has a loss, long enough that the adapters give up, and then a rest, long
# enough that the links are open again and count as steady
PAUSE_MS=400 MOST_BYTES=40000 MRMPI_LEAKS=yes MRMPI_RC_TIMEOUT=8 MRMPI_RC_RETRY=1 MRMPI_LOG_LEVEL=1 timeout -k 5 2900 \
  simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- mrrun -n 2 --ppn 1 --stats \
  "$BUILD/tests/mpi/failover" $((3 * times)) "simfab fault link 'h2 mlx5_0' 1 loss=1 for=60ms" >"$tmp/out" 2>&1 </dev/null
rc=$?
counted() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n | head -n 1; } # COUNTER: the least of a rank
is "all messages are right" "$rc $(grep -c "^$((3 * times)) rounds, 0 errors" "$tmp/out")" "0 1"
ok "each rank has seen links break ($(counted broken)) and opened them again ($(counted reopened))" \
  test "$(counted broken)" -ge $((times * 9 / 10)) -a "$(counted reopened)" -ge $((times * 9 / 10))
is "room of completion queues, queue pairs, packets and memory are given back" "$(grep 'leak:' "$tmp/out")" ""
done_testing
