#!/usr/bin/env bash
# NPmpich2, as Debian ships it, between two hosts of the laboratory: over one rail, over two, and where its bytes went.
# timeout: 300
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 280 'netpipe 250: bash tests/rxe/netpipe.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
. "$(dirname "$0")/wires.sh"
export MRMPI_LOG_LEVEL=0

# netpipe RAILS ARGS: its output in $tmp/job, what each interface sent meanwhile in sent[]
netpipe() {
  local rails=$1
  shift
  wires_of timeout 120 mrrun -n 2 --hosts "$(hosts "$rails")" NPmpich2 -o "$tmp/np.out" "$@"
}
sizes() { grep -c ' times --> ' "$tmp/job"; }

netpipe 1 -l 1 -u 65536 -p 0 -n 4
is "NPmpich2 over one rail" $? 0
is "every size was measured" "$(sizes)" 32
ok "both ends of rail 0 sent at least what the program did" test "${sent[a0]}" -gt 1300000 -a "${sent[b0]}" -gt 1300000
ok "rail 1 and the loopback sent next to nothing" test "${sent[a1]}" -lt 10000 -a "${sent[b1]}" -lt 10000 -a "${sent[lo]}" -lt 100000

# equal rails: so slow that the processor is out of the way
ok "both rails carry 2 MB/s" wires_shape 2 2
netpipe 2 -l 262144 -u 262144 -p 0 -n 3
is "NPmpich2 over two rails" $? 0
share=$((sent[a0] * 100 / (sent[a0] + sent[a1])))
ok "a large message goes half over each rail ($share %)" test $share -ge 40 -a $share -le 60
ok "both rails sent all of it (${sent[a0]} and ${sent[a1]} bytes)" test $((sent[a0] + sent[a1])) -gt 6000000
ok "the loopback sent next to nothing" test "${sent[lo]}" -lt 100000
wires_shape
done_testing
