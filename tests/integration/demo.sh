#!/usr/bin/env bash
# The demo holds, and says what it is expected to say.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ -z "$(sanitizers)" ] || skip_all "the demo's figures are for plain builds; classes.sh and loss.sh take the same parts through sanitized ones"
ok "the demo exits 0" timeout -t "$tmp/took" 180 bash tests/demo/demo
cp "$tmp/.tap" "$tmp/demo"
like "it says that figures are simulated" 'MB/s \(simulated\)' "$tmp/demo"
like "it verified the policy on every port" 'verified: [0-9]+ ports' "$tmp/demo"
like "two rails are about twice one" 'two rails : one rail at 1 MiB = (1\.9|2\.0)' "$tmp/demo"
like "it reports the urgent job's lanes" 'job demo-urgent .*VL [1-9]' "$tmp/demo"
ok "under three minutes" within 180
done_testing
