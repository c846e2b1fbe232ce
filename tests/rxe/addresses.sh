#!/usr/bin/env bash
# Which GID is used, by default and as MRMPI_ROCE_GID asks, and which traffic class a service level becomes: as the library
# says it, and as the wire has it.
# timeout: 300
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 280 'addresses 250: bash tests/rxe/addresses.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
. "$(dirname "$0")/wires.sh"
export MRMPI_LOG_LEVEL=2
job() { wires_of timeout 100 mrrun -n 2 --hosts "$(hosts 1)" "$@"; }
much() { [ "$1" -gt 200000 ]; }
long=1
[ "${2:-}" = short ] && long=
sizes=(NPmpich2 -o "$tmp/np" -l 1 -u 32768 -p 0 -n $((long ? 3 : 1)))
little() { [ "$1" -lt 2000 ]; }

wires_sort a0 || echo "# no queues on a0"
job "${sizes[@]}"
is "a job with the default addresses" $? 0
like "host a takes its IPv4 GID of RoCE v2" 'rxa0 port 1: GID [0-9]+, ::ffff:10\.0\.0\.1, RoCE v2$' "$tmp/job"
like "so does host b" 'rxb0 port 1: GID [0-9]+, ::ffff:10\.0\.0\.2, RoCE v2$' "$tmp/job"
ok "all went by IPv4, in class 0 ($(wires_class a0 4 0) bytes)" much "$(wires_class a0 4 0)"
ok "nothing by IPv6 ($(wires_class a0 6 0))" little "$(wires_class a0 6 0)"

if [ -n "$long" ]; then
  job -x MRMPI_ROCE_GID=roce-v1 "${sizes[@]}"
  not_ok "a version that the port does not have: no job" test $? -eq 0
  like "it says so" 'rx[ab]0 port 1 is not used: none of its [0-9]+ GIDs is as MRMPI_ROCE_GID=roce-v1 wants it' "$tmp/job"
  job bash -c '[ "$PMIX_RANK" = 1 ] && export MRMPI_ROCE_GID=ipv6; exec "$@"' - "${sizes[@]}"
  rc=$?
  not_ok "one host with IPv4, one with IPv6: no job" test $rc -eq 0 -o $rc -eq 124
  like "it says why" 'no rail leads to rank [01] on .*no kind of GID' "$tmp/job"
fi

# ---- service levels
mkfifo "$tmp/stop"
"$BUILD/tests/rxe/levels" "$tmp/levels.sock" 3 5 <"$tmp/stop" >"$tmp/levels.out" &
server=$!
exec 7>"$tmp/stop"
wait_for 60 grep -q ready "$tmp/levels.out"
export MRMPI_FABRICD_SOCKET=$tmp/levels.sock
classes() { # 4|6: what must be where when small messages are on level 3 and large ones on 5
  ok "IPv$1: large messages are of class selector 5 ($(wires_class a0 "$1" 5) bytes)" much "$(wires_class a0 "$1" 5)"
  ok "IPv$1: small ones are of class selector 3 ($(wires_class a0 "$1" 3))" test "$(wires_class a0 "$1" 3)" -gt 2000
  ok "IPv$1: nothing is of class 0 ($(wires_class a0 "$1" 0))" little "$(wires_class a0 "$1" 0)"
}
for family in 6 ${long:+4}; do
  wires_sort a0
  job -x MRMPI_ROCE_GID=ipv$family "${sizes[@]}"
  is "a job of a class, by IPv$family" $? 0
  like "it is told its levels" 'service level 3 for small messages, 5 for large ones' "$tmp/job"
  classes $family
  [ $family = 6 ] || continue
  like "host a takes the IPv6 address that is not the link's own" 'rxa0 port 1: GID [0-9]+, fd00::1, RoCE v2$' "$tmp/job"
  by_4=0
  for n in 0 1 2 3 4 5 6 7; do by_4=$((by_4 + $(wires_class a0 4 $n))); done
  ok "nothing went by IPv4 ($by_4)" little $by_4
  index=$(sed -n 's/.*rxa0 port 1: GID \([0-9]*\),.*/\1/p' "$tmp/job")
done
wires_unsort a0
exec 7>&-
wait $server

if [ -n "$long" ]; then
  unset MRMPI_FABRICD_SOCKET
  job -x MRMPI_ROCE_GID="$index" "${sizes[@]}"
  is "a job with an index" $? 0
  like "it is that entry" "rxa0 port 1: GID $index, fd00::1, RoCE v2$" "$tmp/job"
  job -x MRMPI_ROCE_GID=ipv5 "${sizes[@]}"
  like "a value that is none" 'MRMPI_ROCE_GID=ipv5 is neither an index .* nor words' "$tmp/job"
fi
done_testing
