# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced after tap.sh: the cluster's nodes have a fabricd each, and its jobs are told to them by the plugin.
#
#   fabric_or_skip          leaves the test out without Slurm or the plugin, and with sanitizers
#   fabric_start            copies what users run (they cannot read everybody's build directory) and starts a fabricd for n1
#                           and n2, with $tmp/policy.yaml
#   as_user CMD...          as nobody, for a minute
#   submit OPTION...        prints the id of a batch job of nobody's
#   has NODE REGEX, both REGEX, neither REGEX    a line of `job list` there
#   within SECONDS CMD...   until it succeeds, with ten tries for each second at least
#   waits JOB               it is in the queue, all of its nodes have ended it
#   begins_again JOB REGEX  it runs in a run after the first, and both nodes have REGEX and the run's number
#   ends JOB                it is cancelled, and neither node knows it any more

. "$(dirname "${BASH_SOURCE[0]}")/slurm-cluster.sh"

fabric_or_skip() {
  slurm_or_skip
  [ -z "$(sanitizers)" ] || skip_all "Slurm's programs load the plugin, and have no sanitizer's runtime"
  [ -e "$BUILD/lib/mrmpi_fabric.so" ] || [ -n "${LAB_REQUIRED:-}" ] || skip_all "the plugin is not built (package libslurm-dev)"
}

eval "$(declare -f slurm_config | sed '1s/slurm_config/slurm_config_plain/')"
slurm_config() {
  slurm_config_plain "$@"
  echo "PlugStackConfig=$tmp/plugstack.conf"
  echo "PrologFlags=Alloc"
  slurm_config_more "$@"
}
slurm_config_more() { :; } # for the test to say

fabric_start() {
  local n
  export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/bus
  chmod 755 "$tmp"
  mkdir -p "$tmp/lib" "$tmp/bin" "$tmp/libexec/mrmpi"
  cp "$BUILD/lib/mrmpi_fabric.so" "$tmp/lib"
  cp "$BUILD/libexec/mrmpi/fabric-job" "$tmp/libexec/mrmpi"
  ln -s ../libexec/mrmpi/fabric-job "$tmp/lib"
  cp "$BUILD/bin/fabricctl" "$BUILD/tests/fabricd/fabric_tool" "$tmp/bin"
  echo "optional $tmp/lib/mrmpi_fabric.so socket=$tmp/%n.sock" >"$tmp/plugstack.conf"
  for n in n1 n2; do
    printf 'policy: %s\nstate: %s\nsocket: %s\n' "$tmp/policy.yaml" "$tmp/state-$n" "$tmp/$n.sock" >"$tmp/$n.yaml"
    fabricd --config "$tmp/$n.yaml" 2>"$tmp/$n.log" &
    on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
  done
  within 10 fabricctl --socket "$tmp/n1.sock" status && within 10 fabricctl --socket "$tmp/n2.sock" status
}
# what users' jobs write and read of the cluster
fabric_open() { chmod 755 "$tmp/slurm" "$tmp/slurm"/tmp.n? "$tmp/slurm"/spool.n?; }

as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups timeout -k 5 60 "$@" </dev/null; }
submit() { as_user sbatch --chdir=/ -o /dev/null -e /dev/null "$@" --wrap "exec env -u LD_PRELOAD sleep 60" 2>"$tmp/err" | awk '{print $NF}'; }
jobs_of() { fabricctl --socket "$tmp/$1.sock" job list; }
within() {
  local end=$((SECONDS + $1)) tries=$((10 * $1))
  shift
  until "$@" >"$tmp/tried" 2>&1; do
    ((SECONDS < end || --tries > 0)) || { cat "$tmp/tried"; return 1; }
    sleep 0.1
  done
}
has() { jobs_of "$1" | grep -E -- "$2" || { jobs_of "$1"; return 1; }; }
both() { has n1 "$1" && has n2 "$1"; }
neither() { ! has n1 "$1" && ! has n2 "$1"; }
waits() { [ "$(squeue -h -j "$1" -o %T)" = PENDING ]; }
# slurmd (22.05) that leaves the prolog out and then, having forgotten the run before, waits for it, gives the launch up: its
# node is drained and the job held, with the plugin or without. Nothing but that is forgiven.
given_up() {
  [[ $(squeue -h -j "$1" -o '%T %r') = "PENDING launch failed"* ]] &&
    grep -q "Waiting for JobId=$1 REQUEST_LAUNCH_PROLOG notification failed" "$tmp"/slurm/slurmd.n?.log
}
begins_again() {
  local n
  if given_up "$1"; then
    echo "# Slurm has given job $1 up: it is released once more"
    for n in $(sinfo -h -N -t drain -p all -o %N); do scontrol update "nodename=$n" state=resume; done
    scontrol update "jobid=$1" StartTime=now
    scontrol release "$1"
    return 1
  fi
  both "^- .id: \"$1\", $2, run: $(squeue -h -j "$1" -O 'RestartCnt:|' | grep '^[1-9]' | cut -d '|' -f 1)[,}]" && return
  if [ "$(squeue -h -j "$1" -o %T)" = RUNNING ]; then # what stands there as long as it runs is over at the last try
    {
      squeue -h -j "$1" -o 'It ran: %T, since %S, name %j, account %a'
      squeue -h -j "$1" -O 'RestartCnt:|'
      for n in n1 n2; do jobs_of $n | sed "s/^/$n: /"; done
    } >"$tmp/ran"
  fi
  [ ! -e "$tmp/ran" ] || cat "$tmp/ran"
  grep -h "job $1" "$tmp"/n?.log | tail -n 8
  squeue -h -j "$1" -o 'Slurm has it %T %r, to start %S, on %N'
  sinfo -h -N -o '%N %t %E'
  grep -E "JobId=$1|sched|drain" "$tmp/slurm/slurmctld.log" | tail -n 5
  tail -n 6 "$tmp"/slurm/slurmd.n?.log
  return 1
}
ends() { scancel "$1"; within 30 neither "id: \"$1\""; }
