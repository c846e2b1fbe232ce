#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# A real slurmctld has the hosts of a job join the partition of its class or account before the job begins, by fabric-job
# as PrologSlurmctld and EpilogSlurmctld: sbatch, srun, a job that is requeued, and a subnet manager that does not answer.
# The nodes n1 and n2 are the hosts h1 and h2 of a simulated subnet.
. "$(dirname "$0")/fabric-wire.sh"
fabric_or_skip

cat >"$tmp/wire.yaml" <<'END'
version: 1
vls: 8
classes:
  - {name: gold, share: 60, pkey: 0x0011, job members: yes}
  - {name: tin, share: 40}
pkeys:
  - {account: physics, pkey: 0x0021, job members: yes}
jobs:
  default: tin
  rules: [{partition: urgent, class: gold}]
END
wire_start "$tmp/wire.yaml"

# the scripts of fabricd(8), for hosts with other names than Slurm's nodes
for verb in join leave; do
  cat >"$tmp/$verb" <<END
#!/bin/sh
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock SLURM_CONF=$tmp/slurm/slurm.conf
SLURM_JOB_NODELIST=\$(echo "\$SLURM_JOB_NODELIST" | tr n h)
"$tmp/lib/fabric-job" $verb >>"$tmp/$verb.out" 2>&1
rc=\$?
echo "$verb \$SLURM_JOB_ID \${SLURM_JOB_RESTART_COUNT:-} \$rc" >>"$tmp/orders"
exit \$rc
END
  chmod 755 "$tmp/$verb"
done
slurm_config_more() {
  echo "PartitionName=urgent Nodes=n1,n2 State=UP OverSubscribe=FORCE:8"
  echo "SelectTypeParameters=CR_CPU" # jobs beside each other
  printf 'PrologSlurmctld=%s\nEpilogSlurmctld=%s\n' "$tmp/join" "$tmp/leave"
  wire_config
}
ok "a Slurm of two nodes is up" slurm_start || done_testing
fabric_open

keys() { # HOST: the P_Keys of its ports, by their tables
  simfab exec "$1" -- sh -c 'cat /sys/class/infiniband/mlx5_[01]/ports/1/pkeys/?' | grep -v -e 0x0000 -e 0xffff | sort | uniq -c | xargs
}
show() { ctl h1 job joined; cat "$tmp/orders"; tail -n 3 "$tmp/join.out" "$tmp/leave.out" "$tmp/slurm/slurmctld.log"; }
have() { [ "$(keys h1)/$(keys h2)" = "$1" ] || { echo "h1: $(keys h1), h2: $(keys h2)"; show; return 1; }; }
joined() { ctl h1 job joined | grep -E -- "$1" || { show; return 1; }; }
again() { # REGEX: the job that is in the queue begins, without Slurm's two minutes
  scontrol release "$job"
  scontrol update "jobid=$job" StartTime=now
  joined "$1"
}
# what a job's first processes see of their hosts' tables
cat >"$tmp/look" <<END
#!/bin/sh
cat /sys/class/infiniband/mlx5_[01]/ports/1/pkeys/? | grep -v -e 0x0000 -e 0xffff || echo none
END
chmod 755 "$tmp/look"
look() { as_user srun --chdir=/ "$@" "$tmp/look" 2>"$tmp/err" | sort | uniq -c | xargs; } # OPTION...

# ---- srun
is "a job of an account finds the P_Key on both of its hosts when it begins" "$(look -N 2 -n 2 -A physics)" "4 0x8021"
ok "and no host keeps it when the job has ended" within 30 have /
is "a job of another account has none" "$(look -N 2 -n 2 -A biology)" "2 none"
is "a job of a class, on one host" "$(look -N 1 -n 1 -w n2 -p urgent)" "2 0x8011"
ok "leaves it, too" within 30 have /

# ---- sbatch
job=$(submit -N 2 -A physics --time=10)
ok "a batch job has joined" within 30 joined "^- .job: \"$job\", run: 0, pkey: \"0x0021\", until: [0-9]+, hosts: h1 h2.\$"
ok "its hosts are members" within 10 have "2 0x8021/2 0x8021"
other=$(submit -N 1 -w n1 -p urgent)
ok "beside another job" within 30 joined "^- .job: \"$other\", run: 0, pkey: \"0x0011\", .*hosts: h1.\$"
ok "whose host has both" within 10 have "2 0x8011 2 0x8021/2 0x8021"
ok "that one is cancelled" scancel "$other"
ok "and leaves alone" within 30 have "2 0x8021/2 0x8021"
ok "the other goes back to the queue" scontrol requeue "$job"
ok "and begins again as another run, which joins" within 120 again "^- .job: \"$job\", run: 1, pkey: \"0x0021\", .*hosts: h1 h2.\$"
ok "the epilog of the run before" grep -q "^leave $job " "$tmp/orders"
ok "takes it nothing" within 10 have "2 0x8021/2 0x8021"
ok "it is cancelled" scancel "$job"
ok "and leaves" within 30 have /

# ---- a program in the partition
wire_begin -A physics
ok "a program runs on both nodes of its job" wire_on
ok "in the partition" have "2 0x8021/2 0x8021"
ok "it ends well: all messages have arrived" wire_ends
ok "and its hosts leave" within 30 have /

# ---- a partition that cannot be had
sm=$(simfab opensm pid)
kill -STOP "$sm"
job=$(submit -N 2 -A physics)
ok "with a subnet manager that does not take it the prolog fails" within 90 grep -q "^join $job .* 1\$" "$tmp/orders"
like "with the reason" "P_Key 0x0021 .*: expected full membership found none" "$tmp/join.out"
ok "the job has not run" within 10 waits "$job"
ok "and has not joined" eval '[ "$(ctl h1 job joined)" = "[]" ]'
kill -CONT "$sm"
ok "when it does" within 60 verified h1
ok "the job begins" within 120 again "^- .job: \"$job\", .*hosts: h1 h2.\$"
ok "in its partition" within 10 have "2 0x8021/2 0x8021"
ok "it ends" scancel "$job"
ok "and leaves" within 30 have /

# ---- a job that is cancelled while its prolog waits
kill -STOP "$sm"
job=$(submit -N 2 -A physics)
ok "a prolog waits for the subnet manager" within 30 joined "^- .job: \"$job\","
ok "its job is cancelled, and Slurm kills the prolog" scancel "$job"
sleep 1
kill -CONT "$sm"
ok "its epilog takes its hosts out" within 60 grep -q "^leave $job .* 0\$" "$tmp/orders"
ok "when the subnet manager goes on, of opensm's file and the ports, too" within 60 eval 'have / && ! grep 0x0021 "$SIMFAB_DIR/opensm/partitions.conf"'
is "and of the list" "$(ctl h1 job joined)" "[]"
done_testing
