#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The policy on the wire: two streams of classes with shares 80 and 20 want the same link. Every figure is virtual time.
# The link is slow, because the stream in the background is simulated for the second of virtual time that the other one's
# programs take to begin and to end; its share is the same.

if [ -z "${SIMFAB_DIR:-}" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" \
        --model "$here/../../etc/models/hdr.yaml" -- bash "$here/shares.sh"
fi
. "$(dirname "$0")/lib.sh"
command -v ib_write_bw >/dev/null || skip_all "perftest is not installed"
how=$(counter) || skip_all "$how"

ok "links of one slow lane" simfab fault link all width=1 speed=SDR
all_active() { [ "$(simfab status | grep -cE '^[^:]* [0-9]+ Active ')" -eq 9 ]; } # the switch itself, and both ends of four cables
ok "which opensm has brought up again" wait_for 60 all_active

cat >policy.yaml <<END
version: 1
vls: 8
mtu: 4096
classes:
  - {name: gold, share: 80, priority: low}
  - {name: tin, share: 20, priority: low}
jobs: {default: tin}
END
printf 'state: %s\nsocket: %s\nopensm:\n  config: %s\n  pid_file: %s\n' "$tmp/state" "$FABRICD_SOCKET" \
  "$SIMFAB_DIR/opensm/opensm.conf" "$SIMFAB_DIR/opensm/opensm.pid" >fabricd.yaml
simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" 2>fabricd.log &
started
wait_for 10 fabricctl status || cat fabricd.log
ok "the policy is applied and verified" fabricctl policy apply policy.yaml
fabricctl job set 1 gold --user "$(id -u)"
"$BUILD/tests/fabricd/fabric_tool" query "$FABRICD_SOCKET" 1 >q
like "gold is on the service level that is measured here; what has none is tin's" 'class=gold .*bulk=2 ' q

stream() { # SL MESSAGES: h1 writes to h2, the result goes to file bw.SL; the client is the last background process
  local port
  port=$(free_port)
  simfab exec h2 -- ib_write_bw -F -d mlx5_0 -S "$1" -p $port -s 1048576 -n "$2" >"server.$1" 2>&1 &
  started
  wait_for 60 listening $port
  simfab exec h1 -- ib_write_bw -F -d mlx5_0 -S "$1" -p $port -s 1048576 -n "$2" 127.0.0.1 >"bw.$1" 2>&1 &
  started
}
measure() { # SL: MB/s of 60 messages
  stream "$1" 60
  wait $!
  awk '/#bytes/ {getline; print $4}' "bw.$1"
}
sending() { # VL: does the lane carry something at this moment?
  local a b
  a=$(simfab status --counters | awk -v vl="$1" '/^h1 mlx5_0 1 vl/ && $5 == vl {print $7}')
  sleep 0.05
  b=$(simfab status --counters | awk -v vl="$1" '/^h1 mlx5_0 1 vl/ && $5 == vl {print $7}')
  [ "${b:-0}" -gt "${a:-0}" ]
}
about() { # PERCENT GOT ALL: within one point
  awk -v p="$1" -v g="$2" -v a="$3" 'BEGIN {s = 100 * g / a; print "share: " s; exit !(a > 0 && s > p - 1 && s < p + 1)}'
}

alone=$(measure 2)
stream 0 1000000
tin=$!
ok "tin is sending" wait_for 60 sending 0
gold=$(measure 2)
ok "and sends to the end" wait_for 60 sending 0
echo "# gold alone $alone MB/s, against tin $gold MB/s (simulated)"
ok "gold has 80 percent of the link" about 80 "$gold" "$alone"
stop $tin

stream 2 1000000
ok "gold is sending" wait_for 60 sending 1
tin=$(measure 0)
ok "and sends to the end, too" wait_for 60 sending 1
echo "# tin against gold $tin MB/s (simulated)"
ok "tin has 20 percent of the link" about 20 "$tin" "$alone"

done_testing
