#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `simfab trace`: the files are JSON whatever happens, and say the same as the counters.
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
here=$(cd "$(dirname "$0")" && pwd)
check() { python3 "$here/trace_check.py" "$@" >"$tmp/check" 2>&1; }
said() { sed -n "s/^$1 //p" "$tmp/check"; }

pingpong() { # SERVER CLIENT PORT ARGS: two processes, both must end well
  local server=$1 client=$2 port=$3 pid i
  shift 3
  simfab exec "$server" -- ibv_rc_pingpong -p "$port" "$@" >/dev/null 2>&1 &
  pid=$!
  wait_for 60 listening "$port"
  simfab exec "$client" -- ibv_rc_pingpong -p "$port" "$@" "$server" >/dev/null 2>&1 && wait $pid
}
export -f pingpong
port=$(free_port 3) # and two after it
export port tmp

# two flows into one port, on two lanes: queues, waits for credits
printf 'name: tight\nlink: {width: 4, speed: SDR, vl_buffer_bytes: 8192}\n' >"$tmp/tight.yaml"
two_flows() {
  simfab run --topology eight-hosts-two-rails --model "$tmp/tight.yaml" --trace "$1" \
    --opensm-option "qos TRUE" --opensm-option "qos_sl2vl 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7" -- bash -c '
      pingpong h1 h2 $port -s 200000 -n 3 & a=$!
      pingpong h1 h3 $((port + 1)) -s 200000 -n 3 -l 3 & b=$!
      pingpong h1 h4 $((port + 2)) -s 200000 -n 3 -l 3 & c=$!
      wait $a && wait $b && wait $c && simfab status --counters >"$tmp/counters"'
}
ok "three flows, traced from the beginning" two_flows "$tmp/flows.json"
ok "the trace is JSON, spans on a link never overlap, bytes and waits are those of the counters" \
  check "$tmp/flows.json" "$tmp/counters"
is "its end is there, with packets of two lanes" "$(said end) $(said lanes)" "there 2"
like "packets" '^x packet [0-9]{3}' "$tmp/check"
like "credits" '^c credits [0-9]' "$tmp/check"
like "queues" '^c queue [0-9]' "$tmp/check"
like "waits for credits" '^x wait [0-9]' "$tmp/check"

# the same again, to the last picosecond (packet sequence numbers are the programs' random numbers)
same_again() {
  for i in 1 2; do
    simfab run --topology two-switches-two-paths --trace "$tmp/same$i" -- bash -c 'pingpong h1 h2 $port -n 20' || return
    sed 's/,"psn":[0-9]*//' "$tmp/same$i" >"$tmp/same$i.txt"
  done
  cmp "$tmp/same1.txt" "$tmp/same2.txt"
}
ok "two runs give the same trace" same_again

# started and stopped within a run, some links only, a file that is full
inside() {
  cd "$tmp" || exit
  simfab trace start links.json --links 'h1 mlx5_0*'
  simfab trace start links.json 2>busy
  pingpong h1 h2 $port -n 50
  simfab trace stop >stopped
  simfab trace stop 2>none
  simfab trace start full.json --limit 20k
  pingpong h1 h2 $port -n 200
  simfab exec h1 -- ibportstate -D 0,1 3 disable >/dev/null
  simfab trace stop >stopped_full
  simfab trace start state.json
  simfab exec h1 -- ibportstate -D 0,1 3 enable >/dev/null
  simfab trace stop >/dev/null
  simfab trace start x.json --links 'h9*' 2>nolink
  echo $? >nolink_rc
  mkfifo pipe
  timeout 5 simfab trace start pipe 2>notfile
  simfab status --counters >/dev/null
}
export -f inside
ok "start and stop" simfab run --topology two-switches-two-paths -- bash -c inside
ok "one link of three" check "$tmp/links.json"
is "both its directions" "$(said links)" "h1/0:1 leaf1:1"
like "stop tells how much" '^[0-9]+ events of 0\.[0-9]+ s of virtual time$' "$tmp/stopped"
like "a second start is refused" 'being written already' "$tmp/busy"
like "a second stop is refused" 'no trace is being written' "$tmp/none"
ok "a full file is JSON" check "$tmp/full.json"
is "with its end" "$(said end)" there
ok "and no longer than allowed" [ "$(stat -c %s "$tmp/full.json")" -le 20480 ]
like "it says so" 'limit was reached.*events left out' "$tmp/full.json"
like "and stop, too" 'the limit of 20480 bytes was reached, [0-9]+ events were left out' "$tmp/stopped_full"
like "a port comes up" '"cat":"state","name":"Initialize"' "$tmp/state.json"
like "no such link" 'no link is called "h9\*"' "$tmp/nolink"
is "exit status" "$(cat "$tmp/nolink_rc")" 1
like "a pipe is refused: nobody may hold up the fabric" 'pipe: (a trace wants a regular file|No such device)' "$tmp/notfile"

# packets that are lost
printf 'name: lossy\nfault: {loss: 0.05}\n' >"$tmp/lossy.yaml"
ok "a cable that loses packets" simfab run --topology two-hosts-two-rails --model "$tmp/lossy.yaml" --trace "$tmp/lost.json" -- \
  bash -c 'pingpong h1 h2 $port -n 100; simfab status --counters >"$tmp/counters"'
ok "its trace is like the counters" check "$tmp/lost.json" "$tmp/counters"
is "every loss is there" "$(said 'i drop')" "$(awk '/ errors / {for (i = 1; i < NF; i++) if ($i == "symbol") n += $(i + 1)} END {print n}' "$tmp/counters")"
like "with its reason" '"name":"dropped: lost, spoilt or without room"' "$tmp/lost.json"

# names as nobody should have given them
printf 'Switch 4 "S1" # "sw\\x \344\001%%s" base port 0\n[1] "A"[1]\n[2] "B"[1]\n\nCa 1 "A" # "h1 mlx5_0"\n\nCa 1 "B" # "h2 mlx5_0"\n' >"$tmp/odd.net"
ok "a fabric with odd names" simfab run --topology "$tmp/odd.net" --trace "$tmp/odd.json" -- \
  bash -c 'pingpong h1 h2 $port -n 2; simfab status --counters | iconv -f latin1 -t utf8 >"$tmp/counters"'
ok "is JSON in ASCII" check "$tmp/odd.json" "$tmp/counters"

# flows without a process are packets like others
ok "a flow" simfab run --topology two-hosts-two-rails --trace "$tmp/flow.json" -- bash -c '
  set -e
  simfab flow add "h1 mlx5_0" "h2 mlx5_0" size=4096 rate=100
  simfab flow run 1ms
  simfab flow del all
  simfab status --counters >"$tmp/counters"'
ok "is like its counters" check "$tmp/flow.json" "$tmp/counters"
like "and called so" '"name":"flow"' "$tmp/flow.json"

# orders that no `simfab trace` gives
hostile() {
  local version
  version=$(sed -n 's/^#define SF_VERSION \([0-9]*\)u$/\1/p' "$(dirname "$0")/../../simfab/proto.h")
  version=$version simfab run --topology two-hosts-two-rails --no-opensm -- python3 - <<'PY'
import array, errno, os, socket, struct, subprocess, time
HELLO, OP = struct.Struct("=IIII64s"), 120
files = [os.open("/dev/null", os.O_RDWR), os.memfd_create("m"), os.pipe()[1]]
good = os.open(os.environ["tmp"] + "/hostile.json", os.O_RDWR | os.O_CREAT)
read_only = os.open(os.environ["tmp"] + "/hostile.json", os.O_RDONLY)
engine = int(subprocess.check_output(["pgrep", "-P", str(os.getppid()), "-x", "simfab-engine"]))
held = lambda: len(os.listdir(f"/proc/{engine}/fd"))

def ask(body, fds=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(os.environ["SIMFAB_DIR"] + "/engine.sock")
    s.send(HELLO.pack(0x73666162, int(os.environ["version"]), 3, 0, b""))
    s.recv(65536)
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([struct.pack("=IIIIQ", OP, 1, 0, len(body), 0) + body], anc)
    error = struct.unpack("=IIiI", s.recv(65536)[:16])[2]
    s.close()
    return error

before = held()
for body, fds, error in [
    (b"stop", [], errno.ESRCH),
    (b"", [good], errno.EINVAL),
    (b"start", [good], errno.EINVAL),
    (b"start x ", [good], errno.EINVAL),
    (b"start 100 ", [good], errno.EINVAL),
    (b"start -1 " + b"*" * 10, [good], errno.EINVAL),
    (b"start 10000000 " + b"x" * 200, [good], errno.EINVAL),
    (b"start 10000000 ", [], errno.EINVAL),
    (b"start 10000000 ", [files[0]], errno.EINVAL),
    (b"start 10000000 ", [files[2]], errno.EINVAL),
    (b"start 10000000 ", [read_only], errno.EINVAL),
    (b"start 10000000 [", [good], errno.ENXIO),
    (b"start 10000000 ", [good] * 8, 0),
    (b"start 10000000 ", [good], errno.EBUSY),
    (b"stop", [good], 0),
    (b"stop\n", [good] * 3, errno.EINVAL),
]:
    got = ask(body, fds)
    if got != error:
        raise SystemExit(f"{body[:30]} {fds}: {got}, not {error}")
ask(b"stop")
end = time.monotonic() + 20
while held() > before and time.monotonic() < end:
    time.sleep(0.01)  # the engine has not yet seen that the last connection was closed
if held() > before:
    raise SystemExit(f"{held()} descriptors in the engine, {before} before")
PY
}
export -f hostile
ok "orders that are none are refused, and leave nothing behind" hostile

# the engine is killed while it writes
killed() {
  simfab run --topology two-switches-two-paths --trace "$tmp/killed.json" -- bash -c '
    while [ "$(stat -c %s "$tmp/killed.json")" -lt 300000 ]; do pingpong h1 h2 $port -n 1000; done
    kill -KILL $(pgrep -P $PPID -x simfab-engine)
    sleep 5' 2>/dev/null
}
killed
ok "after kill -9 of the engine the file is JSON but for its end" check "$tmp/killed.json"
is "which is missing" "$(said end)" missing

refuses() { # TEXT ARGS...
  local text=$1; shift
  "$@" >"$tmp/out" 2>&1
  [ $? = 2 ] && grep -qF -- "$text" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
ok "a file that cannot be made: nothing starts" refuses "/nonexistent/t: No such file" \
  simfab run --topology two-hosts-two-rails --trace /nonexistent/t -- true
ok "a limit that is none" refuses "--limit 3x: a number of bytes" simfab trace start f --limit 3x
ok "a limit that is too small" refuses "--limit 1k: at least 4096" simfab trace start f --limit 1k
ok "outside of a fabric" refuses "SIMFAB_DIR is not set" env -u SIMFAB_DIR simfab trace stop
ok "no order" refuses "usage: simfab trace start" simfab trace
done_testing
