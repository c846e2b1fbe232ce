#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the demo of failover makes of a trace: sums, pauses and judgement of a small trace, worked out by hand; the plot.
. "$(dirname "$0")/../tap.sh"
demo=$(cd "$(dirname "$0")/../demo" && pwd)
T=$'\t'

# A switch and two adapters of each of two hosts. Times are in microseconds, here given in ms.
meta() { # PID NAME KIND
  printf '{"ph":"M","pid":%d,"name":"process_name","args":{"name":"%s"}},\n' "$1" "$2"
  printf '{"ph":"M","pid":%d,"name":"process_labels","args":{"labels":"simulated %s"}},\n' "$1" "$3"
}
packet() { # PID MS BYTES PAYLOAD SLID [DLID]: 1 us on the wire, to the other adapter of the rail
  local us to=(0 3 2 1)
  set -- "$@" "${to[$5]:-9}" # the first of those given counts
  us=$(awk -v t="$2" 'BEGIN {printf "%d", t * 1000}')
  printf '{"ph":"X","pid":%d,"tid":32,"ts":%d.000000,"dur":1.000000,"cat":"packet","name":"SEND",' "$1" "$us"
  printf '"args":{"sl":0,"vl":0,"bytes":%d,"payload":%d,"slid":%d,"dlid":%d,' "${@:3:3}" "$6"
  printf '"src_qp":1,"dest_qp":1,"psn":1}},\n'
}
through() { packet "$1" "$2" "${@:3}"; packet 1 "$2" "${@:3}"; } # an adapter sends it, the switch passes it on
state() { # PID MS NAME
  printf '{"ph":"i","pid":%d,"tid":63,"ts":%d000.000000,"s":"t","cat":"state","name":"%s",' "$1" "$2" "$3"
  printf '"args":{"lid":1,"rate_gbps":8.0}},\n'
}
lost() { # PID MS BYTES SLID: the cable goes while it is on the wire
  printf '{"ph":"i","pid":%d,"tid":63,"ts":%d000.000000,"s":"t","cat":"drop",' "$1" "$2"
  printf '"name":"dropped: the link went down","args":{"op":"SEND","sl":0,"vl":0,'
  printf '"bytes":%d,"payload":970,"slid":%d,"dlid":3,"src_qp":1,"dest_qp":1,"psn":1}},\n' "$3" "$4"
}
{
  printf '[\n'
  meta 1 leaf1 switch
  meta 2 'h1 mlx5_0' adapter
  meta 3 'h1 mlx5_1' adapter
  meta 4 'h2 mlx5_0' adapter
  for ((ms = 10; ms < 20; ms++)); do through 2 $ms.2 5000 4970 1; through 3 $ms.4 3000 2970 2; done
  through 2 19.998 1000 970 1
  state 2 20 Down
  state 1 20 Down
  lost 4 20 1000 1
  packet 2 20.1 5000 4970 1 # nobody passes it on
  for ((ms = 20; ms < 30; ms++)); do through 3 $ms.4 4000 3970 2; done
  state 2 30 Initialize
  state 2 30 Armed
  state 2 30 Active
  through 2 32 94 64 1 # no data
  through 3 34.6 30 0 2 3 # from one rail to the other
  for ((ms = 33; ms < 40; ms++)); do through 4 $ms.2 5000 4970 3; through 3 $ms.4 3000 2970 2; done
} >"$tmp/trace"

rates() { awk -v bin="$1" -f "$demo/rates.awk" "$2"; }
has() { grep -qxF -- "$2" "$1" || { cat "$1"; return 1; }; } # FILE LINE
rates 5 "$tmp/trace" >"$tmp/rates"
is "the trace is read" $? 0
ok "bytes of a rail: all that arrived, both directions and from the other rail, without the packet that was lost" \
  has "$tmp/rates" "rail${T}mlx5_0${T}85124"
ok "and of the other" has "$tmp/rates" "rail${T}mlx5_1${T}91000"
is "changes of cables, as adapters saw them" "$(grep ^cable "$tmp/rates")" \
  "cable${T}20.000${T}pulled${T}h1 mlx5_0"$'\n'"cable${T}30.000${T}back${T}h1 mlx5_0"
# 5 packets of 5000 and 3000 bytes in 5 ms are 5 and 3 MB/s; the lost one (1000) had left the switch
is "rates of the bins" "$(grep ^rate "$tmp/rates" | cut -f 2-)" "10.000${T}5.000${T}3.000
15.000${T}5.200${T}3.000
20.000${T}0.000${T}4.000
25.000${T}0.000${T}4.000
30.000${T}2.019${T}1.206
35.000${T}5.000${T}3.000"
is "between changes: the rate, and the longest part without data" "$(grep ^between "$tmp/rates" | cut -f 2-)" \
  "10.201${T}20.000${T}0.800${T}5.205${T}3.062
20.000${T}30.000${T}1.000${T}0.000${T}4.000
30.000${T}39.401${T}3.201${T}3.733${T}2.237"
ok "the longest time without data" has "$tmp/rates" "still${T}29.401${T}33.201"
ok "when the cable that is back carries data again" has "$tmp/rates" "again${T}33.201${T}3.201${T}h1 mlx5_0"

refused() { # PATTERN COMMAND...: status 1 and a message
  "${@:2}" >"$tmp/refused.out" 2>"$tmp/refused"
  [ $? = 1 ] && grep -qE -- "$1" "$tmp/refused" || { cat "$tmp/refused"; return 1; }
}
ok "no width of bins" refused '^rates.awk: -v bin=MS' awk -f "$demo/rates.awk" "$tmp/trace"
ok "a width of nothing" refused '^rates.awk: -v bin=MS.*"0"' rates 0 "$tmp/trace"
echo '[]' >"$tmp/empty"
ok "a trace without packets" refused '^rates.awk: .*/empty: no packet' rates 1 "$tmp/empty"
sed '11s/"ts":[0-9.]*,//' "$tmp/trace" >"$tmp/broken"
ok "an event without a time is named" refused '^rates.awk: .*/broken:11: no number "ts"' rates 1 "$tmp/broken"
{ cat "$tmp/trace"; packet 1 50 100 70 77; } >"$tmp/unknown"
ok "so is a packet that no adapter has sent" refused '/unknown:[0-9]+: no adapter .* LID 77' rates 1 "$tmp/unknown"

# ---- judgement
judge() { # FILE [VARIABLE=VALUE]...
  local f=$1 v more=()
  shift
  for v in "$@"; do more+=(-v "$v"); done
  awk -v pulls=1 -v pause_ms=5 -v again_ms=5 -v recover_ms=20 "${more[@]}" -f "$demo/failover.awk" "$f" >"$tmp/judged"
}
table() { # FILE: what rates.awk prints, from columns with blanks
  sed 's/  */\t/g; s/\t\(h[12]\)\t/\t\1 /' >"$tmp/$1"
}
base='rail mlx5_0 100
rail mlx5_1 100
cable 20.000 pulled h1 mlx5_0
cable 30.000 back h1 mlx5_0
between 0.000 20.000 1.000 500.000 500.000'
printf '%s\n' "$base" 'between 20.000 30.000 2.000 0.000 600.000' 'between 30.000 40.000 1.500 400.000 500.000' \
  'still 20.000 22.000' 'again 31.000 1.000 h1 mlx5_0' | table good
ok "what goes on is good" judge "$tmp/good"
like "the cable is told" '^ +20\.0  h1 mlx5_0: cable pulled +0\.0 +600\.0 +2\.000$' "$tmp/judged"
like "and that the rail is back" '^ +31\.0  h1 mlx5_0: carries data again, 1\.0 ms after' "$tmp/judged"
like "the longest pause" '^pause left 2\.000$' "$tmp/judged"
like "there was none without a rail" '^pause none 0\.000$' "$tmp/judged"
wrong() { # TEXT PATTERN FILE [VARIABLE=VALUE]...
  not_ok "$1" judge "${@:3}"
  like "and says so" "^wrong: $2" "$tmp/judged"
}
wrong "a pause that is too long is not" \
  '20\.0 to 30\.0 ms: no data for 2\.000 ms, more than 1\.9' "$tmp/good" pause_ms=1.9
wrong "a rail that comes back too late is not" 'h1 mlx5_0 carries data again only 1\.000 ms' "$tmp/good" again_ms=0.9
wrong "a cable that was not pulled is not" '1 cables were pulled, 1 put back .* not 2' "$tmp/good" pulls=2
sed "s/^again.*//" "$tmp/good" >"$tmp/never"
wrong "a rail that does not come back is not" '0 of 1 cables carry data again' "$tmp/never"
sed "s/2.000${T}0.000${T}600/2.000${T}30.000${T}600/" "$tmp/good" >"$tmp/through"
wrong "data on a rail without a cable is not" '20\.0 to 30\.0 ms: mlx5_0 carries 30\.000' "$tmp/through"
sed "s/0.000${T}600/0.000${T}2/" "$tmp/good" >"$tmp/stuck"
wrong "another rail that does not go on is not" '20\.0 to 30\.0 ms: mlx5_1 does not carry on: 2\.000' "$tmp/stuck"
: >"$tmp/nothing"
wrong "no traffic is not" 'there is no traffic' "$tmp/nothing"
printf '%s\n' "$base" 'cable 22.000 pulled h2 mlx5_1' 'cable 25.000 back h2 mlx5_1' \
  'between 20.000 22.000 0.100 0.000 600.000' 'between 22.000 25.000 3.000 0.000 0.000' \
  'between 25.000 30.000 5.000 0.000 0.000' 'between 30.000 60.000 9.000 400.000 500.000' \
  'still 22.000 39.000' 'again 39.000 14.000 h2 mlx5_1' 'again 40.000 10.000 h1 mlx5_0' | table both
ok "all rails gone for a while: the longer limit counts" judge "$tmp/both" pulls=2
like "with the whole pause" '^pause none 17\.000$' "$tmp/judged"
wrong "it is a limit, too" 'h2 mlx5_1 carries data again only 14' "$tmp/both" pulls=2 recover_ms=13
wrong "for the pause as well" '30\.0 to 60\.0 ms: no data for 9\.000 ms, more than 8' "$tmp/both" pulls=2 recover_ms=8

# ---- plot
plot() { awk -f "$demo/plot.awk" "$1"; }
{
  printf 'title\tA & B <c> "d"\nnote\tsimulated\npanel\tone\n'
  cat "$tmp/rates"
  printf 'panel\ttwo\nrail\tx\t0\nrate\t0\t0\n'
} >"$tmp/table"
plot "$tmp/table" >"$tmp/svg"
is "the plot is drawn" $? 0
xml() { # well formed, as the parser of python's library sees it; prints the number of elements called NAME
  python3 -c 'import sys, xml.etree.ElementTree as E
r = E.parse(sys.argv[1]).getroot()
print(sum(e.tag.endswith("}" + sys.argv[2]) for e in r.iter()))' "$tmp/svg" "$1"
}
is "it is XML, with an area for each rail and a line for the sum" "$(xml path)" 5
is "nothing is fetched or run" "$(grep -cE '<script|<image|href|@import|url\(' "$tmp/svg")" 0
like "text is escaped" '<title>A &amp; B &lt;c&gt; &quot;d&quot;</title>' "$tmp/svg"
like "axes have units" 'virtual time, ms \(simulated\)' "$tmp/svg"
like "both" 'bandwidth, MB/s' "$tmp/svg"
like "the time when the cable was out" 'out 20\.0 to 30\.0 ms' "$tmp/svg"
like "bytes of a rail" 'mlx5_0: 0\.1 MB' "$tmp/svg"
# x: 10 to 40 ms are 100 to 1170; y: 10 MB/s at the top, 220 high, so that a sum of 8 is 44 below it
top=$(sed -n 's/^<path d="M100\.0,\([0-9.]*\) .*/\1/p' "$tmp/svg" | head -n 1)
is "the sum's line is where it should be" \
  "$(awk 'match($0, /^<path d="[^"]*" fill="none"/) {print substr($0, 10, 90); exit}' "$tmp/svg")" \
  "$(awk -v zero="$top" 'BEGIN {
      split("8 8.2 4 4 3.225 8", v, " ")
      line = sprintf("M100.0,%.1f", zero)
      for (i = 1; i <= 6; i++) line = line sprintf(" V%.1f H%.1f", zero - v[i] * 22, 100 + i * 5 / 30 * 1070)
      print substr(line, 1, 90)}')"
# bars from 10 to 20 and from 85 to 95 of 100 ms: there is room on the right of the first, on the left of the second
{
  printf 'panel\tone\nrail\ta\t1\n'
  for at in 10:pulled 20:back 85:pulled 95:back; do printf 'cable\t%d\t%s\th1 a\n' ${at/:/ }; done
  printf 'rate\t%d\t1\n' {0..99}
} >"$tmp/two"
plot "$tmp/two" >"$tmp/svg"
like "times stand on the right of a bar" '<text x="320\.0" .*[^d]">out 10\.0 to 20\.0 ms<' "$tmp/svg"
like "or on its left" '<text x="1003\.5" .*text-anchor="end">out 85\.0 to 95\.0 ms<' "$tmp/svg"
sed -i 's/^cable\t85/cable\t25/; s/^cable\t20/cable\t15/; s/^cable\t95/cable\t99/' "$tmp/two"
plot "$tmp/two" >"$tmp/svg"
is "or nowhere, where there is no room" "$(grep -c '>out ' "$tmp/svg")" 0
bad() { # TEXT PATTERN LINES: lines after a good beginning
  printf 'panel\tone\nrail\ta\t1\nrate\t1\t2\n%b' "$3" >"$tmp/bad"
  ok "$1" refused "^plot.awk: .*/bad:4: $2" plot "$tmp/bad"
}
bad "an unknown line" 'unknown line "speed"' 'speed\t1\n'
bad "a number that is none" 'a number is wanted, not "x"' 'rate\t2\tx\n'
bad "a negative one" 'a number is wanted, not "-3"' 'rate\t2\t-3\n'
bad "a rate too many" '"rate" wants 2 fields' 'rate\t2\t3\t4\n'
bad "time that goes back" 'time 0 is not after' 'rate\t0\t3\n'
bad "a cable that is neither" '"pulled" or "back"' 'cable\t1\tcut\th1\n'
printf 'rate\t1\t2\n' >"$tmp/bad"
ok "no panel" refused 'bad:1: "rate" before the first' plot "$tmp/bad"
printf 'panel\tone\nrail\ta\t1\n' >"$tmp/bad"
ok "no rates" refused 'panel "one" has no rates' plot "$tmp/bad"
printf 'title\tx\n' >"$tmp/bad"
ok "nothing" refused 'no panel' plot "$tmp/bad"
done_testing
