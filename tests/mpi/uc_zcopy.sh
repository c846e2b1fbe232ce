#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Large messages over unreliable connections: written into the receiver's buffer, right whatever the network loses.
# timeout: 200
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LINKS=uc MOST_BYTES=300000
model=hdr

# job FIRST ROUNDS COMMAND...: FIRST is done before the job
job() {
  local first=$1 rounds=$2
  shift 2
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=2 timeout -k 5 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" \
    --model "$model" -- bash -c "$first"' && exec "$@"' job timeout -k 5 50 \
    mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/failover" "$rounds" "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 30
  [ $rc = 0 ] && grep -q "^$rounds rounds, 0 errors" "$tmp/out" && ! grep -q 'leak:' "$tmp/out"
}
with() { local setting=$1; shift; (export "${setting?}"; job "$@"); } # NAME=VALUE and what job wants
took() { sed -n "s/^round $1: \([0-9.]*\) ms.*/\1/p" "$tmp/out"; } # ROUND: ms, simulated
lossy() { echo "simfab fault link \"h2 mlx5_0\" 1 loss=$1 && simfab fault link \"h2 mlx5_1\" 1 loss=$1"; }

for rails in 1 2; do
  ok "$rails rails, no loss" with MRMPI_RAILS_MAX=$rails true 3
  ok "large messages are written ($(counted net_stripes) parts), and none twice ($(counted rewritten))" \
    test "$(counted net_stripes)" -gt 0 -a "$(counted rewritten)" = 0
  ok "$rails rails, 1 % loss" with MRMPI_RAILS_MAX=$rails "$(lossy 0.01)" 3
  ok "what did not come is written again ($(counted rewritten) times)" test "$(counted rewritten)" -gt 0
done
ok "10 % loss" with MRMPI_RAILS_MAX=1 "$(lossy 0.1)" 1
ok "what did not come is written again ($(counted rewritten) times)" test "$(counted rewritten)" -gt 0
ok "short queues" with MRMPI_SQ_DEPTH=4 "$(lossy 0.01) && export MRMPI_SRQ_DEPTH=16" 2
ok "packets of 64 bytes, so that a word names little" with MRMPI_EAGER_MAX=64 "$(lossy 0.01)" 2

# the receiver's word does not wait for the sender's, which may find it computing
leaves() {
  MRMPI_RAILS_MAX=1 timeout -k 5 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" --model "$model" -- \
    mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/links" leave 20 >"$tmp/out" 2>&1 </dev/null
}
ok "a receiver that leaves MPI when all is there" leaves
ok "holds no sender up ($(grep 'a send took' "$tmp/out"))" awk '/a send took/ {us = $4} END {exit !(us > 0 && us < 1000)}' "$tmp/out"

h2='simfab fault link "h2 mlx5_0" 1' h1='simfab fault link "h1 mlx5_1" 1'
model=sdr-pcix MOST_BYTES=2000000 # slow enough that much is under way when something happens
under_way='after=2ms nowait' # when rank 0 sends again, in a round of 15 ms
ok "cables are pulled and put back" job true 10 "$h2 down $under_way" "$h2 up; sleep 0.3" "$h1 down $under_way" "$h1 up; sleep 0.3"
ok "paths broke ($(counted broken)) and were opened again ($(counted reopened))" \
  test "$(counted broken)" -ge 4 -a "$(counted reopened)" -ge 2
ok "large messages moved to the other rail ($(counted moved) parts)" test "$(counted moved)" -gt 0
mute='simfab fault link "h2 mlx5_0" 1 loss_out=1 at=25ms for=5ms' # in the first round
ok "nothing comes in one direction over one rail for a while" job "$mute" 3
ok "what did not come is written again ($(counted rewritten) times)" test "$(counted rewritten)" -gt 0
ok "nor over any" with MRMPI_RAILS_MAX=1 "$mute" 3
ok "what did not come is written again ($(counted rewritten) times)" test "$(counted rewritten)" -gt 0
model=hdr MOST_BYTES=300000

ok "native: nobody acknowledges anything" with MRMPI_RELIABLE=no true 3
ok "and large messages are written" test "$(counted net_stripes)" -gt 0 -a "$(counted acks_sent)" = 0 -a "$(counted acks_carried)" = 0
ok "where both have reliable connections large messages go over those" with MRMPI_LINKS=uc,rc "$(lossy 0.01)" 2
ok "and none is written twice" test "$(counted net_stripes)" -gt 0 -a "$(counted rewritten)" = 0
done_testing
