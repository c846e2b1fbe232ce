#!/usr/bin/env bash
# Fabrics come and go: exit status, signals, several at once, not root, and nothing left behind whoever is killed whenever.
# timeout: 240
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"

export XDG_RUNTIME_DIR=$tmp/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
export SIMFAB_TEST_MARK=mark.$$.$RANDOM
net=two-hosts-two-rails

# every process that this test's fabrics started carries the mark in its environment
mine() { grep -lazs "^SIMFAB_TEST_MARK=$SIMFAB_TEST_MARK$" /proc/[0-9]*/environ | sed 's|/proc/||; s|/environ||' | grep -vx -e $$ -e $BASHPID; }
fabric_processes() { # of mine, those of a fabric (not helpers of this script)
  local p
  for p in $(mine); do
    case $(tr '\0' ' ' 2>/dev/null </proc/"$p"/cmdline) in *simfab*|*opensm*|sleep\ 9[0-9][0-9]\ ) echo "$p" ;; esac
  done
}
nothing_left() {
  local i
  for ((i = 0; i < 100; i++)); do # 2 seconds
    [ -z "$(fabric_processes)" ] && [ -z "$(ls -A "$XDG_RUNTIME_DIR")" ] && return 0
    sleep 0.02
  done
  for i in $(fabric_processes); do tr '\0' ' ' </proc/"$i"/cmdline; echo "($i)"; done
  ls -lA "$XDG_RUNTIME_DIR"
  return 1
}
status_of() { "$@" >"$tmp/out" 2>&1; echo $?; }

is "CMD's exit status" "$(status_of simfab run --topology $net -- sh -c 'exit 7')" 7
is "a signal's" "$(status_of simfab run --topology $net -- sh -c 'kill -KILL $$')" 137
is "CMD not found" "$(status_of simfab run --topology $net -- /no/such/program)" 127
ok "nothing is left" nothing_left

is "an unknown host" "$(status_of simfab run --topology $net --no-opensm -- simfab exec h9 -- true)" 2
like "is named, and those there are" 'no host "h9" in this fabric; there are: h1 h2' "$tmp/out"
is "exec outside a fabric" "$(status_of env -u SIMFAB_DIR simfab exec h1 -- true)" 2
like "says how to get inside" 'simfab run --topology' "$tmp/out"
is "an unknown --sm host" "$(status_of simfab run --topology $net --sm h9 -- true)" 2
like "is named too" 'no host "h9"' "$tmp/out"
is "hosts in the order of the netlist" "$(simfab run --topology $net --no-opensm -- simfab status --hosts | tr '\n' ' ')" "h1 h2 "
ok "status" simfab run --topology $net -- simfab status
ok "the environment of CMD" simfab run --topology $net -- sh -c \
  '[ -S "$SIMFAB_DIR/engine.sock" ] && [ "$(stat -c %a "$SIMFAB_DIR")" = 700 ] && kill -0 $(cat "$SIMFAB_DIR/opensm/opensm.pid") && [ "$(simfab opensm pid)" = "$(cat "$SIMFAB_DIR/opensm/opensm.pid")" ]'
ok "opensm restart gives another one, with the subnet up" simfab run --topology $net -- sh -c \
  'a=$(simfab opensm pid); simfab opensm restart && simfab opensm wait && b=$(simfab opensm pid) && [ "$a" != "$b" ] && kill -0 $b && ! kill -0 $a 2>/dev/null'
ok "options for opensm" simfab run --topology $net --opensm-option "lmc 1" -- sh -c \
  'simfab exec h1 -- ibv_devinfo | grep -q "port_lmc:.*0x01"'
is "what CMD leaves running is ended" "$(status_of simfab run --topology $net --no-opensm -- sh -c 'sleep 900 & setsid sleep 901 & exit 3')" 3
ok "nothing is left" nothing_left

# several at once: each sees only its own
for i in 1 2 3; do simfab run --topology $net -- sh -c "simfab exec h$((i % 2 + 1)) -- hostname; echo \$SIMFAB_DIR" >"$tmp/many$i" 2>&1 & done
wait
is "three fabrics at once" "$(sort -u "$tmp"/many? | wc -l)" 5

# SIGTERM and SIGINT reach CMD
simfab run --topology $net --no-opensm -- sh -c 'trap "exit 33" TERM; echo up; while :; do sleep 0.01; done' >"$tmp/term" 2>&1 &
pid=$!
until grep -q up "$tmp/term"; do sleep 0.01; done
kill -TERM $pid
wait $pid
is "SIGTERM is forwarded" $? 33

# kill -9 anywhere: the victim is picked by what it is, the moment by chance
start() { rm -f "$tmp/kill"; simfab run --topology $net -- sh -c 'simfab exec h1 -- sleep 902 & echo up; sleep 903' >"$tmp/kill" 2>&1 & pid=$!; }
await_up() { wait_for 60 grep -q '^up' "$tmp/kill"; }
first_of() { pgrep -P "$1" -x "$2" | head -n 1; }
kill_one() { # who; fails when there is none of them
  local supervisor victim
  supervisor=$(pgrep -P $pid | head -n 1)
  case $1 in
    guardian) victim=$pid ;;
    supervisor) victim=$supervisor ;;
    engine) victim=$(first_of "${supervisor:-none}" simfab-engine) ;;
    opensm) victim=$(first_of "${supervisor:-none}" opensm) ;;
    command) victim=$(first_of "${supervisor:-none}" sh) ;;
  esac 2>/dev/null
  [ -n "$victim" ] && kill -KILL "$victim"
}
for who in guardian supervisor engine command; do
  start
  await_up
  kill_one $who
  ok "kill -9 of the $who of a running fabric: nothing is left after 2 s" nothing_left
  kill -KILL $pid 2>/dev/null
  wait $pid 2>/dev/null
done
# a program that outlives the engine sees its HCA die, and does not hang
simfab run --topology $net -- sh -c 'trap "" TERM; export BUILD='"$BUILD"'; simfab exec h1 -- "$BUILD/tests/simfab/test_engine_death"' >"$tmp/death" 2>&1 &
pid=$!
wait_for 60 grep -qs waiting "$tmp/death"
kill_one engine
wait $pid
is "the engine's death in mid-run: simfab's status" $? 1
like "a poll fails" '^poll: failed$' "$tmp/death"
like "a post fails with EIO" '^post: Input/output error$' "$tmp/death"
like "a fatal event of the device" '^event: local catastrophic error$' "$tmp/death"
like "and simfab says why" 'the engine was killed by signal 9 .*: ending the run' "$tmp/death"

start
await_up
kill_one opensm
wait_for 60 grep -q 'opensm was killed' "$tmp/kill"
ok "kill -9 of opensm: the fabric goes on" kill -0 $pid
like "and says what to do" 'opensm was killed by signal 9 .*simfab opensm restart' "$tmp/kill"
kill -KILL $pid
ok "nothing is left" nothing_left
set -m # a process group of its own
start
set +m
await_up
kill -KILL -$pid
ok "kill -9 of the whole process group: nothing is left" nothing_left
bad=0
for i in 1 2 3 4 5 6 7 8 9 10; do
  start
  sleep "0.$(printf %03d $((RANDOM % 300)))"
  case $((i % 3)) in 0) who=guardian ;; 1) who=supervisor ;; 2) who=engine ;; esac
  # one victim only: with both guardian and supervisor killed, nobody is left to clean up
  kill_one $who || kill -KILL $pid # too early: there was no such process
  nothing_left >"$tmp/left" 2>&1 || { bad=$((bad + 1)); cat "$tmp/left" >>"$tmp/all_left"; }
  wait $pid 2>/dev/null
done
touch "$tmp/all_left"
is "killed at ten moments of the start: something left" "$bad $(cat "$tmp/all_left")" "0 "

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 "$tmp"
  mkdir -m 700 "$tmp/nobody"
  chown 65534:65534 "$tmp/nobody"
  export XDG_RUNTIME_DIR=$tmp/nobody
  # the tree itself may be where only root can read
  mkdir -p "$tmp/tree/build"
  cp -r "$BUILD/bin" "$BUILD/lib" "$BUILD/libexec" "$tmp/tree/build/"
  cp -r "$(dirname "$0")/../../etc" "$tmp/tree/"
  chmod -R a+rX "$tmp/tree"
  ok "not root" setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
    "$tmp/tree/build/bin/simfab" run --topology $net -- sh -c '[ "$(id -u)" = 65534 ] && simfab exec h2 -- ibv_devinfo | grep -q PORT_ACTIVE'
else
  ok "not root: this is it" [ "$(id -u)" != 0 ]
fi
done_testing
