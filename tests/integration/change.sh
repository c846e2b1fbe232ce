#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The class of a job changes while it runs: its messages go on, on the new service levels.
# SETTINGS, each by itself, are the library's: --all has more.
# timeout: 400
# timeout --all: 600
[ "${1:-}" = --all ] && export SETTINGS='MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_LINKS=uc MRMPI_LINKS=ud'
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/simple.yaml

sure() { # of what the job that has just ended went through. A rank that runs a command acknowledges nothing meanwhile.
  ok "both ends have changed ($(counted changed))" test "$(counted changed)" -ge 2
  is "nothing broke or moved" "$(counted broken) $(counted moved)" "0 0"
  [[ ${MRMPI_LINKS:-rc} != rc ]] || is "or was sent again" "$(counted resent)" 0
}

windows() { # ROUNDS COMMAND...: the same of a job that puts into windows and gets from them
  MRMPI_LOG_LEVEL=2 timeout -k 5 100 mrrun -n 2 --hosts "${hosts// /,}" --job-id "$job" --stats "$BUILD/tests/mpi/rma_rails" "$@" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  tail -n 20 "$tmp/out" | cut -c 1-400 | sed 's/^/# /'
  [ $rc = 0 ] && grep -q "^$1 rounds, the longest" "$tmp/out"
}

# what the lanes of the class are is seen with a job that has it from the beginning
eval "$(set_class urgent)"
ok "a job that is urgent from the beginning" exchange 5 "$keep" "$kept"
lanes 1000000 >"$tmp/urgent"
is "has two lanes for its large messages" "$(tr , '\n' <"$tmp/urgent" | grep -c .)" 2

for setting in ${SETTINGS:-MRMPI_RNDV=read MRMPI_LINKS=ud}; do
  eval "$(set_class batch)"
  export "${setting?}"
  ok "$setting: a running job becomes urgent, and its messages are right" exchange 8 "$(set_class urgent); sleep 0.1" "$keep" "$kept" true
  sure
  is "$setting: its large messages are on the two lanes of its new class" "$(lanes 1000000)" "$(cat "$tmp/urgent")"
  ok "$setting: again and again, and the hosts hear it one after the other" exchange 24 "$(set_class batch 'h2 h1'); sleep 0.05" \
    "$(set_class urgent); sleep 0.05" "$(set_class normal); sleep 0.05" "$(set_class urgent 'h2 h1')" "$(set_class batch)"
  unset "${setting%%=*}"
done

eval "$(set_class batch)"
ok "a job becomes urgent in the middle of its puts, and its windows are right" windows 8 "$(set_class urgent); sleep 0.1" "$keep" "$kept"
sure
is "its long puts and gets are on the two lanes of its new class" "$(lanes 1000000)" "$(cat "$tmp/urgent")"
ok "again and again, and the hosts hear it one after the other" windows 24 "$(set_class batch 'h2 h1'); sleep 0.05" \
  "$(set_class urgent); sleep 0.05" "$(set_class normal); sleep 0.05" "$(set_class urgent 'h2 h1')" "$(set_class batch)"

MRMPI_RAILS_MAX=1
export MRMPI_RAILS_MAX
eval "$(set_class urgent)"
ok "with one rail" exchange 8 "$keep" "$kept" true
is "all lanes of a class are used" "$(lanes 1000000)" "$(cat "$tmp/urgent")"
done_testing
