# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by scripts of this folder that run inside a fabric, which it starts: of two hosts with two rails, or $topology, if
# the script has set it, with the $hosts that are wanted. They stand at the root of the sources. $job is the job that is run.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
[ -n "${SIMFAB_DIR:-}" ] || tap_exec simfab run --topology "${topology:-two-hosts-two-rails}" -- bash "$0"
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock
hosts=${hosts:-h1 h2} job=${job:-vip}
declare -A fabricd

# ---- fabricd

ctl() { local h=$1; shift; fabricctl --socket "$SIMFAB_DIR/fabricd-$h.sock" "$@"; } # HOST ARGUMENTS of fabricctl

# start_fabricd HOST [POLICY [STATE]]: until the end; its process is ${fabricd[HOST]}. That of h1, if it has a policy, has the
# subnet manager.
start_fabricd() {
  printf 'state: %s\nsocket: %s\n' "$tmp/${3:-state}-$1" "$SIMFAB_DIR/fabricd-$1.sock" >"$tmp/$1.yaml"
  [ -z "${2:-}" ] || echo "policy: $(realpath "$2")" >>"$tmp/$1.yaml"
  [ "$1" = h1 ] && [ -n "${2:-}" ] && cat >>"$tmp/$1.yaml" <<'YAML'
opensm:
  config: $SIMFAB_DIR/opensm/opensm.conf
  pid_file: $SIMFAB_DIR/opensm/opensm.pid
  restart: simfab opensm restart
YAML
  simfab exec --real-clock "$1" -- fabricd --config "$tmp/$1.yaml" >"$tmp/$1.log" 2>&1 &
  fabricd[$1]=$!
  on_exit "kill $! 2>/dev/null; kill -CONT $! 2>/dev/null; wait $! 2>/dev/null" # it may be stopped
}
stop_fabricd() { kill "${fabricd[$1]}"; wait "${fabricd[$1]}" 2>/dev/null; } # HOST
verified() { ctl "$1" status | grep -q 'state: verified'; }                 # HOST

# fabricds [POLICY]: one on each host. Waits until they answer, and all have the policy: other hosts than h1 look for it once a
# second. The policy is copied: its lock will be written beside it.
fabricds() {
  local h
  [ -z "${1:-}" ] || { cp "$1" "$tmp/policy.yaml"; set -- "$tmp/policy.yaml"; }
  for h in $hosts; do start_fabricd "$h" "$@"; done
  for h in $hosts; do wait_for 20 test -S "$SIMFAB_DIR/fabricd-$h.sock"; done
  [ -n "${1:-}" ] || return 0
  ok "the policy is applied and verified" ctl h1 policy apply "$1"
  wait_for 30 ports_up
  for h in $hosts; do wait_for 60 verified "$h" || ok "$h has the policy" false; done
}
# The same with two LIDs for each port; the job "limited" has a class that may use one path. The policy is $tmp/wanted.yaml.
fabricds_with_paths() {
  local h
  cat >"$tmp/wanted.yaml" <<'YAML'
version: 1
vls: 4
classes:
  - {name: all, share: 60}
  - {name: single, share: 40, paths: 1}
jobs: {default: all}
paths: {lmc: 1}
YAML
  fabricds "$tmp/wanted.yaml"
  for h in $hosts; do ctl "$h" job set limited single --user "$(id -u)" || exit 1; done
}
# An opensm that gets no processor may leave a port in Init, or have it begin anew, until its next sweep.
ports_up() { ! simfab status | grep -E '^h[0-9]+ ' | grep -qv ' Active '; }

# ---- classes and the job

set_class() { # CLASS [HOSTS]: the command that gives it to $job on them (all), one after the other
  local h all=
  for h in ${2:-$hosts}; do all+="${all:+ && }fabricctl --socket $SIMFAB_DIR/fabricd-$h.sock job set $job $1 --user $(id -u)"; done
  echo "$all"
}

# exchange ROUNDS COMMAND...: by failover(.c) of $job, $ranks ranks (2), whose output is $tmp/out
exchange() {
  local rounds=$1
  shift
  rm -f "$tmp/c0" "$tmp/c1"
  MRMPI_LOG_LEVEL=${MRMPI_LOG_LEVEL:-2} timeout -k 5 "${limit:-100}" mrrun -n "${ranks:-2}" --hosts "${hosts// /,}" --job-id "$job" --stats \
    "$BUILD/tests/mpi/failover" "$rounds" "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  tail -n 20 "$tmp/out" | cut -c 1-400 | sed 's/^/# /'
  [ $rc = 0 ] && grep -q "^$rounds rounds, 0 errors" "$tmp/out"
}

# ---- lanes

keep="simfab status --counters >$tmp/c0" kept="simfab status --counters >$tmp/c1" # commands

# FILE: the output of a job whose ranks all had fabricd's answer when they began
in_time() { ! grep -q 'fabricd at .* cannot be asked (Connection timed out)' "$1"; }
# FILE: the output, with --stats, of a job all of whose subchannels had the service levels of its class from the beginning
one_class() { in_time "$1" && ! grep -q ' changed=[1-9]' "$1"; }

# counts COMMAND...: a job between $keep and $kept, whose output is $tmp/cmd. Where other programs compete for the processors
# fabricd may not answer within the library's 1 s of real time: the job then begins without its class, and is begun anew
counts() {
  local tries
  for tries in {1..10}; do
    simfab status --counters >"$tmp/c0"
    "$@" >"$tmp/cmd" 2>&1 || return
    simfab status --counters >"$tmp/c1"
    in_time "$tmp/cmd" && return 0
  done
}

# lanes BYTES [HOST]: VLs over which h1 has sent more than so many between $keep and $kept
lanes() {
  awk -v min="$1" -v host="${2:-h1}" -v first="$tmp/c0" '$1 != host {next}
    {vl = ""; for (i = 1; i < NF; i++) {if ($i == "vl") vl = $(i + 1); if ($i == "xmit_data") x = $(i + 1)}}
    FILENAME == first {was[$2, vl] = x; next}
    {sum[vl] += x - was[$2, vl]}
    END {for (v = 0; v < 15; v++) if (sum[v] > min) printf "%s%d", sep++ ? "," : "", v}' "$tmp/c0" "$tmp/c1"
}
