#!/usr/bin/env bash
# NPmpich2, as Debian ships it, between two hosts of the laboratory: over one rail, over two, and where its bytes went.
# timeout: 300
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 'netpipe 250: bash tests/rxe/netpipe.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
export MRMPI_LOG_LEVEL=0

interfaces=(a0 b0 a1 b1 lo)
count() { local i; for i in "${interfaces[@]}"; do wire_bytes $i; done; }
# netpipe HOSTS ARGS: its output in $tmp/np; bytes sent by each interface meanwhile in sent[]
netpipe() {
  local hosts=$1 i before after
  shift
  mapfile -t before < <(count)
  timeout 120 mrrun -n 2 --hosts "$hosts" NPmpich2 -o "$tmp/np.out" "$@" >"$tmp/np" 2>&1
  local rc=$?
  mapfile -t after < <(count)
  declare -gA sent
  for i in "${!interfaces[@]}"; do sent[${interfaces[i]}]=$((after[i] - before[i])); done
  for i in "${interfaces[@]}"; do echo "# $i sent ${sent[$i]} bytes"; done
  return $rc
}
sizes() { grep -c ' times --> ' "$tmp/np"; }

netpipe a=rxa0,b=rxb0 -l 1 -u 65536 -p 0 -n 10
is "NPmpich2 over one rail" $? 0
is "every size was measured" "$(sizes)" 32
ok "both ends of rail 0 sent at least what the program did" test "${sent[a0]}" -gt 1300000 -a "${sent[b0]}" -gt 1300000
ok "rail 1 and the loopback sent next to nothing" test "${sent[a1]}" -lt 10000 -a "${sent[b1]}" -lt 10000 -a "${sent[lo]}" -lt 100000

netpipe a=rxa0+rxa1,b=rxb0+rxb1 -l 1048576 -u 1048576 -p 0 -n 6
is "NPmpich2 over two rails" $? 0
share=$((sent[a0] * 100 / (sent[a0] + sent[a1])))
ok "a large message goes half over each rail ($share %)" test $share -ge 45 -a $share -le 55
ok "the loopback sent next to nothing" test "${sent[lo]}" -lt 100000
done_testing
