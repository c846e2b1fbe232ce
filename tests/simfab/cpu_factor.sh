#!/usr/bin/env bash
# A program's own computing takes virtual time: its processor time, times the model's cpu_factor.
. "$(dirname "$0")/../tap.sh"
percent() { # of the processor time, with factor $1
  printf 'name: test\nprogram:\n  cpu_factor: %s\n' "$1" >"$tmp/model.yaml"
  simfab run --no-opensm --topology two-hosts-two-rails --model "$tmp/model.yaml" -- \
    simfab exec h1 -- "$BUILD/tests/simfab/test_cpu_factor"
}
between() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }
is "factor 0: computing takes no time" "$(percent 0)" 0
ok "factor 1" between "$(percent 1)" 95 105
ok "factor 3" between "$(percent 3)" 285 315
done_testing
