#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The prologue and the epilogue that fabricd(8) shows for PBS, as they stand there, and a job that is started by hand:
# its processes have the job's class, those of others have not.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1
export FABRICD_SOCKET=$tmp/fabricd.sock DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/none
[ "$(id -u)" = 0 ] || skip_all "only root sets jobs of others"

cat >policy.yaml <<END
version: 1
classes:
  - {name: gold, share: 70}
  - {name: tin, share: 30}
jobs: {default: tin, rules: [{user: nobody, class: gold}]}
END
printf 'policy: %s\nstate: %s\nsocket: %s\n' "$tmp/policy.yaml" "$tmp/state" "$FABRICD_SOCKET" >fabricd.yaml
fabricd --config fabricd.yaml 2>log &
on_exit "kill $!; wait $!"
wait_for 60 fabricctl status

# the scripts of the page, the first and the second
sed -n '/^\.SS PBS/,/^\.SS By hand/p' "$top/man/fabricd.8" | sed 's/\\-/-/g' |
  awk '/^#!/ {out = n++ ? "epilogue" : "prologue"} /^\.fi/ {out = ""} out {print > out}'
chmod +x prologue epilogue
cp "$BUILD/tests/fabricd/fabric_tool" . # where everybody may read
chmod 755 "$tmp"
class() { # USER JOB: of a process of the user that says it is of the job
  setpriv --reuid "$1" --clear-groups "$tmp/fabric_tool" query "$FABRICD_SOCKET" "$2" | sed -n 's/.* class=\([a-z]*\) .*/\1/p'
}
ok "the prologue" ./prologue 4711.server nobody
fabricctl job list >./jobs
like "tells the daemon of the job" '^- .id: "?4711\.server"?, class: gold, source: rule, .*user: nobody' jobs
is "its processes have its class" "$(class nobody 4711.server)" gold
is "and nobody else's, whatever they say" "$(class daemon 4711.server)" tin
ok "the epilogue" ./epilogue 4711.server
fabricctl job list >./jobs
is "ends it" "$(cat jobs)" ""
not_ok "once" ./epilogue 4711.server
ok "a job by hand, with a lease of a second" fabricctl job set mine gold --user nobody --lease 1
is "has a class" "$(class nobody mine)" gold
gone() { [ -z "$(fabricctl job list)" ]; }
ok "and ends by itself" wait_for 60 gone
done_testing
