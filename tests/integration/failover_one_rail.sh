#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo of failover fails when nothing is left to go on: with one rail, a cable that is pulled ends all traffic.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ -z "$(sanitizers)" ] || skip_all "the demo's figures are for plain builds"
touch "$tmp/one.svg" # of an earlier run
env MRMPI_RAILS_MAX=1 timeout 180 bash tests/demo/failover "$tmp/one.svg" >"$tmp/demo" 2>&1
is "the demo's exit status" $? 1
like "it says what did not hold" '^wrong: [0-9] of 4 cables carry data again' "$tmp/demo"
like "and of what program" '^FAILED: NPmpich2 ' "$tmp/demo"
not_ok "there is no plot" test -e "$tmp/one.svg"
done_testing
