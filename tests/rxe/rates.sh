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

# seconds RAILS BYTES COUNT: for one message, one way, to $time, the best of several, for the processor may have other work;
# bytes that a0 and a1 sent, to $sent0 and $sent1
seconds() {
  local hosts=a=rxa0,b=rxb0 before0 before1
  [ "$1" = 1 ] || hosts=a=rxa0+rxa1,b=rxb0+rxb1
  before0=$(wire_bytes a0) before1=$(wire_bytes a1)
  timeout 100 mrrun -n 2 --hosts $hosts "$BUILD/tests/rxe/pair" latency:$2:$3 >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
  sent0=$(($(wire_bytes a0) - before0)) sent1=$(($(wire_bytes a1) - before1))
  time=$(awk '{print $4 / 1e6}' "$tmp/out")
  echo "# $1 rails: $time s, $sent0 and $sent1 bytes"
}
# gain FAST SLOW COUNT: COUNT messages over two rails of so many kB/s beside one of the fast ones, to $gain; rail 0's part in %, to $share
gain() {
  local one bytes=$(($1 > 2000 ? 524288 : 131072))
  rail_limit 0 "$1" && rail_limit 1 "$2" && seconds 1 $bytes 8 || return 1
  one=$time
  seconds 2 $bytes "$3" || return 1
  gain=$(awk -v a="$one" -v b="$time" 'BEGIN {printf "%.2f", a / b}')
  share=$((100 * sent0 / (sent0 + sent1)))
}
between() { awk -v v="$1" -v a="$2" -v b="$3" 'BEGIN {exit !(v >= a && v <= b)}' || { echo "$1, wanted $2 to $3"; return 1; }; }
fits() { between "$gain" "$1" "$2" && between "$share" "$3" "$4"; } >/dev/null

# An emulated processor that has other work may be slower than two rails of 8 MB/s: then rails of 1 MB/s.
for rate in 8000 1000; do
  gain $rate $rate 8 || exit 1
  fits 1.6 2.6 45 55 && break
done
ok "two rails of $rate kB/s are worth 1.6 of them ($gain)" between "$gain" 1.6 2.6
ok "both carry the same ($share %)" between "$share" 45 55

# Equal parts would make 0.5 of the fast one.
for rate in 8000 1000; do
  gain $rate $((rate / 4)) 18 || exit 1
  fits 1.05 1.8 60 90 && break
done
ok "one of $rate kB/s and one of a quarter of it are worth more than the fast one ($gain)" between "$gain" 1.05 1.8
ok "the slow one carries less ($((100 - share)) %)" between "$share" 60 90
done_testing
