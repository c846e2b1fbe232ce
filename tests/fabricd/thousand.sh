#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# 1,024 hosts: a policy is applied, and the tables of all 6,512 ports are read, in bounded processor time of fabricd and of
# simfab's engine together. Other work on the machine hardly lengthens processor time: 1.8 to 2.8 s for a look and 4.5 to 6 s
# for an apply (6.4 to 9 s with a third look at all ports). If each datagram waits for the engine, 6 to 10 s and 15 to 20 s.

if [ -z "${SIMFAB_DIR:-}" ]; then
  exec "$BUILD/bin/simfab" run --topology <("$BUILD/bin/simfab" topology fat-tree --hosts 1024) --model hdr -- bash "${BASH_SOURCE[0]}"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h0001.sock

process() { # NAME, of this fabric
  local p
  for p in /proc/[0-9]*; do
    [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ] || continue
    if grep -qz "^SIMFAB_DIR=$SIMFAB_DIR$" "$p/environ" 2>/dev/null || grep -qzF "$SIMFAB_DIR" "$p/cmdline" 2>/dev/null; then
      echo "${p#/proc/}"
    fi
  done
}
ticks() { awk '{sum += $14 + $15} END {print sum}' $(printf '/proc/%s/stat ' $(process fabricd) $(process simfab-engine)); }
spends() { # MOST COMMAND...: it ends well, after at most so many seconds of processor time
  local most=$1 before now
  shift
  before=$(ticks)
  "$@" || return 1
  now=$(ticks)
  awk -v ticks=$((now - before)) -v hz="$(getconf CLK_TCK)" -v most="$most" \
    'BEGIN {printf "%.2f s of processor time, of %g s at most\n", ticks / hz, most; exit ticks / hz > most}' >&3
}

exec 3>spent
sed 's/^  interval: 5$/  interval: 0/' "$top/etc/fabricd/simfab.yaml" >conf.yaml # no look but those that are measured
conf=$tmp/conf.yaml
start h0001
wait_for 60 fabricctl status
is "one daemon and one engine" "$(process fabricd | wc -l) $(process simfab-engine | wc -l)" "1 1"
cp "$top/etc/policies/simple.yaml" "$policy"
ok "a policy is applied" spends 9 fabricctl policy apply "$policy"
ok "all ports are read" spends 4.5 fabricctl policy verify
sed 's/^/# /' spent
like "all of 1,024 hosts" '^policy: .*state: verified, nodes: 1192, ports: 6512, differences: 0' <(fabricctl status)
done_testing
