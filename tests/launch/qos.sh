#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# Accounts and qualities of service of a real Slurm, from slurmdbd and MariaDB, to classes of the fabric: by rules of the
# policy, by what users may choose, and after a change (scontrol update); and from there to the lanes of a simulated fabric.
. "$(dirname "$0")/fabric-wire.sh"
missing=''
for p in slurmdbd sacctmgr mariadbd mariadb-install-db; do command -v $p >/dev/null || missing+="$p "; done
[ -z "$missing" ] || skip_all "no Slurm with accounts here: $missing missing (packages slurmdbd mariadb-server)"
fabric_or_skip

cat >"$tmp/wire.yaml" <<'END'
version: 1
vls: 8
classes:
  - {name: gold, share: 60, choose: [{qos: high, account: physics}]}
  - {name: silver, share: 30}
  - {name: tin, share: 10}
jobs:
  default: tin
  rules: [{qos: high, class: silver}]
END
wire_start "$tmp/wire.yaml"

# ---- the database and its daemon ----------------------------------------------------------------------------------
db_port=$(free_port 2)
mariadb-install-db --no-defaults --user=root --datadir="$tmp/db" --auth-root-authentication-method=normal >"$tmp/db.log" 2>&1
mariadbd --no-defaults --user=root --datadir="$tmp/db" --socket="$tmp/db.sock" --bind-address=127.0.0.1 --port="$db_port" \
  --pid-file="$tmp/db.pid" >>"$tmp/db.log" 2>&1 &
db=$!
on_exit "kill $db 2>/dev/null; wait $db 2>/dev/null"
sql() { mariadb --no-defaults --socket="$tmp/db.sock" -u root -e "$1"; }
ok "a database" within 60 sql 'select 1'
sql "create user slurm@localhost identified by 'secret'; create user slurm@127.0.0.1 identified by 'secret';
  grant all on slurm_acct_db.* to slurm@localhost; grant all on slurm_acct_db.* to slurm@127.0.0.1"

slurm_config_more() {
  wire_config
  echo "AccountingStorageType=accounting_storage/slurmdbd"
  echo "AccountingStorageHost=127.0.0.1"
  echo "AccountingStoragePort=$((db_port + 1))"
  echo "AccountingStoragePass=$1/munge.socket" # so it is called
  echo "AccountingStorageEnforce=associations,qos"
}
# slurmdbd wants munge, which slurm_start starts: it waits for slurmdbd in slurmctld's place
eval "$(declare -f slurm_launch | sed '1s/slurm_launch/slurm_launch_plain/')"
slurm_launch() {
  if [ "$1" = slurmctld ]; then
    cat >"$slurm_dir/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$slurm_dir/munge.socket
DbdHost=$(hostname)
DbdAddr=127.0.0.1
DbdPort=$((db_port + 1))
SlurmUser=root
LogFile=$slurm_dir/slurmdbd.log
PidFile=$slurm_dir/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$db_port
StorageUser=slurm
StoragePass=secret
StorageLoc=slurm_acct_db
END
    chmod 600 "$slurm_dir/slurmdbd.conf"
    SLURM_CONF=$slurm_dir/slurm.conf slurm_launch_plain slurmdbd -D
    within 60 timeout 10 sacctmgr -i -n show cluster || cat "$slurm_dir/slurmdbd.log" >&2
    timeout 30 sacctmgr -i add cluster test >/dev/null 2>&1
    timeout 30 sacctmgr -i add qos high >/dev/null
    timeout 30 sacctmgr -i add account physics,biology >/dev/null
    timeout 30 sacctmgr -i add user nobody account=physics,biology defaultaccount=biology qos=normal,high defaultqos=normal >/dev/null
    timeout 30 sacctmgr -i add user root account=physics qos=normal,high >/dev/null
  fi
  slurm_launch_plain "$@"
}
ok "a Slurm of two nodes with accounts is up" slurm_start || done_testing
fabric_open

job=$(submit -N 2)
ok "a job has its user's default account and QOS" \
  within 30 both "^- .id: \"$job\", class: tin, source: rule, .*user: nobody, account: biology, qos: normal, partition: all"
"$tmp/lib/fabric-job" watch 1 2>"$tmp/watch.err" &
on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
sleep 1.5
if scontrol update "jobid=$job" QOS=high 2>"$tmp/err"; then
  ok "its QOS is changed while it runs, and so its class on both nodes" \
    within 20 both "^- .id: \"$job\", class: silver, source: rule, .*qos: high"
else
  echo "# this Slurm changes no running job's QOS: $(cat "$tmp/err")"
fi
is "nothing went wrong" "$(cat "$tmp/watch.err")" ""
ok "it ends" ends "$job"
job=$(submit -N 2 --hold)
ok "the QOS of one that waits is changed" scontrol update "jobid=$job" QOS=high
ok "it begins" scontrol release "$job"
ok "with that QOS's class" within 30 both "^- .id: \"$job\", class: silver, source: rule, .*qos: high"
ok "it ends" ends "$job"
job=$(submit -N 2 -A physics --qos=high --fabric-class=gold)
ok "what the account and the QOS together may choose" within 30 both "^- .id: \"$job\", class: gold, source: user, .*account: physics, qos: high"
ok "it ends" ends "$job"
job=$(submit -N 2 -A biology --qos=high --fabric-class=gold)
ok "and the QOS alone may not" within 30 both "^- .id: \"$job\", class: silver, source: rule, .*account: biology, qos: high"
ok "it ends" ends "$job"

job=$(submit -N 2)
ok "a job that runs" within 30 both "^- .id: \"$job\", class: tin, .*qos: normal"
ok "goes back to the queue" scontrol requeuehold "$job"
ok "where neither node knows it" within 30 neither "id: \"$job\""
ok "and can be changed" within 10 waits "$job" # its time to begin is set when all nodes have ended it
ok "is given another QOS there" within 10 scontrol update "jobid=$job" QOS=high StartTime=now
ok "and begins anew" scontrol release "$job"
ok "with that QOS's class" within 120 begins_again "$job" "class: silver, source: rule, .*qos: high.*"
ok "it ends" ends "$job"

# ---- on the wire
wire_begin -A biology --qos=high
ok "a program of a job with a QOS runs on both nodes" wire_on
is "on the lanes of the class that the QOS's rule gives" "$(wire_lanes)" "$(lanes_of silver)"
ok "it ends" wire_ends
wire_begin -A biology
ok "and one with its user's default QOS" wire_on
is "on those of the default class" "$(wire_lanes)" "$(lanes_of tin)"
ok "it ends" wire_ends
done_testing
