#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts of jobs join the partition of their job's class or account, and leave with the job: opensm's file, the ports'
# tables, status; a process of another job does not reach the job's queue pairs. Orders that fail leave nothing behind.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-rails.net" -- bash "$here/joins.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
file=$SIMFAB_DIR/opensm/partitions.conf
state=$SIMFAB_DIR/fabricd-h1
shipped 's/timeout: 20/timeout: 4/; s/interval: 5/interval: 1/'
members() { # KEY: the hosts whose ports all have it
  local h
  for h in h1 h2 h3 h4 h5 h6 h7 h8; do
    [[ " $(keys $h) " != *" 2 $1 "* ]] || echo $h
  done | xargs
}
settled() { [ "$(members "$1")" = "$2" ] || { echo "has $(members "$1")"; return 1; }; }
me=$(id -u)

cat >"$policy" <<END
version: 1
repair_pause: 1
classes:
  - {name: urgent, share: 60, priority: high, pkey: 0x0011, members: [login1, "h[007-010]"], job members: yes}
  - {name: normal, share: 40}
pkeys:
  - {account: physics, pkey: 0x0021, job members: yes}
  - {account: "chem*", user: nobody, pkey: 0x0022, members: h8}
jobs:
  default: normal
  rules:
    - {qos: fast, class: urgent}
END
ok "the subnet is up" simfab opensm wait
daemons_up
ok "the policy is in force" wait_for 20 verified 1 2
like "status has the partitions" 'name: urgent, .*pkey: "0x0011", members: \[login1, .*\], job_members: "yes"' <(fabricctl status)
like "of accounts, too" '^  - \{account: physics, pkey: "0x0021", job_members: "yes"\}$' <(fabricctl status)
is "no job, no members" "$(members 0x8011)$(members 0x8021)" ""
is "but those of the policy" "$(members 0x8022)" h8

# joining and leaving
ok "the hosts of a job" fabricctl job join 7 - h2 'h[3-4]' --user $me --qos fast
is "are members of its class's partition" "$(members 0x8011)" "h2 h3 h4"
ok "as verify says, too" fabricctl policy verify
like "the job is listed" '^- \{job: "7", pkey: "0x0011", hosts: h2 h3 h4\}$' <(fabricctl job joined)
ok "for programs, too" eval 'fabricctl job joined --json | grep -qx "\[{\"job\": \"7\", \"pkey\": \"0x0011\", \"hosts\": \"h2 h3 h4\"}\]"'
ok "another job, of an account" fabricctl job join 8 normal h4,h5 --account physics --run 2 --user $me
is "has the account's partition" "$(members 0x8021)" "h4 h5"
is "beside the other" "$(members 0x8011)" "h2 h3 h4"
ok "the node's processes of the account are told the partition" on h2 job set 8 normal --user $me --account physics
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock
explained() { mrrun --explain --hosts h4,h5 --job-id "$1" 2>/dev/null | grep -o 'P_Key 0x[0-9a-f]*' | sort -u | xargs; }
for h in h4 h5; do
  start $h
  wait_for 20 on $h status
  ok "$h, too" on $h job set 8 normal --user $me --account physics
done
ok "which has come there" wait_for 20 eval 'hosts="h4 h5" verified 1'
is "and which the library uses" "$(explained 8)" "P_Key 0x8021"
ok "a job of a class without partition" fabricctl job join 9 normal h6 --user $me
like "has nothing to join" "job 9 has class 'normal', which has no pkey: nothing to do" <(fabricctl job join 9 normal h6 --user $me)

wait_for 10 eval 'hosts="h2 h4" verified 1'
sleep 2.5 # of looks
ok "hosts that do not know the jobs find nothing wrong" eval 'hosts="h2 h4" verified 1'

# queue pairs
reach h2 listen 0x8011 >heard 2>err &
listener=$!
started
wait_for 10 test -s heard
read -r lid qpn <heard
ok "a process of the job on another host" reach h3 send $lid $qpn 0x8011 1
ok "reaches its queue pair" wait_for 10 grep -qx 1 heard
ok "a process of the account's job" reach h5 send $lid $qpn 0x8021 2
ok "a process of no job" reach h6 send $lid $qpn 0xffff 3
ok "which cannot choose the partition" exits 3 reach h6 send $lid $qpn 0x8011 4
ok "nor can the account's" exits 3 reach h5 send $lid $qpn 0x8011 5
ok "another one of the job" reach h4 send $lid $qpn 0x8011 6
ok "reaches it" wait_for 10 grep -qx 6 heard
is "the others do not" "$(sed 1d heard | xargs)" "1 6"
stop $listener

# two jobs on a host; a run that is over
ok "a second job of the class" fabricctl job join 10 urgent h4,h6 --user $me
is "adds a host" "$(members 0x8011)" "h2 h3 h4 h6"
ok "the first leaves" fabricctl job leave 7
is "its hosts leave, but where another job is" "$(members 0x8011)" "h4 h6"
ok "a late end of a run before" exits 1 fabricctl job leave 8 --run 1
is "changes nothing" "$(members 0x8021)" "h4 h5"
ok "it leaves once" exits 1 fabricctl job leave 7

# many at once
for i in $(seq 40); do fabricctl job join many$i urgent h$((i % 3 + 1)) --user $me >/dev/null 2>many.$i & pids[i]=$!; done
bad=0
for i in $(seq 40); do wait ${pids[i]} || { bad=$((bad + 1)); cat many.$i; }; done
is "40 jobs at once get their keys" $bad 0
is "which the ports have" "$(members 0x8011)" "h1 h2 h3 h4 h6"
for i in $(seq 40); do fabricctl job leave many$i >/dev/null 2>&1 & pids[i]=$!; done
for i in $(seq 40); do wait ${pids[i]}; done
ok "and leave" wait_for 10 settled 0x8011 "h4 h6"

# what cannot be
ok "a host that is not there" exits 1 fabricctl job join 11 urgent h3,h9 --user $me
is "is named" "$(fabricctl job join 11 urgent h3,h9 --user $me 2>&1)" "no active port in a subnet of this host: h9
fabricctl: not done"
ok "and its job has not joined" wait_for 10 settled 0x8011 "h4 h6"
not_ok "by the list, neither" grep -q '"11"' <(fabricctl job joined)
ok "a range that is none" exits 2 fabricctl job join 11 urgent 'h[3-1]' --user $me
ok "a class that there is not" exits 2 fabricctl job join 11 golden h3 --user $me
ok "an order to another host" exits 1 on h2 job join 11 urgent h3 --user $me
like "is refused with the reason" "^opensm does not run here" <(on h2 job join 11 urgent h3 --user $me 2>&1)
is "and leaves nothing there" "$(on h2 job joined)" "[]"
if [ "$me" = 0 ] && command -v setpriv >/dev/null; then
  cp "$BUILD/bin/fabricctl" . && chmod 711 "$tmp"
  ok "another user" exits 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/fabricctl" job join 11 urgent h3
fi

# Slurm's controller
cat >ssh <<'END'
#!/bin/sh
[ "$1 $2 $3 $4" = "-n -o BatchMode=yes root@boss" ] || exit 255
eval "$5"
END
chmod +x ssh
slurm() { # NODES VERB [VARIABLE=VALUE...]
  env SLURM_JOB_ID=77 SLURM_JOB_UID=$me SLURM_JOB_ACCOUNT=physics SLURM_JOB_PARTITION=p SLURM_JOB_QOS=q \
    SLURM_JOB_NAME="it's \$HOME" SLURM_JOB_RESTART_COUNT=1 SLURM_JOB_NODELIST="$1" "${@:3}" "$BUILD/libexec/mrmpi/fabric-job" "$2"
}
ok "slurmctld's prolog" slurm 'h[5-7]' join
is "lets the hosts join" "$(members 0x8021)" "h4 h5 h6 h7"
ok "an epilog of a run before" slurm 'h[5-7]' leave SLURM_JOB_RESTART_COUNT=0
is "changes nothing" "$(members 0x8021)" "h4 h5 h6 h7"
ok "its epilog" slurm 'h[5-7]' leave
ok "which is run again" slurm 'h[5-7]' leave
is "lets them leave" "$(members 0x8021)" "h4 h5"
ok "a prolog whose job cannot have its keys" exits 1 slurm h99 join
ok "a prolog on another host than opensm's" slurm h6 join FABRIC_MANAGER=boss PATH="$tmp:$PATH"
is "lets the host join" "$(members 0x8021)" "h4 h5 h6"
ok "and its epilog" slurm h6 leave FABRIC_MANAGER=boss PATH="$tmp:$PATH"
is "leave" "$(members 0x8021)" "h4 h5"

# opensm does not take it
sm=$(simfab opensm pid)
kill -STOP "$sm"
fabricctl job join 12 urgent h2 --user $me >q 2>&1 && rc=0 || rc=$?
is "while opensm is stopped a job does not join" $rc 1
like "and hears which port lacks what" "h2 mlx5_[01] .*: P_Key 0x0011 of class 'urgent': expected full membership found none" q
kill -CONT "$sm"
ok "nor later" wait_for 10 verified 1
is "its host is no member" "$(members 0x8011)" "h4 h6"
# fabricd is killed while it waits for opensm
kill -STOP "$sm"
fabricctl job join 13 urgent h3 --user $me >q 2>&1 &
join=$!
ok "the file has a host" wait_for 10 grep -q 'h3 mlx5_1' "$file"
kill -9 "${daemon_of[1]}"
wait "${daemon_of[1]}" $join 2>/dev/null
kill -CONT "$sm"
start h1
ok "after a restart it is verified" wait_for 20 verified 1
ok "with the job's host" wait_for 10 settled 0x8011 "h3 h4 h6"
not_ok "and nothing remains to be done" test -e "$state/intent"
ok "a job that nobody ends" fabricctl job join 14 urgent h2 --user $me --lease 2
is "is there" "$(members 0x8011)" "h2 h3 h4 h6"
ok "leaves when its time is over" wait_for 10 settled 0x8011 "h3 h4 h6"

# another policy, and none
sed -i 's/share: 60/share: 50/; s/pkey: 0x0021, job members: yes/pkey: 0x0021/' "$policy"
ok "another policy" fabricctl policy apply "$policy"
is "keeps the members of jobs" "$(members 0x8011)" "h3 h4 h6"
is "and takes out those whose partition is not its own any more" "$(members 0x8021)" ""
ok "a damaged table" sh -c "echo '- {torn' >$state/joins.yaml"
kill -9 "${daemon_of[1]}"
wait "${daemon_of[1]}" 2>/dev/null
start h1
wait_for 20 on h1 status
is "is put aside" "$(cat "$state"/joins.yaml.corrupt-20*Z)" '- {torn'
ok "and its jobs have no partition" wait_for 20 settled 0x8011 ""
ok "back to before the first policy" fabricctl policy rollback 0
is "nobody is a member of anything" "$(members 0x8011)$(members 0x8022)" ""
not_ok "the file is gone" test -e "$file"
done_testing
