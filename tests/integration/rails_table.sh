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

flap() { # until it is told to end
  while [ -e "$tmp/flaps" ]; do
    simfab fault link "h2 mlx5_1" down nowait for=1ms
    sleep 1
  done
}
# A job of its own, since the library remembers which ways lost packets. It may leave a way before fabricd has seen much.
row() { # SIZE NAME FAULT...
  local size=$1 name=$2 from state rate longest
  shift 2
  begin $size $window
  phase 1 0.3
  phase 2 0
  if [ "$name" = flapping ]; then
    touch "$tmp/flaps"
    flap &
    flapping=$!
  else
    simfab fault link "h2 mlx5_1" "$@"
  fi
  from=$SECONDS
  while state=$(health h2 mlx5_1); [ "$state" = healthy ] && [ $((SECONDS - from)) -lt 6 ]; do sleep 0.2; done
  [ "$state" != degraded ] || sleep 2
  sleep 0.3
  phase 3 1.5
  phase 4 0
  [ "$name" != flapping ] || { rm "$tmp/flaps"; wait $flapping; }
  ok "$RAILS_MODEL $size $name: the job ends well" end
  rate=$(figure 3 rate) longest=$(figure 3 longest)
  echo "row $RAILS_MODEL $size $name: $(health h2 mlx5_1); $rate MB/s of $alone alone, longest $longest us, $(figure 2 longest) before"
  ok "$RAILS_MODEL $size $name: $rate MB/s, of the other rail alone $alone" at_least "$rate" "$(times "$alone" 0.97)"
  ok "$RAILS_MODEL $size $name: no operation took over 20 ms ($longest us)" at_most "$longest" 20000
  simfab fault clear
  sleep 0.5
  ctl h1 rail undrain mlx5_1 && ctl h2 rail undrain mlx5_1
  wait_for 10 is_now h2 mlx5_1 healthy
}
for size in 8 65536 1048576; do
  window=4
  [ $size != 8 ] || window=16
  ctl h1 rail drain mlx5_1
  begin $size $window
  phase 1 1
  ok "$RAILS_MODEL $size: over one rail" end
  alone=$(figure 1 rate)
  ctl h1 rail undrain mlx5_1
  row $size loss-.01 loss=0.0001
  row $size loss-.1 loss=0.001
  row $size loss-1 loss=0.01
  row $size loss-5 loss=0.05
  row $size corrupt-1 corrupt=0.01
  row $size flapping
  row $size narrow width=1
done

# it comes back by itself
begin 1048576 4
phase 1 0.5
simfab fault link "h2 mlx5_1" loss=0.01
phase 2 0
ok "$RAILS_MODEL: a fault is seen" wait_for 60 not_healthy h2 mlx5_1
simfab fault clear
ok "$RAILS_MODEL: its end, too" wait_for 60 is_now h2 mlx5_1 healthy
phase 1000 0 # the library tries a way again that has lost packets after some seconds of its own time, which pass slowly here
phase 3 1.5
ok "$RAILS_MODEL: the job ends well" end
echo "row $RAILS_MODEL comes back: $(figure 3 rate) MB/s of $(figure 1 rate) before"
ok "$RAILS_MODEL: both rails are used as before" at_least "$(figure 3 rate)" "$(times "$(figure 1 rate)" 0.9)"
done_testing
