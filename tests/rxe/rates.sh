#!/usr/bin/env bash
# What two rails give beside one where the rails, not the processor, are the limit: rails of equal rate, and a fast one
# with a slow one.
# timeout: 600
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 580 'rates 550: bash tests/rxe/rates.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
export MRMPI_LOG_LEVEL=0

# seconds BYTES COUNT: for one message, one way, to $time, the best of several, for the processor may have other work;
# bytes that a0 and a1 sent, to $sent0 and $sent1
seconds() {
  local before0 before1
  before0=$(wire_bytes a0) before1=$(wire_bytes a1)
  timeout 100 mrrun -n 2 --hosts a=rxa0+rxa1,b=rxb0+rxb1 "$BUILD/tests/rxe/pair" latency:$1:$2 >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
  sent0=$(($(wire_bytes a0) - before0)) sent1=$(($(wire_bytes a1) - before1))
  time=$(awk '{print $4 / 1e6}' "$tmp/out")
  echo "# $time s, $sent0 and $sent1 bytes"
}
# gain FAST SLOW COUNT: COUNT messages over two rails of so many kB/s beside the least time that the limit lets one of the fast
# ones take (4096 of 4178 bytes of a packet are data, and what it has saved up goes at once), to $gain; rail 0's part in %, to
# $share. No noise makes the gain larger: even two perfect rails of the same rate come to 2.16 of this.
gain() {
  local bytes=$(($1 > 2000 ? 524288 : 131072)) saved=$(($1 * 4 > 9000 ? $1 * 4 : 9000))
  rail_limit 0 "$1" && rail_limit 1 "$2" && seconds $bytes "$3" || return 1
  gain=$(awk -v n="$bytes" -v s="$saved" -v r="$1" -v b="$time" 'BEGIN {printf "%.2f", (n * 4178 / 4096 - s) / (r * 1000) / b}')
  share=$((100 * sent0 / (sent0 + sent1)))
}
between() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN {exit !(v >= a && v <= b)}' || { echo "$1, wanted $2 to $3"; return 1; }; }
fits() { between "$gain" "$1" "$2" && between "$share" "$3" "$4"; } >/dev/null

# An emulated processor that has other work may be slower than two rails of 8 MB/s: then rails of 1 MB/s, or a quarter.
for rate in 8000 1000 250; do
  gain $rate $rate 8 || exit 1
  fits 1.6 2.2 45 55 && break
done
ok "two rails of $rate kB/s are worth 1.6 of them ($gain)" between "$gain" 1.6 2.2
ok "both carry the same ($share %)" between "$share" 45 55

# Equal parts would make 0.5 of the fast one.
for rate in 8000 1000 250; do
  gain $rate $((rate / 4)) 18 || exit 1
  fits 1.05 1.4 60 90 && break
done
ok "one of $rate kB/s and one of a quarter of it are worth more than the fast one ($gain)" between "$gain" 1.05 1.4
ok "the slow one carries less ($((100 - share)) %)" between "$share" 60 90
done_testing
