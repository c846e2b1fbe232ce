#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts over the real ssh and sshd: with root's rights each host is a network namespace with an address of its own, else all
# are this machine. Keys, settings and ports are the test's. --all: with a login of 20 s, and a wait for agents that have lost
# their parent.
# timeout --all: 600
. "$(dirname "$0")/../tap.sh"
command -v sshd >/dev/null || skip_all "sshd is not installed (package openssh-server)"
command -v ssh >/dev/null || skip_all "ssh is not installed (package openssh-client)"
if [ "$(id -u)" = 0 ] && [ -z "${OWN_NETWORK:-}" ] && command -v ip >/dev/null && unshare -mn true 2>/dev/null; then
  OWN_NETWORK=yes tap_exec unshare --mount --net bash "$0" "$@"
fi
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
export MRMPI_LOG_LEVEL=0
client=$BUILD/tests/mrrun/test_launch_client
mkdir "$tmp/bin" "$tmp/home" "$tmp/scratch"
export TMPDIR=$tmp/scratch
PATH=$tmp/bin:$PATH

# ---- hosts: a to c, and others that are not as they should be
login=6
[ "${1:-}" = --all ] && login=20
declare -A address=([a]=10.9.0.2 [b]=10.9.0.3 [c]=10.9.0.4)
if [ -n "${OWN_NETWORK:-}" ]; then
  mkdir -p /run/netns /run/sshd && mount -t tmpfs none /run/netns || exit 1
  ip link set lo up && ip link add bridge type bridge && ip addr add 10.9.0.1/24 dev bridge && ip link set bridge up || exit 1
  for h in a b c; do
    ip netns add $h && ip link add to-$h type veth peer name eth0 netns $h && ip link set to-$h master bridge up &&
      ip -n $h link set lo up && ip -n $h addr add ${address[$h]}/24 dev eth0 && ip -n $h link set eth0 up || exit 1
  done
  # frames to this address go nowhere
  ip neigh add 10.9.0.99 lladdr 02:00:00:00:00:99 dev bridge nud permanent
  on() { exec ip netns exec "$@"; }
  on_exit 'for h in a b c; do kill -KILL $(ip netns pids $h); done 2>/dev/null' # sessions of lost hosts stay
else
  for h in a b c; do address[$h]=127.0.0.1; done
  on() { shift; exec "$@"; }
fi
port=$(free_port 8)
ssh-keygen -q -t ed25519 -N '' -f "$tmp/key" && ssh-keygen -q -t ed25519 -N '' -f "$tmp/other" &&
  ssh-keygen -q -t ed25519 -N '' -f "$tmp/hostkey" || exit 1
cp "$tmp/key.pub" "$tmp/keys"
cp "$tmp/other.pub" "$tmp/others"
cat >"$tmp/bin/ssh" <<END
#!/bin/sh
exec $(command -v ssh) -F "$tmp/config" "\$@"
END
chmod +x "$tmp/bin/ssh"
# the usual exchange of keys takes a client several times as long
cat >"$tmp/config" <<END
Host *
  IdentityFile $tmp/key
  IdentitiesOnly yes
  UserKnownHostsFile $tmp/known
  GlobalKnownHostsFile /dev/null
  KexAlgorithms curve25519-sha256
END
name() { # NAME HOST PORT [KNOWN]: a name for ssh
  printf 'Host %s\n  HostName %s\n  Port %d\n  HostKeyAlias %s\n' "$1" "${address[$2]:-$2}" "$3" "$1" >>"$tmp/config"
  [ "${4:-known}" = known ] && echo "$1 $(cut -d ' ' -f 1-2 "$tmp/hostkey.pub")" >>"$tmp/known"
}
serve() { # HOST PORT KEYS [LINE]: an sshd there, whose logins do not begin with what the user's own shell reads
  cat >"$tmp/sshd.$2" <<END
Port $2
ListenAddress ${address[$1]}
HostKey $tmp/hostkey
AuthorizedKeysFile $tmp/$3
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
MaxStartups 100
SetEnv HOME=$tmp/home PATH=$PATH TMPDIR=$TMPDIR
${4:-}
END
  on "$1" "$(command -v sshd)" -D -e -f "$tmp/sshd.$2" 2>"$tmp/log.$2" &
  sshd+=($!)
}
sshd=()
on_exit 'kill "${sshd[@]}" 2>/dev/null'
cat >"$tmp/late" <<'END'
#!/bin/sh
echo "Welcome to a slow machine"
sleep "$(cat "$(dirname "$0")/delay")"
echo >>"$(dirname "$0")/logins"
exec sh -c "$SSH_ORIGINAL_COMMAND"
END
cat >"$tmp/elsewhere" <<END
#!/bin/sh
exec sh -c "\$(echo "\$SSH_ORIGINAL_COMMAND" | sed "s|$BUILD/bin|/no/such/path|")"
END
chmod +x "$tmp/late" "$tmp/elsewhere"
serve a $port keys; name a a $port; name stranger a $port unknown
serve b $((port + 1)) keys; name b b $((port + 1))
serve c $((port + 2)) keys; name c c $((port + 2))
serve c $((port + 3)) keys "ForceCommand $tmp/late"; name late c $((port + 3))
serve c $((port + 4)) keys "ForceCommand $tmp/elsewhere"; name elsewhere c $((port + 4))
serve c $((port + 5)) others; name refused c $((port + 5))
name closed c $((port + 6))
name silent 10.9.0.99 22
for h in {1..18}; do name n$h a $port; done
ready() { timeout 20 ssh -o BatchMode=yes "$1" true; }
for h in a b c elsewhere; do
  wait_for 60 ready $h >"$tmp/out" 2>&1
done
ready a >"$tmp/out" 2>&1 && ready b >>"$tmp/out" 2>&1 || { cat "$tmp/out" "$tmp/log.$port"; skip_all "no login at a sshd of this user's own"; }

far() { timeout -t "$tmp/took" "${LIMIT:-120}" mrrun "$@" >"$tmp/out" 2>"$tmp/err"; }
sorted() { sort "$tmp/out" | tr '\n' ';'; }
# Standard error. On a busy machine any login may take the five seconds after which mrrun names hosts.
said() { grep -v '^mrrun: still waiting for the agents of these hosts, for 60 s at most: [abc]\(, [abc]\)*$' "$tmp/err" | sort | tr '\n' ';'; }
lives() { [ -e "/proc/$1" ] && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }
gone() { local p; for p in $(cat "$tmp/pids"); do lives "$p" && echo "process $p" && return 1; done; [ -z "$(ls -A "$TMPDIR")" ]; }
start() { # RANKS ARGS...: in the background, until all ranks have written their pids
  local ranks=$1
  shift
  : >"$tmp/pids"
  mrrun "$@" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  # shellcheck disable=SC2171 # two strings make one command
  wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = '"$ranks" ]
}
end_of() { # PID: waits for its end; how long that took is in $tmp/took, the status is its own
  timeout -t "$tmp/took" 120 sh -c "while kill -0 $1 2>/dev/null; do sleep 0.05; done" &
  wait "$1"
  local rc=$?
  wait $!
  return $rc
}

far -hosts a,b -n 4 "$client"
is "ranks on two hosts find each other" "$? $(sort "$tmp/out" | sed 's/ job.* map/ map/' | sed -n '1p;4p')" \
    "0 rank 0/4 local 0/2 nodes 2 node a map 0,0,1,1 peers 0,1
rank 3/4 local 1/2 nodes 2 node b map 0,0,1,1 peers 2,3"
is "and nothing else is said" "$(said)" ""
far -hosts a,b -n 2 sh -c 'echo "${SSH_CONNECTION% *}" | cut -d " " -f 3'
is "each runs on its host" "$? $(sorted)" "0 ${address[a]};${address[b]};"
KEPT='as it is' far -hosts a,b -genv ALL all -n 1 -env ONE=1 sh -c 'echo "$ONE $ALL $KEPT"' : -n 1 sh -c 'echo "$ONE $ALL $KEPT"'
is "with the environment of the job and of its part" "$? $(LC_ALL=C sorted)" "0  all as it is;1 all as it is;"
far -hosts b -n 2 "$BUILD/tests/mrrun/part" x
is "MPI on another host" "$? $(sorted)" "0 x: rank 0/2 appnum 0;x: rank 1/2 appnum 0;"
far -hosts a,b -l -n 2 bash -c 'for i in {1..2000}; do echo "line $i"; done; echo "to stderr" >&2'
is "no line is lost or out of order" "$? $(awk '$3 != ++n[$1] {bad++} END {print NR, bad + 0}' "$tmp/out") $(said)" \
    "0 4000 0 [0] to stderr;[1] to stderr;"
head -c 3000000 /dev/urandom >"$tmp/random"
far -hosts b,a -n 2 md5sum <"$tmp/random"
is "rank 0 reads standard input" "$? $(grep -c "$(md5sum <"$tmp/random")" "$tmp/out")" "0 1"
far -hosts a,b -n 2 sh -c 'exit $((PMI_RANK * 7))'
is "a rank's exit status" $? 7
far -hosts a,b -n 2 "$client" kill:1:6
is "a rank killed by a signal" "$? $(grep -c '^mrrun: rank 1 (host b, pid [0-9]*) was killed by signal 6' "$tmp/err")" "134 1"
far -hosts a,b -n 2 "$BUILD/tests/no-such-program"
is "a program that is not there" "$? $(grep -cE "^mrrun: host [ab], rank [01]: cannot run '.*no-such-program'" "$tmp/err")" "127 1"
LIMIT=300 far -hosts "a,b,$(echo n{1..18} | tr ' ' ',')" -n 20 sh -c 'echo $PMIX_HOSTNAME'
is "20 hosts: agents start agents by ssh" "$? $(sort -u "$tmp/out" | wc -l) $(grep -v 'still waiting' "$tmp/err")" "0 20 "

# ---- signals
start 2 -hosts a,b -n 2 bash -c "trap 'echo told; exit 0' USR1; echo \$\$ >>$tmp/pids; while :; do sleep 0.05; done"
kill -USR1 $pid
wait $pid
is "signals are passed on" "$? $(sorted)" "0 told;told;"
cat >"$tmp/terminal.py" <<'END'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
text, sent, end = b"", False, time.monotonic() + 100
while time.monotonic() < end:
    if not sent and text.count(b"ready") == 2:
        os.write(fd, b"\x03")
        sent = True
    if not select.select([fd], [], [], 0.1)[0]:
        continue
    try:
        bytes = os.read(fd, 4096)
    except OSError:
        break
    if not bytes:
        break
    text += bytes
open(sys.argv[1], "wb").write(text.replace(b"\r", b""))
status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status) % 256)
END
: >"$tmp/pids"
timeout 120 python3 "$tmp/terminal.py" "$tmp/out" mrrun -hosts a,b -n 2 bash -c "echo \$\$ >>$tmp/pids; echo ready; sleep 300"
is "Ctrl-C at a terminal ends the job" $? 130
like "and is told" "^(\^C)?mrrun: SIGINT: asking 2 ranks to end" "$tmp/out"
ok "with all its processes" wait_for 30 gone

# ---- hosts that cannot be used
bad() { far -hosts "a,$1" -n 2 touch "$tmp/started"; }
bad stranger
is "a host whose key is not known: the job ends" $? 1
like "and ssh's reason is told" "^mrrun: host stranger: its agent did not start: 'ssh' ended with status 255: Host key verification failed" "$tmp/err"
bad refused
like "a login that is refused" "^mrrun: host refused: its agent did not start: 'ssh' ended with status 255: .*Permission denied" "$tmp/err"
bad closed
like "a host without sshd" "^mrrun: host closed: its agent did not start: 'ssh' ended with status 255: .*Connection refused" "$tmp/err"
bad elsewhere
like "a host without mrmpi at this path" "^mrrun: host elsewhere: its agent did not start: 'ssh' ended with status 127: .*not found \(mrmpi must be there, under the same path as here\)" "$tmp/err"
not_ok "no rank has been started" test -e "$tmp/started"

# ---- a login that takes long, beside the others: it is awaited
echo $login >"$tmp/delay"
timeout 120 mrrun -hosts a,late -n 2 sh -c 'echo $PMIX_HOSTNAME' >"$tmp/late.out" 2>"$tmp/late.err" & late=$!

# ---- lost hosts. mrrun and ssh look for signs of life, and either may be first
silent='(silent for [34]|the connection ended.*not responding)'
sleeps="echo \$\$ >>$tmp/pids; echo \$PPID >$tmp/agent.\$PMIX_HOSTNAME; sleep 300"
parent() { awk '/^PPid:/ {print $2}' "/proc/$1/status"; }
start 2 -hosts a,b -n 2 sh -c "$sleeps"
kill -KILL "$(parent "$(cat "$tmp/agent.b")")"
end_of $pid
is "an sshd that is killed ends the job" "$? $(grep -c '^mrrun: host b: its agent is lost: the connection ended' "$tmp/err")" "1 1"
ok "at once" within 5
ok "and nothing is left" wait_for 30 gone
start 2 -hosts a,b -n 2 sh -c "$sleeps"
kill -STOP "$(parent "$(cat "$tmp/agent.a")")"
end_of $pid
is "so does one that is silent" "$? $(grep -cE "^mrrun: host a: its agent is lost: $silent" "$tmp/err")" "1 1"
ok "within 5 s" within 5
kill -CONT "$(parent "$(cat "$tmp/agent.a")")" 2>/dev/null
ok "and nothing is left, either" wait_for 30 gone
wait $late
is "a login that takes $login s is awaited" "$? $(sort "$tmp/late.out" | tr '\n' ';')" "0 a;late;"
is "and said to be" "$(sed 's/: a, late$/: late/' "$tmp/late.err")" "mrrun: still waiting for the agents of these hosts, for 60 s at most: late"
if [ -n "${OWN_NETWORK:-}" ]; then
  bad silent
  is "a host that does not answer at all is told" "$? $(grep -c "^mrrun: host silent: its agent did not start: 'ssh' ended with status 255: .*timed out" "$tmp/err")" "1 1"
  ok "within seconds" within 7
  start 2 -hosts a,b -n 2 sh -c "$sleeps"
  ip link set to-b down
  end_of $pid
  is "a host without its cable ends the job" "$? $(grep -cE "^mrrun: host b: its agent is lost: $silent" "$tmp/err")" "1 1"
  ok "within 5 s, too" within 5
  [ "${1:-}" = --all ] && ok "its ranks end there as well" wait_for 60 gone
  ip link set to-b up
  echo 100 >"$tmp/delay"
  : >"$tmp/logins"
  timeout -t "$tmp/took" 120 mrrun -hosts a,late -n 2 true >"$tmp/out" 2>"$tmp/err" & pid=$!
  wait_for 30 grep -q 'still waiting' "$tmp/err"
  ip link set to-c down
  end_of $pid
  is "a host that is lost during the login is told" "$? $(grep -c '^mrrun: host late: its agent did not start: .*Timeout, server .* not responding' "$tmp/err")" "1 1"
  ok "within 6 s" within 6
else
  ok "cables # SKIP hosts have no addresses of their own" true
fi
done_testing
