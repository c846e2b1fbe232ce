#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The real opensm on two simulated switches with four hosts each and one cable between them: the lock says that four share
# it, and what a process may send ahead of bulk is divided by that; also where a lock does not know it yet, or knows better.

if [ -z "${SIMFAB_DIR:-}" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    netlist=$(mktemp)
    trap 'rm -f "$netlist"' EXIT
    "$BUILD/bin/simfab" topology line --switches 2 --hosts 8 >"$netlist"
    "$BUILD/bin/simfab" run --topology "$netlist" --model "$here/../../etc/models/hdr.yaml" -- bash "$here/trunk.sh"
    exit
fi
. "$(dirname "$0")/lib.sh"

cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm:
  config: \$SIMFAB_DIR/opensm/opensm.conf
  pid_file: \${SIMFAB_DIR}/opensm/opensm.pid
verify: {timeout: 10, interval: 1}
END
start_daemon() { # HOST
  simfab exec --real-clock "$1" -- fabricd --config "$tmp/fabricd.yaml" >>fabricd.log 2>&1 &
  daemon=$!
  started
  wait_for 10 fabricctl status || cat fabricd.log
}
stop_daemon() {
  kill $daemon
  wait $daemon 2>/dev/null
  rm -f "$FABRICD_SOCKET"
}
budget() { # that a process of the class has, of 65536 of a link
  "$BUILD/tests/fabricd/fabric_tool" query "$FABRICD_SOCKET" "$1" | sed 's/.* ahead=\([0-9]*\) .*/\1/'
}
messages() { # that its small messages may take of an adapter's message rate, of 65536
  "$BUILD/tests/fabricd/fabric_tool" query "$FABRICD_SOCKET" "$1" | sed 's/.* messages=\([0-9]*\) .*/\1/'
}
ahead_of() { # CLASS FILE: percent, as plan and status tell it
  sed -n "s/.*{name: $1, .* ahead: \([0-9.]*\).*/\1/p" "$2"
}

cat >p.yaml <<END
version: 1
classes:
  - {name: gold, share: 90}
  - {name: tin, share: 10}
jobs: {default: tin}
END
fabricctl policy plan p.yaml >plan 2>/dev/null
is "where nothing is known of cables tin may send so much ahead" "$(ahead_of tin plan)" 1.33
ok "opensm has the subnet up" simfab opensm wait
start_daemon h1
ok "a policy is applied" fabricctl policy apply p.yaml
like "four hosts share the cable between the switches" '^fabric .* oversubscription=4$' p.lock
ok "which is in force" cmp p.lock state/policy.lock
fabricctl policy plan p.yaml >plan
fabricctl status >status
is "plan tells a quarter of the budget" "$(ahead_of tin plan)" 0.33
is "and so does status" "$(ahead_of tin status)" 0.33
is "which a process has" "$(budget 1)" 218
ok "of its adapter, which others do not share, it has its class's 10 percent" \
  awk -v n="$(messages 1)" 'BEGIN {print n; exit !(n > 6553 * 0.95 && n < 6554 * 1.05)}'

stop_daemon
old_state state
sed -i 's/ oversubscription=4//' state/policy.lock
start_daemon h8
ok "a lock from before learns it, seen from the other switch" wait_for 10 cmp p.lock state/policy.lock
has_budget() { [ "$(budget 1)" = "$1" ] || { budget 1; return 1; }; }
ok "and processes have the same again" wait_for 10 has_budget 218 # the disk has it first

stop_daemon
old_state state
sed -i 's/oversubscription=4/oversubscription=2/' state/policy.lock
start_daemon h1
is "what the lock knows counts" "$(budget 1)" 436
fabricctl policy apply p.yaml >out
like "until the policy is applied" '^fabric .* oversubscription=4$' state/policy.lock
like "which changes no port" "had the policy.s tables already" out
is "but what processes are told" "$(budget 1)" 218

done_testing
