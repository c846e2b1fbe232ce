#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job's small ratio on the wire: how much of what it sends in small messages is on the lane that goes ahead of bulk.
. "$(dirname "$0")/lib.sh"
cat >"$tmp/two.yaml" <<'YAML'
version: 1
vls: 8
classes:
  - {name: gold, share: 60, medium: 64K}
  - {name: tin, share: 40}
jobs: {default: tin}
YAML
fabricds "$tmp/two.yaml"
ok "by both hosts" wait_for 10 verified h2
export MRMPI_RAILS_MAX=1

ratio() { # RATIO: of the job, which is gold, on both hosts
  local h
  for h in $hosts; do ctl $h job set vip gold --user "$(id -u)" --small-ratio "$1" || return; done
}
vl() { ctl h1 status --json | python3 -c 'import json, sys; c = json.load(sys.stdin)["classes"][0]; v = c[sys.argv[1]]; print(v[0] if isinstance(v, list) else v)' "$1"; }
small=$(vl vl_small) bulk=$(vl vl_bulk)
isnt() { [ "$1" != "$2" ]; }
ok "small messages of the class have a lane of their own" isnt "$small" "$bulk"
parts() { # of what h1 has sent between $keep and $kept: percent on the lane of small messages, of bulk
  awk -v first="$tmp/c0" -v s="$small" -v b="$bulk" '$1 != "h1" {next}
    {vl = ""; for (i = 1; i < NF; i++) {if ($i == "vl") vl = $(i + 1); if ($i == "xmit_data") x = $(i + 1)}}
    FILENAME == first {was[$2, vl] = x; next}
    {sum[vl] += x - was[$2, vl]; all += x - was[$2, vl]}
    END {printf "%d %d\n", 100 * sum[s] / all, 100 * sum[b] / all}' "$tmp/c0" "$tmp/c1"
}
# 8 bytes there and back without a pause, by PAIRS at once: 0.7 us each way on links of 32 Gbit/s
sends() {
  eval "$keep"
  mrrun -n $((2 * $1)) --hosts h1,h2 --ppn "$1" --job-id vip NPmpich2 -o "$tmp/np" -l 8 -u 8 -p 0 -n 10000 >"$tmp/cmd" 2>&1 || cat "$tmp/cmd" >&2
  eval "$kept"
  parts
}
between() { # TEXT "GOT GOT" LEAST MOST: the first of them
  ok "$1 ($2)" test "${2% *}" -ge "$3" -a "${2% *}" -le "$4"
}

ok "a job without a ratio" ratio none
between "its small messages go ahead, within the class's budget" "$(sends 1)" 90 100
of_class=$(ctl h1 job show vip | sed -n 's/^ahead: //p')
# 0.1 percent of 4000 MB/s is 4 MB/s, of the 100 MB/s that they are with headers; and a bucket full at the beginning
ok "one that may send a thousandth ahead" ratio 1:999
between "sends about so much, and the rest with the bulk" "$(sends 1)" 2 20
ok "which its user can see" sh -c "fabricctl --socket '$SIMFAB_DIR/fabricd-h1.sock' job show vip | grep -qx 'ahead: 0.04883'" # on two levels
ok "one that may send nothing ahead" ratio 0:1
is "sends all of it with the bulk" "$(sends 1)" "0 100"
ok "a ratio that is larger than what the class grants" ratio 1000:1
is "grants no more than the class" "$(ctl h1 job show vip | sed -n 's/^ahead: //p')" "$of_class"
ok "wrong ones are refused" sh -c "for r in 1 1:0 :1 1: 1001:1 1:1001 -1:5 1:2:3 ' 1:2' 00001:1 ''; do
  FABRICD_SOCKET='$SIMFAB_DIR/fabricd-h1.sock' fabricctl job give vip --small-ratio \"\$r\" 2>/dev/null && exit 1; [ \$? = 2 ] || exit 1; done"

# a job that runs: failover's messages are of 0 to 2000000 bytes
ok "a job with small, medium and large messages" ratio none
give="for h in $hosts; do fabricctl --socket $SIMFAB_DIR/fabricd-\$h.sock job give vip --small-ratio"
ok "may send nothing ahead any more while it runs" exchange 8 "$give 0:1; done; sleep 0.1" "$keep" "$kept" true
is "its messages are right, and all on the lane of bulk" "$(lanes 1000)" "$bulk"
ok "and is free again" exchange 8 "$give none; done; sleep 0.1" "$keep" "$kept" true
is "on three lanes" "$(lanes 1000 | tr , '\n' | grep -c .)" 3
is "nothing broke" "$(counted broken)" 0

# the processes of a job on a host divide it
ok "a hundredth" ratio 1:99
"$BUILD/tests/fabricd/fabric_tool" watch "$SIMFAB_DIR/fabricd-h1.sock" vip >"$tmp/watch" 2>&1 &
on_exit "kill $! 2>/dev/null"
ahead() { ctl h1 job show vip | sed -n 's/^ahead: //p'; }
half() { [ "$(ahead)" = "$1" ]; }
ok "is one process's" wait_for 5 half 0.499
"$BUILD/tests/fabricd/fabric_tool" watch "$SIMFAB_DIR/fabricd-h1.sock" vip >"$tmp/watch2" 2>&1 &
on_exit "kill $! 2>/dev/null"
ok "and is divided when there are two" wait_for 5 half 0.2487
done_testing
