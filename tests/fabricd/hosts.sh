# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced after lib.sh, on a simulated fabric: a daemon on each of $hosts, with the configuration that is shipped.

tool=$BUILD/tests/fabricd/fabric_tool
policy=$SIMFAB_DIR/policy.yaml
on() { FABRICD_SOCKET=$SIMFAB_DIR/fabricd-$1.sock fabricctl "${@:2}"; } # HOST WORD...
daemon_of=()
start() { # HOST
  simfab exec --real-clock "$1" -- fabricd --config "${conf:-$top/etc/fabricd/simfab.yaml}" >>"$1.log" 2>&1 &
  daemon_of[10#${1#h}]=$!
  started
}
shipped() { # SED-SCRIPT: the daemons' configuration is the one that is shipped, changed so
  conf=$tmp/fabricd.yaml
  sed "$1" "$top/etc/fabricd/simfab.yaml" >"$conf"
}
daemons_up() { # those of $hosts
  local h
  for h in $hosts; do start "$h"; done
  for h in $hosts; do wait_for 20 on "$h" status; done
}
seen() { on "$1" status >status && grep -Eq -- "$2" status || { cat status; return 1; }; } # HOST REGEX
each() { # REGEX: of every host's status
  local h
  for h in $hosts; do seen "$h" "$1" || return 1; done
}
verified() { each "^policy: .*generation: $1, state: verified"; } # GENERATION
level() { "$tool" query "$SIMFAB_DIR/fabricd-$1.sock" x | sed -n 's/.* class=\([a-z]*\) small=\([0-9]*\) .*/\1 \2/p'; } # HOST
keys() { # HOST: the P_Keys of its ports, by their tables, each behind the number of ports that have it
  simfab exec "$1" -- sh -c 'cat /sys/class/infiniband/mlx5_[01]/ports/1/pkeys/?' | grep -v 0x0000 | sort | uniq -c | xargs
}
reach() { simfab exec "$1" -- "$BUILD/tests/fabricd/reach" "${@:2}"; } # HOST WORD...
