#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The class of a job changes while it runs: its messages go on, on the new service levels.
# timeout: 400
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
if [ -z "${SIMFAB_DIR:-}" ]; then
  rm -rf "$tmp" # exec leaves no trap to do it
  exec simfab run --topology two-hosts-two-rails -- bash "$0"
fi
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock
for h in h1 h2; do
  printf 'policy: %s\nstate: %s\nsocket: %s\n' "$PWD/etc/policies/simple.yaml" "$tmp/state-$h" "$SIMFAB_DIR/fabricd-$h.sock" >"$tmp/$h.yaml"
  [ $h = h1 ] && cat >>"$tmp/$h.yaml" <<'YAML'
opensm:
  config: $SIMFAB_DIR/opensm/opensm.conf
  pid_file: $SIMFAB_DIR/opensm/opensm.pid
  restart: simfab opensm restart
YAML
  simfab exec --real-clock $h -- fabricd --config "$tmp/$h.yaml" >"$tmp/$h.log" 2>&1 &
  on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
done
for _ in $(seq 100); do [ -S "$SIMFAB_DIR/fabricd-h1.sock" ] && [ -S "$SIMFAB_DIR/fabricd-h2.sock" ] && break; sleep 0.1; done
ctl() { local h=$1; shift; fabricctl --socket "$SIMFAB_DIR/fabricd-$h.sock" "$@"; }
ok "the policy is applied and verified" ctl h1 policy apply etc/policies/simple.yaml

# set_class CLASS [FIRST]: the command that tells both hosts, one of them first
set_class() {
  local a=h1 b=h2
  [ "${2:-h1}" = h1 ] || a=h2 b=h1
  echo "fabricctl --socket $SIMFAB_DIR/fabricd-$a.sock job set vip $1 && fabricctl --socket $SIMFAB_DIR/fabricd-$b.sock job set vip $1"
}
counted() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | awk '{n += $1} END {print n + 0}'; }
lanes() { # VLs over which h1 has sent more than 1 MB since the counters were kept
  awk -v min=1000000 -v first="$tmp/c0" '$1 != "h1" {next}
    {vl = ""; for (i = 1; i < NF; i++) {if ($i == "vl") vl = $(i + 1); if ($i == "xmit_data") x = $(i + 1)}}
    FILENAME == first {was[$2, vl] = x; next}
    {sum[vl] += x - was[$2, vl]}
    END {for (v = 0; v < 15; v++) if (sum[v] > min) printf "%s%d", sep++ ? "," : "", v}' "$tmp/c0" "$1"
}
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
lanes "$tmp/c1" >"$tmp/urgent"
is "has two lanes for its large messages" "$(tr , '\n' <"$tmp/urgent" | grep -c .)" 2

for setting in MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_LINKS=uc MRMPI_LINKS=ud; do
  ctl h1 job set vip batch && ctl h2 job set vip batch
  simfab status --counters >"$tmp/c0"
  export "${setting?}"
  ok "$setting: a running job becomes urgent, and its messages are right" job 8 "$(set_class urgent); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
  sure
  is "$setting: its large messages are on the two lanes of its new class" "$(lanes "$tmp/c1")" "$(cat "$tmp/urgent")"
  ok "$setting: again and again, and the hosts hear it one after the other" job 24 "$(set_class batch h2); sleep 0.05" \
    "$(set_class urgent); sleep 0.05" "$(set_class normal); sleep 0.05" "$(set_class urgent h2)" "$(set_class batch)"
  unset "${setting%%=*}"
done

MRMPI_RAILS_MAX=1
export MRMPI_RAILS_MAX
ctl h1 job set vip urgent && ctl h2 job set vip urgent
ok "with one rail" job 8 "$keep" "simfab status --counters >$tmp/c1" true
is "all lanes of a class are used" "$(lanes "$tmp/c1")" "$(cat "$tmp/urgent")"
done_testing
