#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rails that die and come back under a job: nothing is lost, doubled, reordered or changed, and it goes on soon.
# --all: by read and by write everywhere.
# timeout: 400
# timeout --all: 600
. "$(dirname "$0")/../tap.sh"
all=${1:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
h2='simfab fault link "h2 mlx5_0" 1' h1='simfab fault link "h1 mlx5_1" 1'

# job OPTIONS RANKS ROUNDS COMMAND...: OPTIONS are words for simfab run; settings come from the environment
job() {
  local options=($1) ranks=$2 rounds=$3
  shift 3
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=${MRMPI_LOG_LEVEL:-2} timeout -k 5 100 simfab run --topology "${NET:-$root/etc/topologies/two-hosts-two-rails.net}" \
    "${options[@]}" -- timeout -k 5 90 mrrun -n "$ranks" --ppn $((ranks / 2)) --stats "$BUILD/tests/mpi/failover" "$rounds" "$@" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 40
  grep 'leak:' "$tmp/out"
  [ $rc = 0 ] && grep -q "^$rounds rounds, 0 errors" "$tmp/out" && ! grep -q 'leak:' "$tmp/out"
}
with() { local setting=$1; shift; (export "${setting?}"; job "$@"); } # NAME=VALUE and what job wants
took() { sed -n "s/^round $1: \([0-9.]*\) ms.*/\1/p" "$tmp/out"; } # ROUND: ms, simulated
soon() { awk -v a="$(took "$1")" -v b="$(took "$2")" 'BEGIN { exit !(a != "" && b != "" && a < b + 20) }'; }

under_way='after=50us nowait' # when rank 0 sends again: how long its shell took is chance, and all could be idle
sequence=("$h2 down $under_way" "$h2 up; sleep 0.3" "$h1 down $under_way" "$h1 up; sleep 0.3")
for way in read ${all:+write}; do # short queues below write
  ok "cables of either end are pulled and put back, large messages by $way" \
    with MRMPI_RNDV=$way "" 2 22 "${sequence[@]}"
  ok "paths broke ($(counted broken)) and were opened again ($(counted reopened))" \
    test "$(counted broken)" -ge 8 -a "$(counted reopened)" -ge 2
  ok "large messages moved to the other rail ($(counted moved) parts)" test "$(counted moved)" -gt 0
  ok "packets were sent again ($(counted resent))" test "$(counted resent)" -gt 0
  ok "it goes on within 20 ms of simulated time ($(took 1) ms instead of $(took 2))" soon 1 2
done
ok "the same on a bus that goes one way at a time" job "--model $root/etc/models/sdr-pcix.yaml" 2 16 "${sequence[@]}"
ok "it goes on within 20 ms ($(took 1) ms instead of $(took 2))" soon 1 2
ok "four ranks, packets of 64 bytes" with MRMPI_EAGER_MAX=64 "" 4 "$([ "$all" ] && echo 16 || echo 7)" "${sequence[@]}"
export MRMPI_SRQ_DEPTH=16 MRMPI_RNDV=write
ok "short queues" with MRMPI_SQ_DEPTH=4 "" 2 16 "${sequence[@]}"
unset MRMPI_SRQ_DEPTH MRMPI_RNDV

# a port that is down when the job connects, and comes up later
ok "a rail that comes up after the job has connected" with "FIRST=$h2 down" "" 2 40 "$h2 up; sleep 0.3" true true true true true true true true true true true true
ok "is opened ($(counted reopened))" test "$(counted reopened)" -ge 2
ok "and takes all when the other one is down" with "FIRST=$h2 down" "" 2 10 "$h2 up; sleep 0.3" "$h1 down" true

# nothing is left for a while
ok "the only rail is gone for 100 ms" with MRMPI_RAILS_MAX=1 "" 2 8 "$h2 down for=100ms"
ok "it broke ($(counted broken)) and was opened again ($(counted reopened))" test "$(counted broken)" -ge 2 -a "$(counted reopened)" -ge 1
ok "both rails are gone for a while" job "" 2 8 "$h2 down for=50ms; $h1 down for=80ms"

# nobody says that a packet is lost
export MRMPI_RC_TIMEOUT=10 MRMPI_RC_RETRY=3
ok "a link that swallows everything, without a word" job "" 2 16 "$h2 loss=1" "$h2 loss=0; sleep 0.3"
like "is named" 'mlx5_0 port 1 to mlx5_0 port 1.*(transport retry counter exceeded|nothing comes or goes over it)' "$tmp/out"
MRMPI_RC_RETRY=6
for way in read ${all:+write}; do
  ok "links that lose a packet in a hundred, and break now and then, large messages by $way" \
    with MRMPI_RNDV=$way "" 2 10 'simfab fault link "*" loss=0.01' "$h2 down" "$h2 up; sleep 0.3"
done
MRMPI_RC_RETRY=0
export MRMPI_RAILS_MAX=1
rounds=${all:+3}
for way in ${all:+read} write; do
  ok "the only link breaks with each packet that is lost, long before a large message is through, by $way" \
    with MRMPI_RNDV=$way "" 2 ${rounds:-2} 'simfab fault link "*" loss=0.01'
done
unset MRMPI_RC_TIMEOUT MRMPI_RC_RETRY MRMPI_RAILS_MAX

# memory that is new in each round is known to one device at first: its rail fails, and the bytes come in packets
simfab topology star --hosts 2 --rails 2 >"$tmp/hdr.net" || exit 2
new_memory() { (export NEW=1 NET=$tmp/hdr.net; job "--model hdr" 2 22 "${sequence[@]}"); }
ok "cables of either end are pulled while new memory is read over one rail" new_memory
ok "paths broke ($(counted broken)), parts moved ($(counted moved)), packets were sent again ($(counted resent))" \
  test "$(counted broken)" -ge 4 -a "$(counted moved)" -gt 0
like "of what had no other key" 'come in packets' "$tmp/out"

ok "an adapter dies" job "" 2 8 'simfab fault node "h2 mlx5_0" die'
ok "what it carried went over the other one ($(counted moved) parts, $(counted resent) packets)" \
  test $(($(counted moved) + $(counted resent))) -gt 0
done_testing
