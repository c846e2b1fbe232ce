# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by scripts that run inside a fabric, which integration/lib.sh starts: the nodes n1 and n2 of a Slurm cluster are
# the hosts h1 and h2 of the simulated subnet. Tasks are on their node's host by slurmd's TaskProlog, so users start programs
# as anywhere.
#
#   wire_start POLICY       a fabricd on each host, the policy applied; what users run is copied where they can read it
#   wire_config             lines of slurm.conf
#   wire_begin OPTION...    nobody's srun, with these options, of a program on both nodes, which exchanges messages of all sizes.
#                           Between rounds of them it stops six times, until it is let go on
#   wire_job                its id
#   wire_on                 lets it run on, for three rounds, until it stops, and for three more; how it stands between
#   wire_lanes              VLs over which h1 has sent in the last three rounds, which are the first ones only for wire_begin
#   wire_ends               lets it run to its end: with status 0, all messages have arrived, and nothing has gone wrong
#   lanes_of CLASS          VLs that are the class's, by fabricd's status

. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/fabric-cluster.sh"

wire_start() {
  local n
  chmod 755 "$tmp"
  chmod 711 "$SIMFAB_DIR"
  chmod 666 "$SIMFAB_DIR/engine.sock"
  mkdir -p "$tmp/lib" "$tmp/bin" "$tmp/steps" "$tmp/libexec/mrmpi"
  chmod 777 "$tmp/steps"
  cp "$BUILD"/lib/*.so* "$tmp/lib"
  cp "$BUILD/libexec/mrmpi/fabric-job" "$tmp/libexec/mrmpi"
  ln -s ../libexec/mrmpi/fabric-job "$tmp/lib"
  cp "$BUILD/bin/fabricctl" "$BUILD/tests/mpi/failover" "$tmp/bin"
  for n in 1 2; do ln -s "$SIMFAB_DIR/fabricd-h$n.sock" "$tmp/n$n.sock"; done
  # shellcheck disable=SC2016 # for the shell that is on the host
  for n in 1 2; do
    simfab exec "h$n" -- sh -c 'for v in LD_PRELOAD SIM_HOST SIMFAB_DIR ASAN_OPTIONS; do eval "[ -z \"\${$v:-}\" ] || echo \"export $v=\$$v\""; done' |
      sed "s|$BUILD/lib|$tmp/lib|g" >"$tmp/host-n$n"
  done
  cat >"$tmp/task" <<END
#!/bin/sh
cat "$tmp/host-\$SLURMD_NODENAME"
echo "export LD_LIBRARY_PATH=$tmp/lib"
echo "export MRMPI_FABRICD_SOCKET=$tmp/\$SLURMD_NODENAME.sock"
END
  cat >"$tmp/step" <<'END'
#!/bin/sh
# a rank's, which waits here for the test: STEP
cd "${0%/*}/steps" || exit 1
unset LD_PRELOAD
: >"at-$1"
until [ -e "go-$1" ]; do sleep 0.02; done
END
  chmod 755 "$tmp/task" "$tmp/step"
  echo "optional $tmp/lib/mrmpi_fabric.so socket=$tmp/%n.sock" >"$tmp/plugstack.conf"
  fabricds "$1"
  ok "by both hosts" wait_for 10 verified h2
}
wire_config() { echo "TaskProlog=$tmp/task"; }

wire_begin() {
  rm -f "$tmp"/steps/*
  wire_step=0
  as_user srun --chdir=/ -N 2 -n 2 --mpi=pmi2 "$@" env MRMPI_LOG_LEVEL=2 "$tmp/bin/failover" 18 \
    "$tmp/step 1" "$tmp/step 2" "$tmp/step 3" "$tmp/step 4" "$tmp/step 5" "$tmp/step 6" >"$tmp/job.out" 2>&1 &
  wire_srun=$!
  on_exit "kill $wire_srun 2>/dev/null"
}
wire_job() { squeue -h -o %A -t RUNNING | tail -n 1; }
wire_next() {
  [ "$wire_step" = 0 ] || : >"$tmp/steps/go-$wire_step"
  wire_step=$((wire_step + 1))
  wait_for 60 test -e "$tmp/steps/at-$wire_step" && return 0
  tail -n 30 "$tmp/job.out"
  return 1
}
wire_on() {
  wire_next && eval "$keep" && wire_next && eval "$kept"
}
wire_lanes() { lanes 1000; }
wire_ends() {
  local n
  for n in 1 2 3 4 5 6; do : >"$tmp/steps/go-$n"; done
  wait "$wire_srun" || { tail -n 30 "$tmp/job.out"; return 1; }
  grep -q '^18 rounds, 0 errors' "$tmp/job.out" &&
    ! grep -Ev '^(before|after|round) |^18 rounds, 0 errors|^mrmpi[^ ]* info: |^srun: job .* (queued|allocated)|--fabric-class=' "$tmp/job.out"
}
lanes_of() { # CLASS
  ctl h1 status --json | python3 -c '
import json, sys
c = [c for c in json.load(sys.stdin)["classes"] if c["name"] == sys.argv[1]][0]
vls = {c["vl_small"], *c["vl_bulk"]}
print(",".join(str(v) for v in sorted(vls)))' "$1"
}
