#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fabricd by itself, on a host without any adapter: start, state, signals, activation, limits.

. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
unset SIMFAB_DIR SIM_HOST LD_PRELOAD
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
  skip_all "this host has an adapter"
fi

cat >fabricd.yaml <<END
policy: $tmp/policy.yaml
state: $tmp/state
socket: $tmp/%h.sock
clients: {total: 8}
END
cp "$top/etc/policies/simple.yaml" policy.yaml
FABRICD_SOCKET=$tmp/$(hostname).sock
mkdir state
touch state/policy.yaml.tmp-aB3xY9 state/jobs.yaml.corrupt-20260101T000000Z.tmp-000000 state/reserve # a daemon was killed while it wrote
touch state/policy.yaml.backup state/notes.tmp-1234567 state/.tmp-123456             # somebody else's
mkdir state/kept.tmp-abcdef
fabricd --config fabricd.yaml 2>log &
daemon=$!
started
ok "serves at the socket with the host's name" wait_for 10 fabricctl status
is "what a daemon before had not written to its end is gone, and nothing else" "$(cd state && ls -A | LC_ALL=C sort | xargs)" \
  ".tmp-123456 current generations kept.tmp-abcdef lock notes.tmp-1234567 policy.lock policy.yaml policy.yaml.backup"
"$tool" query "$FABRICD_SOCKET" 1 >q
like "the configured policy is in force for jobs, unverified, without rails" \
  'status=0 .*generation=1 class=normal small=4 bulk=5 .*verified=0 rails=$' q
ok "status says why nothing is verified" wait_for 5 status_has 'state: the fabric cannot be looked at, .*why: "?this host has no InfiniBand adapter, or its driver is not loaded'
fabricctl policy verify >q 2>&1
like "and so does a look" '^the fabric cannot be looked at: this host has no InfiniBand adapter, or its driver is not loaded$' q
fabricd --config fabricd.yaml --socket "$tmp/other.sock" 2>q
like "a second daemon may not use the same state" 'state/lock: another fabricd uses this state directory' q

ok "and which file it follows" status_has "^follows: \{file: $tmp/policy.yaml, waiting: \"no\"\}"
# directories and files that others can write
mkdir open theirs
chmod 777 open
exits 1 fabricd --config fabricd.yaml --state "$tmp/open" 2>q
like "a state directory where others can write is not used" '/open is not used: others can write there' q
is "nor touched" "$(ls -A open)" ""

mkdir -p open/below/it open-sticky/below
chmod 1777 open-sticky
ln -s "$tmp/open/below" open-sticky/link
ln -s "$tmp/state" linked
exits 1 fabricd --config fabricd.yaml --state "$tmp/open/below/it" 2>q
like "nor one below such a directory" "/open/below/it is not used: $tmp/open is on the way there, and others can write there" q
exits 1 fabricd --config fabricd.yaml --state "$tmp/open-sticky/link/it" 2>q
like "nor one to which a link leads on such a way" "/link/it is not used: $tmp/open is on the way there, and others can write there|/it is not used: .*/open is on" q
exits 1 fabricd --config fabricd.yaml --state "$tmp/linked" 2>q
like "nor a link" '/linked is not used: it is a symbolic link' q
if [ "$(id -u)" = 0 ]; then
  chown nobody theirs
  exits 1 fabricd --config fabricd.yaml --state "$tmp/theirs" 2>q
  like "nor one of another user" '/theirs is not used: it belongs to another user' q
fi
fabricd --config fabricd.yaml --state "$tmp/made" --socket "$tmp/made.sock" 2>/dev/null &
made=$!
wait_for 10 fabricctl --socket made.sock status
is "one that it makes is for nobody else to read" "$(stat -c %a made)" 700
stop $made

mkdir -m 700 torn
for f in rails.yaml jobs.yaml masters.yaml intent; do echo '- {torn' >torn/$f; done
fabricd --config fabricd.yaml --state "$tmp/torn" --socket "$tmp/torn.sock" 2>torn.log &
made=$!
wait_for 10 fabricctl --socket torn.sock status
stop $made
for f in rails.yaml jobs.yaml masters.yaml intent; do
  is "$f, which is damaged, is put aside as it was" "$(cat torn/$f.corrupt-20*Z)" '- {torn'
  like "and named" "is kept as .*torn/$f.corrupt-20[0-9]{6}T[0-9]{6}Z" torn.log
done

sed -i 's/default: normal/default: batch/' policy.yaml
ok "the file is taken up when it has changed, whatever can be seen of the fabric" wait_for 6 status_has '^policy: .*generation: 2'
"$tool" query "$FABRICD_SOCKET" 1 >q
like "and jobs have what it says" 'status=0 .*generation=2 class=batch ' q
fabricctl policy apply policy.yaml >q 2>&1
like "nothing else is put in force here" "this host follows $tmp/policy.yaml: apply the policy on the host that runs opensm" q

"$tool" watch "$FABRICD_SOCKET" 1 >watch 2>&1 &
started
ok "a subscriber" wait_for 5 grep -q '^seq=5' watch
owner_needed() {
  [ "$(id -u)" != 0 ] || { exits 2 fabricctl job set nobodys urgent >q 2>&1 && grep -q '^job nobodys has no owner, .*--user says' q; }
}
ok "a job with every field" fabricctl job set 7 urgent --account a --name 'x: y' --qos q --partition p --user 4242
fabricctl job list >q
like "is listed" '^- \{id: "7", class: urgent, source: scheduler, since: "20[0-9-]+T[0-9:]+Z", uid: 4242, account: a, qos: q, partition: p, name: "x: y"\}$' q
fabricctl job list --json >q
like "for programs, too" '^\[\{"id": "7", "class": "urgent", "source": "scheduler", "since": "20[0-9-]+T[0-9:]+Z", "uid": 4242, ' q
for what in status "job list" "job show" "rail list" "policy lock"; do
  job=
  [ "$what" != "job show" ] || job=7
  ok "$what is JSON if it is to be" answers "$what" 0 $what $job
done
fabricctl job show 7 --json >q
like "a job that is there is shown with its class" '^\{"job": "7", "class": "urgent"' q
ok "so is one that is not" answers "job show" 0 job show 8
like "which is said" '^\{"job": "8", "known": false, "class": "[a-z]+"' answer
ok "so is what top sees" answers top 0 top --interval 1 --count 2
is "on a line each" "$(wc -l <answer)" 2
ok "it is given another class" answers outcome 0 job give 7 batch
is "of which programs hear that it is done" "$(cat answer)" '{"exit": 0, "messages": []}'
fabricctl job list >q
like "and nothing else" '^- \{id: "7", class: batch, source: scheduler, since: "[^"]+", uid: 4242, account: a, qos: q, partition: p, name: "x: y"\}$' q
ok "it is given a small ratio alone" fabricctl job give 7 --small-ratio 1:99
fabricctl job list >q
like "which it has" '^- \{id: "7", class: batch, .* name: "x: y", small_ratio: "1:99"\}$' q
ok "that stays with another class" fabricctl job give 7 urgent
ok "and goes with this one" fabricctl job give 7 batch --small-ratio none
fabricctl job list >q
like "to none" '^- \{id: "7", class: batch, .* name: "x: y"\}$' q
ok "it is renewed with one" fabricctl job set 7 - --renew --small-ratio 0:1000
like "which is kept" 'id: "7", .*small_ratio: "0:1000"' state/jobs.yaml
ok "it is renewed without" fabricctl job set 7 - --renew --account a
ok "which keeps it" sh -c 'fabricctl job list | grep -q "small_ratio: \"0:1000\""'
ok "one that is none is refused" exits 2 fabricctl job give 7 --small-ratio 1:0
ok "a class or a ratio is needed" exits 2 fabricctl job give 7
ok "root's job without an owner is refused" owner_needed
ok "none that is not there" exits 1 fabricctl job give 8 batch
ok "nor one that there is not" exits 2 fabricctl job give 7 golden
ok "in JSON, too" answers outcome 2 job give 7 golden
is "with the reason" "$(cat answer)" '{"exit": 2, "error": "refused; nothing was changed", "messages": '"[\"the policy in force has no class 'golden'; allowed: urgent normal batch\"]}"
ok "a job is set" answers outcome 0 job set 9 batch --user 4242
ok "its user's choice is refused" answers outcome 1 job choose 9 urgent
ok "it is forgotten" answers outcome 0 job del 9
ok "once" answers outcome 1 job del 9
like "of which programs hear why" '"error": "not done: there is no such job"' answer
ok "there is no such class to forget" answers outcome 1 policy forget golden
ok "here a policy is not applied" answers outcome 1 policy apply policy.yaml
ok "and nothing to be verified" answers outcome 1 policy verify
ok "a daemon that is not there" answers outcome 1 --socket "$tmp/nobody" status
like "is that in JSON" '"error": "/.*/nobody: nobody serves there; ' answer
ok "and forgotten" fabricctl job del 7
ok "once" exits 1 fabricctl job del 7
ok "an id that is too long is refused" exits 2 fabricctl job set "$(printf 'x%.0s' {1..64})" urgent --user "$(id -u)"
ok "no such command" exits 2 fabricctl jobs
ok "no daemon there" exits 1 fabricctl --socket "$tmp/nobody" status

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 "$tmp"
  cp "$tool" "$BUILD/bin/fabricctl" .
  other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
  for _ in 1 2 3 4 5 6 7; do
    other ./fabric_tool watch "$FABRICD_SOCKET" 1 >>others 2>&1 &
    started
  done
  crowd() { [ "$(grep -c '^seq=5' others)" = 7 ]; }
  ok "8 clients may connect" wait_for 5 crowd
  ok "the ninth may not" exits 1 other ./fabricctl status
  ok "but root still gets in" fabricctl status
  before=$(grep -c 'uid 65534 .* has too many connections' log)
  other sh -c 'for i in $(seq 200); do ./fabricctl status; done' >/dev/null 2>&1
  ok "of 200 refusals in a row the log counts most" wait_for 5 grep -Eq 'more lines about requests of uid 65534 are left out' log
  is "and has some" "$(grep -c 'uid 65534 .* has too many connections' log | awk -v b="$before" '{print ($1 - b < 60 ? "few" : $1)}')" few
fi

# a socket in a directory where others can write
mkdir -m 777 shared
echo secret >theirs.txt
chmod 600 theirs.txt
ln -s "$tmp/theirs.txt" shared/link.sock
ln -s "$tmp/nowhere" shared/dangling.sock
for where in link dangling; do
  fabricd --config fabricd.yaml --state "$tmp/state-$where" --socket "$tmp/shared/$where.sock" 2>>shared.log &
  other=$!
  wait_for 10 fabricctl --socket "$tmp/shared/$where.sock" status >/dev/null
  is "a link that is in its socket's place ($where) is replaced by the socket, for everybody" \
    "$(stat -c '%F %a' "shared/$where.sock")" "socket 666"
  stop $other
done
is "and what it led to is untouched" "$(stat -c %a theirs.txt) $(cat theirs.txt) $(ls nowhere 2>&1 | grep -c 'No such')" "600 secret 1"

kill $daemon
rc=0
wait $daemon || rc=$?
is "SIGTERM ends it with status 0" $rc 0

# more jobs than a socket takes at once
{ echo jobs:; for i in $(seq 4000); do echo "  - {id: many-$i, class: batch, uid: 4242, account: an-account-with-a-long-name-$i}"; done; } \
  >state/jobs.yaml
mv state "state-$(hostname)"
sed -i "s|^state: .*|state: $tmp/state-%h|; /^clients/d" fabricd.yaml
fabricd --config fabricd.yaml 2>log3 &
daemon=$!
started
ok "a daemon with 4,000 jobs, in a directory with the host's name" wait_for 10 fabricctl status
fabricctl job list >q
is "lists all of them, each once" "$(wc -c <q | awk '{print ($1 > 300000)}') $(sed 's/^- .id: \(many-[0-9]*\), class: batch, .*/\1/' q | sort -u | wc -l)" "1 4000"
is "for programs, too" "$(fabricctl job list --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))')" 4000
fabricctl status >q
like "the status begins with some, and says where the others are" '^more_jobs: fabricctl job list$' q
ok "one of 4,000 is changed" fabricctl job set many-2000 urgent --user 4242
ok "how many jobs each class has is told of all of them" status_has '^jobs_by_class: \{urgent: 1, normal: 0, batch: 3999\}$'
ok "in JSON, too" answers status 0 status
like "as a member" '"jobs_by_class": \{"urgent": 1, "normal": 0, "batch": 3999\}' answer
fabricctl top --interval 1 --count 1 >q
is "top counts all of them" "$(sed -n 's/^\(urgent\|normal\|batch\) .* \([0-9]*\)$/\1 \2/p' q | xargs)" "urgent 1 normal 0 batch 3999"
jobs_in() { grep -c '^many-' "$1"; }
like "and says how many it has not got" "^and $((4000 - $(jobs_in q))) more: fabricctl job list\$" q
script -q -c 'stty rows 20 columns 60; fabricctl top --interval 1 --count 1' /dev/null 2>&1 </dev/null | tr -d '\r' >q
is "a terminal of 20 lines is filled" "$(wc -l <q)" 19
like "and says for how many it has no room" "^and $((4000 - $(jobs_in q))) more: fabricctl job list\$" q
cat >crowd.py <<'END'
import os, resource, signal, socket, subprocess, sys
path, pid, n = sys.argv[1], int(sys.argv[2]), 1000
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if hard != resource.RLIM_INFINITY and hard < n + 150:
    n = hard - 150  # of this process and of fabricd
resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n + 50), hard))
os.kill(pid, signal.SIGSTOP)  # it is busy
crowd = []
try:
    for i in range(n):
        crowd.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        crowd[-1].setblocking(False)
        crowd[-1].connect(path)
finally:
    os.kill(pid, signal.SIGCONT)
for _ in range(100):
    status = subprocess.run(["fabricctl", "status"], capture_output=True, text=True).stdout
    if f"clients: {n + 1}}}" in status:
        sys.exit(0)
sys.exit(status)
END
ok "a thousand who come while it is busy are all served" python3 crowd.py "$FABRICD_SOCKET" $daemon
stop $daemon

if command -v systemd-socket-activate >/dev/null; then
  FABRICD_SOCKET=$tmp/activated.sock
  systemd-socket-activate --seqpacket -l "$FABRICD_SOCKET" "$BUILD/bin/fabricd" --config "$tmp/fabricd.yaml" 2>log2 &
  started
  ok "systemd's socket is used" wait_for 10 fabricctl status
  "$tool" query "$FABRICD_SOCKET" 1 >q
  like "with the state of before" 'status=0 .*generation=2 class=batch' q
fi

# the journal: a socket of our own where it would be
if unshare --mount true 2>/dev/null; then
  cat >journal.py <<'END'
import os, socket, subprocess, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
os.makedirs("/run/systemd/journal", exist_ok=True)
s.bind("/run/systemd/journal/socket")
s.settimeout(20)
p = subprocess.Popen(sys.argv[1:], env={**os.environ, "JOURNAL_STREAM": "8:1"}, stderr=open("log3", "w"))
try:
    print(" ".join(sorted(s.recv(65536).decode().split("\n"))), file=open("journal", "w"))
finally:
    p.terminate()
    p.wait()
END
  ok "the journal gets fields" timeout 30 unshare --mount sh -c 'mount --make-rprivate / && mount -t tmpfs none /run && exec "$@"' sh \
    python3 journal.py fabricd --config "$tmp/fabricd.yaml" --state "$tmp/state3" --socket "$tmp/journal.sock"
  like "with the ids of log.h" "MESSAGE_ID=$(sed -n 's/^#define LOG_FABRIC_UNSEEN *"\(.*\)"/\1/p' "$top/fabricd/base/log.h") PRIORITY=4 SYSLOG_IDENTIFIER=fabricd" journal
fi

done_testing
