#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# MRMPI_RULES: messages take the kinds of links that rules say, connections are opened for those whose rules want them, and a
# text that is wrong ends MPI_Init with the place.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LINKS=rc,ud MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1

job() { # RANKS PROGRAM ARGS...: on two hosts
  local ranks=$1
  shift
  timeout -k 5 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- \
    timeout -k 5 50 mrrun -n "$ranks" --stats "$BUILD/tests/mpi/$1" "${@:2}" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  [ $rc = 0 ]
}
acks() { echo $(($(counted acks_sent) + $(counted acks_carried))); }
no_leak() { not_ok "nothing is left over" grep -q 'leak:' "$tmp/out"; }

ok "without rules" job 2 p2p_ring
is "connections carry all: nothing is acknowledged" "$(acks)" 0

export MRMPI_RULES='any: ud'
ok "all by datagrams" job 4 coll
is "no connection is opened, not even for large messages" "$(most connections_most) $(counted net_stripes)" " 0"
ok "all is acknowledged ($(acks))" test "$(acks)" -gt 0
no_leak

export MRMPI_RULES='eager size<=1K: ud; any: rc'
ok "short messages by datagrams, all else over connections" job 4 coll
ok "both have been used ($(acks) acknowledgements, $(counted net_stripes) parts)" test "$(acks)" -gt 0 -a "$(counted net_stripes)" -gt 0
no_leak

export MRMPI_RULES='rdma size<=32K: ud; any: rc'
ok "large messages of up to 32K in packets" job 4 coll
few=$(counted net_stripes)
unset MRMPI_RULES
ok "without that rule" job 4 coll
ok "more go by RDMA ($few, then $(counted net_stripes))" test "$few" -gt 0 -a "$few" -lt "$(counted net_stripes)"

export MRMPI_RULES='control|eager|piece count>=1000000: rc; rdma: rc; any: ud'
ok "connections for ranks of many messages" job 2 p2p_ring
is "few are not enough" "$(most connections_most)" ""
export MRMPI_RULES='control|eager|piece count>=20: rc; any: ud'
ok "sooner" job 2 failover 6 true
is "each rank has one" "$(most connections_most)" 1
no_leak

printf '# for tests\nclass=nobody: rc\n  any: ud\n' >"$tmp/rules"
export MRMPI_RULES=@$tmp/rules
ok "rules of a file" job 2 p2p_ring
is "are used: no connection" "$(most connections_most)" ""
printf 'any: ud\neager size<=2Q: rc\n' >"$tmp/rules"
# The first rank that fails may end the job before the others have read them.
not_ok "rules that cannot be read end the job" job 4 p2p_ring
like "with the place" 'error: MRMPI_RULES: line 2, column 13: not a number' "$tmp/out"
is "no host twice" "$(sed -n 's/.*\[[0-9]*@\(h[12]\)\].*line 2, column 13.*/\1/p' "$tmp/out" | sort | uniq -d)" ""
export MRMPI_RULES=@$tmp/none
not_ok "so does a file that is not there" job 2 p2p_ring
like "by name" "error: MRMPI_RULES=@$tmp/none cannot be read: No such file" "$tmp/out"
export MRMPI_RULES='eager: uc,ud; any: rc'
ok "a kind that is not allowed is passed over" job 2 p2p_ring
like "which is said" 'warning: MRMPI_RULES names uc, which MRMPI_LINKS=rc,ud does not allow' "$tmp/out"
done_testing
