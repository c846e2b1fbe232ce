# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by test scripts after tap.sh: a Slurm cluster of its own on this machine, of two nodes with four processors each.
#
#   slurm_or_skip           leaves the test out where Slurm is not installed; a lab has to have it (LAB_REQUIRED)
#   slurm_start             starts munged, slurmctld and a slurmd for each node, all below $tmp, and waits until nodes are
#                           idle; sets SLURM_CONF, so that srun and the others ask this cluster. They end with the test.
#
# Nothing of the host's own Slurm or munge is read or written: key, socket, state and logs are in $tmp, ports are free ones.
# Where Slurm was not built to serve several nodes of a machine (slurmd -N), a slurmd has the node of its host's name: then each
# gets a UTS namespace with a name of its own.

slurm_pids=()

slurm_missing() { # what is needed and not there
  local p
  for p in munged mungekey slurmctld slurmd srun sbatch salloc scontrol; do command -v "$p" >/dev/null || echo "$p"; done
  [ -n "$(find /usr/lib*/ -path '*slurm*' -name mpi_pmi2.so 2>/dev/null)" ] || echo mpi_pmi2.so
  [ "$(id -u)" -eq 0 ] || echo root
}
slurm_or_skip() {
  local missing
  missing=$(slurm_missing | tr '\n' ' ')
  [ -z "$missing" ] || [ -n "${LAB_REQUIRED:-}" ] ||
    skip_all "no Slurm here: $missing missing (packages slurmctld slurmd slurm-client munge)"
}

slurm_many() { slurmd -h 2>&1 | grep -qE '^ +-N '; } # does a slurmd serve the node that it is told?

slurm_config() { # DIR PORT
  local n1=n1 n2=n2
  slurm_many && n1=$(hostname) n2=$(hostname)
  cat <<CONF
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$2
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool.%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.%n.log
SlurmdParameters=config_overrides
TmpFS=$1/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
PropagateResourceLimits=NONE
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=2
InactiveLimit=0
NodeName=n1 NodeHostname=$n1 NodeAddr=127.0.0.1 Port=$(($2 + 1)) CPUs=4
NodeName=n2 NodeHostname=$n2 NodeAddr=127.0.0.1 Port=$(($2 + 2)) CPUs=4
PartitionName=all Nodes=n1,n2 Default=YES State=UP OverSubscribe=FORCE:8
CONF
}

slurm_launch() { # CMD...: a server in the foreground of a process of ours
  "$@" >>"$slurm_dir/servers.log" 2>&1 </dev/null &
  slurm_pids+=($!)
}

slurm_steps() { # processes of this cluster's jobs: the steps' daemons and what runs in them
  local p
  for p in /proc/[0-9]*; do
    { tr '\0' '\n' <"$p/environ" | grep -qx "SLURM_CONF=$SLURM_CONF" &&
      { [ "$(cat "$p/comm")" = slurmstepd ] || tr '\0' '\n' <"$p/environ" | grep -q '^SLURM_JOB_ID='; }; } 2>/dev/null &&
      echo "${p#/proc/}"
  done
}

slurm_stop() {
  local pid
  scancel --full --signal=KILL --user=root >/dev/null 2>&1
  for pid in "${slurm_pids[@]}"; do kill "$pid" 2>/dev/null; done
  for pid in "${slurm_pids[@]}"; do
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  for pid in $(slurm_steps); do kill -9 "$pid" 2>/dev/null; done
}

slurm_ready() { [ "$(sinfo -h -N -p all -o %t 2>/dev/null | tr '\n' ' ')" = "idle idle " ]; }

slurm_start() {
  slurm_dir=$tmp/slurm
  local port n
  unset "${!SLURM_@}"
  port=$(free_port 3)
  for n in state tmp.n1 tmp.n2 spool.n1 spool.n2; do mkdir -p "$slurm_dir/$n"; done
  slurm_config "$slurm_dir" "$port" >"$slurm_dir/slurm.conf"
  : >"$slurm_dir/cgroup.conf"
  export SLURM_CONF=$slurm_dir/slurm.conf
  on_exit slurm_stop
  mungekey --create --keyfile "$slurm_dir/munge.key" || return 1
  slurm_launch munged --foreground --force --key-file="$slurm_dir/munge.key" --socket="$slurm_dir/munge.socket" \
    --pid-file="$slurm_dir/munged.pid" --log-file="$slurm_dir/munged.log" --seed-file="$slurm_dir/munge.seed"
  for _ in $(seq 100); do [ -S "$slurm_dir/munge.socket" ] && break; sleep 0.1; done
  slurm_launch slurmctld -D
  for n in n1 n2; do
    if slurm_many; then
      FABRICD_SOCKET=$tmp/$n.sock slurm_launch slurmd -D -N $n
    else
      FABRICD_SOCKET=$tmp/$n.sock slurm_launch unshare --uts sh -c "hostname $n && exec slurmd -D"
    fi
  done
  for _ in $(seq 300); do slurm_ready && return 0; sleep 0.1; done
  tail -n 20 "$slurm_dir"/*.log >&2
  return 1
}
