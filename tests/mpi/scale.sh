#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many ranks, each with few connections: all exchange messages with all, no rank ever has more connections than its budget, and
# peers that are reached by datagrams cost little, ranks that are not talked to next to nothing. (scale_1024.sh goes further.)
# timeout: 300
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/silent.sh"
export MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 MRMPI_SRQ_DEPTH=128

network() { simfab topology star --hosts "$1" --radix 144 >"$tmp/$1.net"; } # HOSTS
job() { # HOSTS RANKS PROGRAM ARGS...
  local hosts=$1 ranks=$2
  shift 2
  timeout -k 5 250 simfab run --topology "$tmp/$hosts.net" -- timeout -k 5 240 mrrun -n "$ranks" --stats "$BUILD/tests/$1" "${@:2}" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  [ $rc = 0 ]
}
heap_within() { # BYTES: of memory of the process for each peer of another host, by the program's own account
  local bytes
  bytes=$(sed -n 's/^[0-9]* ranks: .* \([0-9]*\) bytes more for each of .*/\1/p' "$tmp/out")
  ok "a peer that is reached by datagrams takes $bytes bytes of the heap (at most $1)" test "${bytes:-0}" -gt 0 -a "${bytes:-0}" -le "$1"
}
each() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n; } # COUNTER: of the ranks that have counted something
most() { each "$1" | tail -n 1; }
within_budget() { # RANKS PEERS HOSTS
  is "no rank has ever had more than $2 connections (most: $(most connections_most))" \
    "$(each connections_most | awk -v most="$2" '$1 > most' | wc -l)" 0
  ok "$1 ranks have counted their queue pairs: at most $(most queue_pairs_most), two for each connection, two for datagrams, two guards of each other host" \
    test "$(each queue_pairs_most | wc -l) $(($(most queue_pairs_most) <= 2 * $2 + 2 + 2 * ($3 - 1)))" = "$1 1"
  not_ok "nobody complains, nothing is left over" grep -qE 'warning: (rank|leak)|leak:|error:' "$tmp/out"
}

network 16
ranks=64
[ -z "$(sanitizers)" ] || ranks=32 # they take several times as long
export MRMPI_RC_PEERS=16 # which makes MRMPI_LINKS=auto rc,ud
ok "$ranks ranks, all to all, connections first" job 16 $ranks mpi/many
within_budget $ranks 16 16
ok "all have connections" test "$(each connections_most | wc -l) $(each connections_most | head -n 1)" = "$ranks 16"
ok "some were refused ($(each refused | awk '{n += $1} END {print n + 0}')): what goes there goes by datagrams" test "$(most acks_carried)" -gt 0
if [ -z "$(sanitizers)" ]; then
  ok "48 ranks, an odd number on each host" job 16 48 mpi/many
  within_budget 48 16 16
fi
export MRMPI_LINKS=ud,rc MRMPI_RC_PEERS=4
ok "$ranks ranks, datagrams first" job 16 $ranks mpi/many 2
is "no connection is made for packets that would not use it" "$(each connections_most)" ""
[ -n "$(sanitizers)" ] || heap_within 4608
[ -z "$(sanitizers)" ] || { done_testing; exit; } # which have memory of their own

network 48
export MRMPI_LINKS=rc,ud
job 16 32 libmrmpi/footprint; footprint_of few
job 48 96 libmrmpi/footprint; footprint_of many
silent_within 64 64
done_testing
