#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that is stopped for 10 s in the middle of messages of all sizes: nothing is lost, and the job goes on.
# timeout: 600
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
topology=$root/etc/topologies/two-hosts-two-rails.net
export MRMPI_LOG_LEVEL=1

# The fabric's time goes more slowly than the machine's where others take the processors away.
cat >"$tmp/simulated" <<'EOT'
now() { simfab status | sed -n 's/^virtual time: \([0-9]*\)\..*/\1/p'; }
for ((end = $(now) + $1 + 1; $(now) < end; )); do sleep 0.1; done
EOT
# The program gives its commands PEER, the process that rank 0 talks to.
stop() { echo "kill -STOP \$PEER; ${1:-} ($2 10; kill -CONT \$PEER) >/dev/null 2>&1 &"; } # COMMAND SLEEP
simulated="bash $tmp/simulated" real='env -u LD_PRELOAD sleep'

run() { # RANKS WORDS...: rounds 1 and 4 have the command, and take more than $least ms
  timeout -k 5 150 "${@:2}" mrrun -n "$1" --stats "${per_host[@]}" "$BUILD/tests/mpi/failover" 6 "$command" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out"
  [ $rc = 0 ] && grep -q '^6 rounds, 0 errors' "$tmp/out" &&
    awk -v least="$least" '/^round [14]:/ {if ($3 > least) n++} END {exit n != 2}' "$tmp/out" # it was stopped
}
least=8000
per_host=() command=$(stop '' "$real")
ok "over shared memory" run 2 env
per_host=(--ppn 1)
fabric=(simfab run --topology "$topology" --)
for way in read write; do
  export MRMPI_RNDV=$way
  command=$(stop '' "$simulated")
  ok "between hosts, for 10 s of the fabric's time, large messages by $way" run 2 "${fabric[@]}"
  command=$(stop '' "$real")
  least=100 ok "for 10 s of real time" run 2 "${fabric[@]}"
  not_ok "without a path that breaks" grep -q 'broken=' "$tmp/out"
done
unset MRMPI_RNDV
command=$(stop 'simfab fault link "h2 *" 1 down for=100ms;' "$simulated")
ok "while all its cables are out for a moment" run 2 "${fabric[@]}"
like "and its paths break" 'counters: .*broken=[1-9]' "$tmp/out"
done_testing
