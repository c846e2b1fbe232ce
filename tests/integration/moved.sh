#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A subnet manager that gives all ports of both hosts other LIDs, in mid-job: no message that says where its sender is now
# gets there, and the hosts' fabricd know.
# timeout: 200
. "$(dirname "$0")/lib.sh"
fabricds

restart() { echo "echo lmc $1 >>\$SIMFAB_DIR/opensm/opensm.conf; simfab opensm restart >&2"; }
lids() { simfab status | awk '/^h[12] mlx5/ {for (i = 1; i < NF; i++) if ($i == "lid") print $1, $2, $(i + 1)}'; }
moved() { # how many ports of h1 and h2 have other LIDs than before
  lids >"$tmp/now"
  diff "$tmp/before" "$tmp/now" | grep -c '^>'
}
check() { # LMC WHEN COMMAND...
  lids >"$tmp/before"
  ok "opensm is restarted with LMC $1 $2, and nothing is lost" exchange 24 "${@:3}"
  is "all four ports have moved" "$(moved)" 4
  for h in 0@h1 1@h2; do
    is "$h knows where both of the other are" \
      "$(grep -cE "^mrmpi\[$h\] info: rank . on h.: mlx5_. port 1 has LID [0-9]+ LMC $1 now" "$tmp/out")" 2
  done
}
check 3 "in mid-job" "$(restart 3)" true true true
FIRST=$(restart 6) check 6 "before the first message" true true true true
done_testing
