#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts that flood one with small messages: what goes ahead of bulk leaves each within its budget, and what meets on the
# receiver's cable stays within the receiver's, since it divides that among them. Every figure is virtual time.
# timeout: 300
. "$(dirname "$0")/lib.sh"

"$top/tests/fabricd/share.py" --classes '{name: gold, share: 90}; {name: tin, share: 10}' --from 4 --load gold:1M:4 \
  --load tin:512:64:4 --time-ms 2.5 --settle-ms 1 --json >result 2>err || cat err
wire() { python3 -c 'import json, sys; print(json.load(open("result"))["classes"][sys.argv[1]]["wire"])' "$1"; }
between() { # LEAST MOST GOT
  awk -v l="$1" -v m="$2" -v g="$3" 'BEGIN {print "share: " g; exit !(g >= l && g <= m)}'
}
echo "# gold $(wire gold), tin $(wire tin) percent of the cable (simulated)"
ok "tin has its 10 percent of the cable, and no more than two beside" between 9 12 "$(wire tin)"
ok "gold has the rest" between 88 91 "$(wire gold)"

done_testing
