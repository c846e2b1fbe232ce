#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts that crash and come back, and subnet managers that die while another stands by.
. "$(dirname "$0")/../tap.sh"
for p in ibv_rc_pingpong ibv_asyncwatch opensm sminfo; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done
export tmp
cat >"$tmp/run" <<'END'
says() { "${@:2}" 2>&1 | grep -Eq "$1"; } # REGEX COMMAND...
until_seen() { # REGEX COMMAND...
  wait_for 60 says "$@" && echo yes || { echo no; "${@:2}"; }
}
ended() { # PID: how, to $how: a subshell may not wait for our children
  process_gone $1
  kill -0 $1 2>/dev/null && { how="goes on"; return; }
  wait $1 2>/dev/null
  how=$?
}
first=$(simfab opensm pid) standby=$(simfab opensm pid standby)
echo "two $([ -n "$first" ] && [ -n "$standby" ] && [ $first != $standby ] && echo yes)"
echo "master $(until_seen 'priority 8 .*SMINFO_MASTER' simfab exec h2 -- sminfo)"
simfab exec h2 -- ibv_asyncwatch -d mlx5_0 >"$tmp/events" 2>&1 &
watch=$!
until_seen 'async event' cat "$tmp/events" >"$tmp/said"

simfab fault sm kill
kill -0 $first 2>/dev/null || echo "killed yes"
echo "takes_over $(until_seen 'priority 4 .*SMINFO_MASTER' simfab exec h2 -- sminfo)"
echo "told $(until_seen 'IBV_EVENT_SM_CHANGE|IBV_EVENT_CLIENT_REREGISTER' cat "$tmp/events")"
simfab opensm restart && echo "restart yes"
echo "hands_over $(until_seen 'priority 8 .*SMINFO_MASTER' simfab exec h2 -- sminfo)"
simfab fault sm hug; echo "hug $?"

# a verbs program, a shell that never touched the fabric, and opensm are on h1
simfab exec h1 -- ibv_asyncwatch -d mlx5_0 >"$tmp/attached" 2>&1 &
attached=$!
until_seen 'async event' cat "$tmp/attached" >"$tmp/said"
simfab exec h1 -- sleep 1000 &
shell=$!
sleep 1000 &
outside=$!
until_seen sleep ps -o args= -p $shell >"$tmp/said"
sm=$(simfab opensm pid)
simfab fault host h1 die
ended $attached; echo "attached $how"
ended $shell; echo "shell $how"
kill -0 $outside && echo "outside lives"
process_gone $sm
kill -0 $sm 2>/dev/null || echo "opensm died"
kill -0 $watch && echo "other lives"
simfab exec h1 -- true; echo "exec $?"
simfab fault list
echo "standby $(until_seen 'priority 4 .*SMINFO_MASTER' simfab exec h2 -- sminfo)"
simfab fault host h1 revive
echo "active $(until_seen '^h1 mlx5_0 1 Active lid' simfab status)"
simfab exec h1 -- true; echo "again $?"
kill $watch $outside
END
ok "two opensm" timeout 100 simfab run --topology two-hosts-two-rails --standby-sm h2 -- bash -c 'bash "$tmp/run" >"$tmp/out" 2>"$tmp/err"'
has() { is "$2" "$(sed -n "s/^$1 //p" "$tmp/out")" "${3:-yes}"; }
has two "both run"
has master "the one with more priority is the master"
has killed "simfab fault sm kill ends it"
has takes_over "the other takes over"
has told "and programs hear of it"
has restart "simfab opensm restart starts it again"
has hands_over "and it is the master again"
has hug "nothing else can be done to it" 2
has attached "a host that crashes takes its verbs programs along" 137
has shell "and what never touched the fabric" 137
has outside "what is not on it lives" lives
has opensm "opensm was on it" died
has other "programs of other hosts live" lives
has exec "nobody gets on it" 2
like "with a word why" 'host h1 is dead: simfab fault host h1 revive' "$tmp/err"
like "simfab fault list says so" '^host "h1": dead' "$tmp/out"
has standby "the standby takes over again"
has active "when it is back its ports become Active"
has again "and programs run on it" 0

# at the beginning
{ simfab run --topology two-hosts-two-rails --standby-sm h1 -- true; echo "status $?"; } >"$tmp/out" 2>&1
like "both on one host is refused" 'the subnet manager runs on that host already' "$tmp/out"
like "with status 2" '^status 2' "$tmp/out"
printf 'faults:\n- {host: h3, set: die}\n' >"$tmp/wrong.yaml"
{ simfab run --topology two-hosts-two-rails --model "$tmp/wrong.yaml" -- true; echo "status $?"; } >"$tmp/out" 2>&1
like "a model's fault of nobody is named with its place" 'wrong.yaml:2:3: there is no host "h3" in this fabric; there are: h1 h2' "$tmp/out"
like "and nothing is started" '^status 2' "$tmp/out"
done_testing
