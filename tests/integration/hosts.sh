#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# 16 ranks on eight hosts, each talking to all others, while the hosts hear one after the other, each from its own daemon, that
# the job has another class. AT_A_TIME hosts hear it in the middle of one round (4); SETTINGS, each by itself, are the library's;
# a job may take LIMIT seconds. --all: one host after the other, with every kind of link and of large transfer.
# timeout: 300
# timeout --all: 7200
[ "${1:-}" = --all ] && export AT_A_TIME=1 LIMIT=1000 \
  SETTINGS='MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_RAILS_MAX=1 MRMPI_LINKS=uc MRMPI_LINKS=ud MRMPI_LINKS=rc,ud'
topology=eight-hosts-two-rails hosts='h1 h2 h3 h4 h5 h6 h7 h8' ranks=16
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/simple.yaml
backward='h8 h7 h6 h5 h4 h3 h2 h1' others=14 # ranks on other hosts than one's own
at_a_time=${AT_A_TIME:-4} limit=${LIMIT:-250}
export ALL=1 PER_SIZE=1 EVERY=2 MOST_BYTES=40000

carried() { # BYTES: the lanes of a host, where all have the same
  for h in $hosts; do lanes "$1" "$h"; echo; done | sort -u | xargs
}
changes() { # LEAST MOST: of each rank
  sed -n 's/.* changed=\([0-9]*\).*/\1/p' "$tmp/out" | awk -v least="$1" -v most="$2" '$1 >= least && $1 <= most {n++} END {print n + 0}'
}
commands=()
turn() { # CLASS HOST...: each round some of them hear it, with a little time between
  local class=$1 h all n=0
  shift
  while [ $# -gt 0 ]; do
    all=
    for h in "${@:1:at_a_time}"; do all+="$(set_class "$class" "$h") && sleep 0.01 && "; done
    commands+=("${all}true")
    shift $(($# < at_a_time ? $# : at_a_time))
  done
}
turn urgent $hosts
turn batch $backward
turn urgent $hosts
turns=3

eval "$(set_class urgent)"
ok "a job that is urgent from the beginning" exchange 4 "$keep" "$kept"
carried 0 >"$tmp/urgent"
is "has three lanes on all hosts" "$(tr ' ,' '\n' <"$tmp/urgent" | grep -c .)" 3

for setting in ${SETTINGS:-MRMPI_RNDV=read}; do
  eval "$(set_class normal)"
  export "${setting?}"
  ok "$setting: a running job changes its class $turns times, and its messages are right" \
    exchange $((2 * (${#commands[@]} + 3))) "${commands[@]}" true "$keep" "$kept"
  echo "# changes of $ranks ranks: $(counted changed)"
  is "$setting: each rank has changed with all on other hosts, and not on and on" "$(changes $others $((2 * turns * others)))" $ranks
  is "$setting: all hosts end on the lanes of its class" "$(carried 0)" "$(cat "$tmp/urgent")"
  is "$setting: nothing broke or moved" "$(counted broken) $(counted moved)" "0 0"
  [[ $setting = MRMPI_LINKS=* ]] || is "$setting: or was sent again" "$(counted resent)" 0
  unset "${setting%%=*}"
done
done_testing
