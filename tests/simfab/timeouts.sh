#!/usr/bin/env bash
# Queue pairs wait as long as the specification says: every RNR timer, time-outs, retries; reads and atomics beyond max_rd_atomic.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
# cables of 10 km, so that a way there and back (twice the cables to the switch and from it) is 200 us and little else
sed -e 's/^name:.*/name: far/' -e 's/^  propagation_ns:.*/  propagation_ns: 50000/' \
  "$(dirname "$0")/../../etc/models/sdr-pcix.yaml" >"$tmp/far.yaml"
simfab run --topology two-hosts-two-rails --model "$tmp/far.yaml" -- \
  simfab exec h1 -- "$BUILD/tests/simfab/test_timeouts" 200 >"$tmp/out" 2>&1
is "the program ends" $? 0
is "8 time-outs, 8 numbers of retries, none" "$(grep -c '^\(time-out .*\|no time-out\): right$' "$tmp/out")" 23
is "32 RNR timers, 7 numbers of retries" "$(grep -c '^RNR timer .*: right$' "$tmp/out")" 39
like "retries without end" '^ready at last: right$' "$tmp/out"
is "reads and additions, one and four at a time" "$(grep -c 'at a time: each.*: right$' "$tmp/out")" 4
is "nothing is wrong" "$(grep -v ': right$' "$tmp/out")" ""
done_testing
