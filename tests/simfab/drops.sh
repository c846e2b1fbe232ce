#!/usr/bin/env bash
# One packet lost, by its place in a message: UC loses that message whole and no other, RC sends again once.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
# cables of 10 km: a message is on its way before the first answer to it comes
sed -e 's/^name:.*/name: far/' -e 's/^  propagation_ns:.*/  propagation_ns: 50000/' \
  "$(dirname "$0")/../../etc/models/sdr-pcix.yaml" >"$tmp/far.yaml"
simfab run --topology two-hosts-two-rails --model "$tmp/far.yaml" -- \
  simfab exec h1 -- "$BUILD/tests/simfab/test_drops" >"$tmp/out" 2>&1
is "the program ends" $? 0
is "UC: three kinds of messages, none or any of 8 packets lost" "$(grep -c '^UC .* lost: right$' "$tmp/out")" 27
is "RC: the same" "$(grep -c '^RC .*, packet [0-9] lost: right$' "$tmp/out")" 27
is "lost acknowledges, and answers to reads and additions" "$(grep -c '^RC .*, a[a-z]*[ 1-8]* lost: right$' "$tmp/out")" 10
is "nothing is wrong" "$(grep -v ': right$' "$tmp/out")" ""
# a model in which connections of UC take nothing after such a write: two kinds of writes, each of the packets but the first
sed 's/^hca:.*/&\n  uc_recovers: false/' "$tmp/far.yaml" >"$tmp/deaf.yaml"
simfab run --topology two-hosts-two-rails --model "$tmp/deaf.yaml" -- \
  simfab exec h1 -- "$BUILD/tests/simfab/test_drops" >"$tmp/out" 2>&1
is "UC that does not recover: writes are right when nothing or their first packet is lost, sends are always" \
  "$(grep -c '^UC send.*: right$' "$tmp/out") $(grep -c '^UC write.*: right$' "$tmp/out") $(grep '^UC write.*: right$' "$tmp/out" | grep -cv 'packet [2-8] lost')" "9 4 4"
is "RC is not concerned" "$(grep -c '^RC .*, packet [0-9] lost: right$' "$tmp/out")" 27
done_testing
