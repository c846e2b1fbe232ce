#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One of two rails fails under a running job, with default settings: what the job carries once fabricd has seen it, against
# the other rail alone, and how long operations take. Links of two generations, three sizes, losses of all degrees, a
# cable that flaps, one that loses lanes. Figures are simulated; when fabricd looks is a matter of real time.
# timeout: 3000
[ -n "${RAILS_MODEL:-}" ] || {
  . "$(dirname "$0")/../tap.sh"
  cd "$(dirname "$0")/../.." || exit 2
  for model in ddr-connectx hdr; do
    RAILS_MODEL=$model simfab run --topology two-hosts-two-rails --model $model -- bash "$0" >"$tmp/rows" 2>&1
    rc=$?
    sed -n 's/^row /# /p' "$tmp/rows"
    grep -E '^not ok|^# (exit|[0-9])' "$tmp/rows"
    ok "rows of $model ($(grep -c '^ok' "$tmp/rows") good)" test $rc = 0
  done
  done_testing
  exit
}
. "$(dirname "$0")/lib.sh"
. tests/integration/rails-lib.sh
fabricds
limit=600

flap() { # until it is told to end
  while [ -e "$tmp/flaps" ]; do
    simfab fault link "h2 mlx5_1" down nowait for=1ms
    sleep 1
  done
}
row() { # SIZE N NAME STATES FAULT...: it is seen as one of STATES
  local size=$1 n=$2 name=$3 states=$4 state from=$SECONDS
  shift 4
  phase $((10 * n)) 0.3
  if [ "$name" = flapping ]; then
    touch "$tmp/flaps"
    flap &
    flapping=$!
  else
    simfab fault link "h2 mlx5_1" "$@"
  fi
  phase $((10 * n + 1)) 0.1
  while state=$(health h2 mlx5_1); [[ " $states " != *" $state "* ]] && [ $((SECONDS - from)) -lt 40 ]; do sleep 0.2; done
  ok "$RAILS_MODEL $size $name: seen as $state" eval '[[ " $states " == *" $state "* ]]'
  sleep 0.3
  phase $((10 * n + 2)) 1.5
  phase $((10 * n + 3)) 0
  [ "$name" != flapping ] || { rm "$tmp/flaps"; wait $flapping; }
  simfab fault clear
  sleep 0.5
  ctl h1 rail undrain mlx5_1 && ctl h2 rail undrain mlx5_1
  wait_for 10 is_now h2 mlx5_1 healthy
}
judge() { # SIZE N NAME
  local rate longest
  rate=$(figure $((10 * $2 + 2)) rate) longest=$(figure $((10 * $2 + 2)) longest)
  echo "row $RAILS_MODEL $1 $3: $rate MB/s of $alone alone, longest $longest us, $(figure $((10 * $2 + 1)) longest) before it was seen"
  ok "$RAILS_MODEL $1 $3: $rate MB/s, of the other rail alone $alone" at_least "$rate" "$(times "$alone" 0.97)"
  ok "$RAILS_MODEL $1 $3: no operation took over 20 ms ($longest us)" at_most "$longest" 20000
}
names=(loss-.01 loss-.1 loss-1 loss-5 corrupt-1 flapping narrow)
for size in 8 65536 1048576; do
  window=4
  [ $size != 8 ] || window=16
  begin $size $window
  sleep 0.5
  ctl h1 rail drain mlx5_1
  sleep 0.3
  phase 1 1
  phase 2 0
  ctl h1 rail undrain mlx5_1
  row $size 1 loss-.01 "degraded bad" loss=0.0001
  row $size 2 loss-.1 "degraded bad" loss=0.001
  row $size 3 loss-1 "bad" loss=0.01
  row $size 4 loss-5 "bad" loss=0.05
  row $size 5 corrupt-1 "bad" corrupt=0.01
  row $size 6 flapping "degraded bad"
  row $size 7 narrow "degraded" width=1
  ok "$RAILS_MODEL $size: the job ends well" end
  alone=$(figure 1 rate)
  for n in 1 2 3 4 5 6 7; do judge $size $n "${names[n - 1]}"; done
done

# it comes back by itself
begin 1048576 4
phase 1 0.5
simfab fault link "h2 mlx5_1" loss=0.01
phase 2 0
ok "$RAILS_MODEL: a fault is seen" wait_for 30 is_now h2 mlx5_1 bad
simfab fault clear
ok "$RAILS_MODEL: its end, too" wait_for 60 is_now h2 mlx5_1 healthy
sleep 1
phase 3 1.5
ok "$RAILS_MODEL: the job ends well" end
echo "row $RAILS_MODEL comes back: $(figure 3 rate) MB/s of $(figure 1 rate) before"
ok "$RAILS_MODEL: both rails are used as before" at_least "$(figure 3 rate)" "$(times "$(figure 1 rate)" 0.9)"
done_testing
