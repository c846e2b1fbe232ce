#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scale.sh with more ranks: 256 of which each talks to all others, and 1,024, on 16 hosts, of which each talks to 64 others, near
# and far, and in collectives and a ring. About 14 GB of memory.
# timeout: 3600
# alone
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/silent.sh"
export MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 MRMPI_SRQ_DEPTH=128 MRMPI_RC_PEERS=16

job() { # RANKS ARGS...: many on 16 hosts
  local ranks=$1
  shift
  timeout -k 5 1200 simfab run --topology "$tmp/net" -- timeout -k 5 1190 mrrun -n "$ranks" --stats "$BUILD/tests/mpi/many" "$@" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  [ $rc = 0 ]
}
each() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n; } # COUNTER
heap_within() { # BYTES: of memory of the process for each peer of another host, by the program's own account
  local bytes
  bytes=$(sed -n 's/^[0-9]* ranks: .* \([0-9]*\) bytes more for each of .*/\1/p' "$tmp/out")
  ok "a peer that is reached by datagrams takes $bytes bytes of the heap (at most $1)" test "${bytes:-0}" -gt 0 -a "${bytes:-0}" -le "$1"
}
within_budget() { # RANKS
  is "no rank has ever had more than 16 connections" "$(each connections_most | awk '$1 > 16' | wc -l)" 0
  is "$1 ranks have counted their queue pairs" "$(each queue_pairs_most | wc -l)" "$1"
  ok "at most $(each queue_pairs_most | tail -n 1), two for each connection, two for datagrams, two guards of each other host" \
    test "$(each queue_pairs_most | tail -n 1)" -le 64
  not_ok "nobody complains, nothing is left over" grep -qE 'warning: (rank|leak)|leak:|error:' "$tmp/out"
}
simfab topology star --hosts 16 >"$tmp/net"
export MRMPI_LINKS=rc,ud
ok "256 ranks, all to all" job 256
within_budget 256
export MRMPI_LINKS=ud,rc
ok "256 ranks, datagrams first" job 256
within_budget 256
heap_within 5120 # of 1,024 ranks, 960 of them on other hosts: at most 4.7 MiB in each if all talk to all
export MRMPI_LINKS=rc,ud
ok "1,024 ranks" job 1024 1 64
within_budget 1024

for hosts in 64 512; do # a rank each
  simfab topology fat-tree --hosts "$hosts" >"$tmp/net"
  ok "$hosts hosts" eval "timeout -k 5 1200 simfab run --topology '$tmp/net' -- mrrun -n $hosts '$BUILD/tests/libmrmpi/footprint' >'$tmp/out' 2>&1 </dev/null"
  footprint_of "$([ "$hosts" = 64 ] && echo few || echo many)"
done
silent_within 64 448
done_testing
