#!/usr/bin/env bash
# A stream of messages moves to its other path when the first one breaks or the program asks; nothing is lost.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
simfab run --topology "$(dirname "$0")/two-ports.net" --model sdr-pcix -- \
  simfab exec h1 -- "$BUILD/tests/simfab/test_migrate" >"$tmp/out" 2>&1
is "the program ends" $? 0
for what in "the sender's cable" "the receiver's cable" "the sender asks" "the receiver asks" "there" "back" "nothing happens" \
  "no other path"; do
  like "$what" "^$what: right\$" "$tmp/out"
done
done_testing
