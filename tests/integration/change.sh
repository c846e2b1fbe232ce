#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The class of a job changes while it runs: its messages go on, on the new service levels.
# timeout: 400
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/simple.yaml

# set_class CLASS [FIRST]: the command that tells both hosts, one of them first
set_class() {
  local a=h1 b=h2
  [ "${2:-h1}" = h1 ] || a=h2 b=h1
  echo "fabricctl --socket $SIMFAB_DIR/fabricd-$a.sock job set vip $1 && fabricctl --socket $SIMFAB_DIR/fabricd-$b.sock job set vip $1"
}
counted() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | awk '{n += $1} END {print n + 0}'; }
job() { # ROUNDS COMMAND...
  local rounds=$1
  shift
  MRMPI_LOG_LEVEL=2 timeout -k 5 100 mrrun -n 2 --hosts h1,h2 --job-id vip --stats "$BUILD/tests/mpi/failover" "$rounds" "$@" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 20
  [ $rc = 0 ] && grep -q "^$rounds rounds, 0 errors" "$tmp/out"
}
sure() { # of what the job that has just ended went through. A rank that runs a command acknowledges nothing meanwhile.
  ok "both ends have changed ($(counted changed))" test "$(counted changed)" -ge 2
  is "nothing broke or moved" "$(counted broken) $(counted moved)" "0 0"
  [[ ${MRMPI_LINKS:-rc} != rc ]] || is "or was sent again" "$(counted resent)" 0
}
keep="simfab status --counters >$tmp/c0"

# what the lanes of the class are is seen with a job that has it from the beginning
ctl h1 job set vip urgent && ctl h2 job set vip urgent
ok "a job that is urgent from the beginning" job 5 "$keep" "simfab status --counters >$tmp/c1"
lanes 1000000 >"$tmp/urgent"
is "has two lanes for its large messages" "$(tr , '\n' <"$tmp/urgent" | grep -c .)" 2

for setting in MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_LINKS=uc MRMPI_LINKS=ud; do
  ctl h1 job set vip batch && ctl h2 job set vip batch
  simfab status --counters >"$tmp/c0"
  export "${setting?}"
  ok "$setting: a running job becomes urgent, and its messages are right" job 8 "$(set_class urgent); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
  sure
  is "$setting: its large messages are on the two lanes of its new class" "$(lanes 1000000)" "$(cat "$tmp/urgent")"
  ok "$setting: again and again, and the hosts hear it one after the other" job 24 "$(set_class batch h2); sleep 0.05" \
    "$(set_class urgent); sleep 0.05" "$(set_class normal); sleep 0.05" "$(set_class urgent h2)" "$(set_class batch)"
  unset "${setting%%=*}"
done

MRMPI_RAILS_MAX=1
export MRMPI_RAILS_MAX
ctl h1 job set vip urgent && ctl h2 job set vip urgent
ok "with one rail" job 8 "$keep" "simfab status --counters >$tmp/c1" true
is "all lanes of a class are used" "$(lanes 1000000)" "$(cat "$tmp/urgent")"
done_testing
