#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Connections within a budget: those that deserve them have them, others are closed, and nothing is lost meanwhile. --all: with
# more than old adapters carry.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LINKS=rc,ud MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=0

net=$root/etc/topologies/two-hosts-two-rails.net model=
job() { # RANKS PROGRAM ARGS...: on two hosts
  local ranks=$1
  shift
  timeout -k 5 100 simfab run --topology "$net" ${model:+--model "$model"} -- \
    timeout -k 5 90 mrrun -n "$ranks" --ppn $(((ranks + 1) / 2)) --stats "$BUILD/tests/mpi/$1" "${@:2}" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  [ $rc = 0 ]
}
no_leak() { not_ok "nothing is left over" grep -q 'leak:' "$tmp/out"; }

export MRMPI_RC_PEERS=1 MRMPI_RC_AFTER=5
ok "collectives of 12 ranks, each with one connection at a time" job 12 coll
ok "and one more for a moment, if one was promised and then closed (most: $(most connections_most))" test "$(most connections_most)" -le 2
ok "connections were closed for others ($(counted evicted))" test "$(counted evicted)" -gt 0
ok "what they do not reach went by datagrams ($(counted acks_carried) acknowledgements)" test "$(counted acks_carried)" -gt 0
no_leak
ok "messages of many sizes in any order" job 4 p2p_sizes
no_leak
ok "contents and order, two pairs" job 4 failover 6 true
like "are right" '^6 rounds, 0 errors' "$tmp/out"
no_leak

export MRMPI_RC_AFTER=1000000
ok "few messages are worth no connection" job 2 p2p_ring
is "and open none" "$(counted reopened)" 0
ok "a large one is" job 2 failover 2 true
ok "and has its connection at once ($(counted net_stripes) parts by RDMA)" test "$(counted net_stripes)" -gt 0

unset MRMPI_RC_AFTER
export MRMPI_RC_PEERS=128
ok "with room for all" job 4 coll
is "nobody goes by datagrams" "$(counted acks_sent) $(counted evicted)" "0 0"

# by what the adapters serve at their full rate: 128 queue pairs for 12 ranks
unset MRMPI_RC_PEERS MRMPI_LINKS
held() { sed -n 's/.* connections_most=\([0-9]*\).*/\1/p' "$tmp/out" | sort | uniq -c | xargs; } # RANKS HAVE, ...
model=ddr-connectx
ok "24 ranks over old adapters" job 24 inter_coll
is "each has as many connections as its part of them" "$(held)" "24 10"
no_leak
# packets wait for milliseconds there: connections are taken for dead, and what went as datagrams comes again over others
if [ "${1:-}" = --all ]; then
  ok "24 ranks with more than old adapters carry" job 24 nbc
  no_leak
fi
model=hdr
ok "24 ranks over current adapters" job 24 inter_coll
is "which have room for all" "$(counted acks_sent) $(held)" "0 "
model= net=$tmp/mixed.net
sed '/^caguid=0x2c900000010/i devid=0x634a' "$root/etc/topologies/two-hosts-two-rails.net" >"$net"
ok "old adapters on one host" job 24 inter_coll
is "whose peers have connections to all of its ranks" "$(held)" "12 12"
no_leak
done_testing
