#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Large messages over datagrams: they land in the receiver's buffer, right whatever the network loses, and in packets where
# that cannot be. Without --all a choice.
# timeout: 300
# timeout --all: 900
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LINKS=ud MOST_BYTES=300000
export MRMPI_EAGER_PACKETS=1 # what is longer than a packet is large
all=${1:-}
model=hdr

# fabric TOPOLOGY FIRST COMMAND...: FIRST is done before it
fabric() {
  local topology=$1 first=$2
  shift 2
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=2 timeout -k 5 60 simfab run --topology "$root/etc/topologies/$topology.net" \
    --model "$model" -- bash -c "$first"' && exec "$@"' job timeout -k 5 50 "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 30
  [ $rc = 0 ] && ! grep -q 'leak:' "$tmp/out"
}
# job FIRST ROUNDS COMMAND...: of failover
job() {
  local first=$1 rounds=$2
  shift 2
  fabric two-hosts-two-rails "$first" mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/failover" "$rounds" "$@" &&
    grep -q "^$rounds rounds, 0 errors" "$tmp/out"
}
with() { local setting=$1; shift; (export "${setting?}"; "$@"); } # NAME=VALUE CMD...
lossy() { echo "simfab fault link \"h2 mlx5_0\" 1 loss=$1 && simfab fault link \"h2 mlx5_1\" 1 loss=$1"; }
repaired() { # what was lost was asked for again, and what landed in its place was moved
  ok "what did not come is sent again ($(counted ud_missing) datagrams), what is in the wrong place moved ($(counted ud_misplaced))" \
    test "$(counted ud_missing)" -gt 0 -a "$(counted ud_misplaced)" -gt 0
}

# 12 messages a round are of 40,000 bytes and 12 of 300,000
export MRMPI_UD_POOL=32 # for 18 messages at the same time, in each direction
for rails in 1 2; do
  ok "$rails rails, no loss" with MRMPI_RAILS_MAX=$rails job true 3
  is "all large messages land where they belong" "$(counted ud_zcopy) $(counted ud_no_qp)" "108 0"
  is "nothing is missing, moved or strange" "$(counted ud_missing) $(counted ud_misplaced) $(counted ud_stray)" "0 0 0"
  ok "$rails rails, 1 % loss" with MRMPI_RAILS_MAX=$rails job "$(lossy 0.01)" 3
  is "all large messages land where they belong" "$(counted ud_zcopy) $(counted ud_no_qp)" "108 0"
  repaired
done
unset MRMPI_UD_POOL
ok "10 % loss" with MRMPI_RAILS_MAX=1 job "$(lossy 0.1)" 1
repaired

# ---- lengths, and nothing beside or behind them --------------------------------------------------------------------
sizes() { # FIRST ROUNDS
  fabric two-hosts-two-rails "$1" mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/ud_zcopy" sizes "$2" && grep -q '^all is right' "$tmp/out"
}
ok "lengths that are no multiples of the datagrams', expected or not" sizes true 4
is "all of them land where they belong" "$(counted ud_zcopy)" 96
ok "the same with 2 % loss" sizes "$(lossy 0.02)" 4
repaired

# ---- windows: others may write where a block lies by mistake -------------------------------------------------------
overlap() { # FIRST ROUNDS
  fabric eight-hosts-two-rails "$1" mrrun -n 4 --ppn 1 --stats "$BUILD/tests/mpi/rma_overlap" "$2" && grep -q "^$2 rounds" "$tmp/out"
}
ok "puts that overlap, with 2 % loss" overlap "simfab fault link 'h1 mlx5_0' 1 loss=0.02 && simfab fault link 'h1 mlx5_1' 1 loss=0.02" 8
ok "long ones land where they belong ($(counted ud_zcopy)), what is lost is sent again ($(counted ud_missing) datagrams)" \
  test "$(counted ud_zcopy)" -ge 32 -a "$(counted ud_missing)" -gt 0
is "and none of theirs is moved" "$(counted ud_misplaced)" 0

for mtu in 256 ${all:+2048}; do
  { cat "$root/etc/models/hdr.yaml"; printf 'ports:\n- {node: "*", mtu: %s}\n' "$mtu"; } >"$tmp/$mtu.yaml"
  model=$tmp/$mtu.yaml
  ok "datagrams of $mtu bytes, with loss" sizes "$(lossy 0.005)" 2
  repaired
done
model=hdr
ok "short queues, with loss" with MRMPI_SQ_DEPTH=4 with MRMPI_SRQ_DEPTH=16 with MRMPI_UD_POOL_DEPTH=7 sizes "$(lossy 0.01)" 2
repaired
ok "packets of 64 bytes, so that a word names little" with MRMPI_EAGER_MAX=64 sizes "$(lossy 0.05)" 2
repaired

# ---- rails ---------------------------------------------------------------------------------------------------------
slow='simfab fault link "h2 mlx5_1" 1 width=1 speed=SDR'
ok "one rail is a hundred times slower" sizes "$slow" 2
is "all large messages land where they belong" "$(counted ud_zcopy)" 48
is "nothing of them is taken for lost" "$(counted ud_missing)" 0
ok "and it loses 2 %" sizes "$slow && $(lossy 0.02)" 2
repaired
h2='simfab fault link "h2 mlx5_0" 1' h1='simfab fault link "h1 mlx5_1" 1'
model=sdr-pcix MOST_BYTES=2000000 # slow enough that much is under way when something happens
ok "cables are pulled and put back" job true "$([ "$all" ] && echo 10 || echo 8)" "$h2 down" "$h2 up; sleep 0.3" ${all:+"$h1 down" "$h1 up; sleep 0.3"}
ok "paths broke ($(counted broken)) and were opened again ($(counted reopened))" \
  test "$(counted broken)" -ge "$([ "$all" ] && echo 4 || echo 2)" -a "$(counted reopened)" -ge 2
ok "what came over them came over the other rail ($(counted moved) parts, $(counted ud_missing) datagrams)" \
  test "$(counted moved)" -gt 0 -a "$(counted ud_missing)" -gt 0
mute='simfab fault link "h2 mlx5_0" 1 loss_out=1 at=25ms for=5ms'
ok "nothing comes in one direction over one rail for a while" job "$mute" 3
ok "what did not come is sent again ($(counted ud_missing) datagrams)" test "$(counted ud_missing)" -gt 0
if [ "$all" ]; then
  ok "nor over any" with MRMPI_RAILS_MAX=1 job "$mute" 3
  ok "what did not come is sent again ($(counted ud_missing) datagrams)" test "$(counted ud_missing)" -gt 0
fi
ok "an adapter dies" job true "$([ "$all" ] && echo 5 || echo 3)" 'simfab fault node "h2 mlx5_0" die'
model=hdr MOST_BYTES=300000

# ---- who has none --------------------------------------------------------------------------------------------------
many() { # RANKS FIRST
  fabric eight-hosts-two-rails "$2" mrrun -n "$1" --ppn $((($1 + 7) / 8)) --stats "$BUILD/tests/mpi/ud_zcopy" many 4 300001 &&
    grep -q '^all is right' "$tmp/out"
}
ok "seven hosts send to one" many 8 true
is "all of it lands where it belongs" "$(counted ud_zcopy)" 28
ok "though some had to wait for a queue pair" with MRMPI_UD_POOL=3 many 8 true
is "all of it lands where it belongs" "$(counted ud_zcopy)" 28
ok "($(counted ud_no_qp) of the messages)" test "$(counted ud_no_qp)" -gt 8
if [ "$all" ]; then
  ok "fourteen ranks send to one, whose rails lose 0.5 %" many 16 \
    'simfab fault link "h1 mlx5_0" 1 loss=0.005 && simfab fault link "h1 mlx5_1" 1 loss=0.005'
  repaired
fi
ok "a pool of one queue pair" with MRMPI_UD_POOL=1 job "$(lossy 0.01)" 2
ok "goes to one message at a time: long ones wait for it, short ones go in packets ($(counted ud_no_qp), $(counted ud_zcopy) of 72 in place)" \
  test "$(counted ud_zcopy)" -ge 48 -a "$(counted ud_zcopy)" -lt 72 -a "$(counted ud_no_qp)" -gt 24
ok "a rank that began more messages than there are queue pairs, and computes" with MRMPI_UD_POOL=4 with MRMPI_RAILS_MAX=1 \
  fabric eight-hosts-two-rails true mrrun -n 3 --ppn 1 --stats "$BUILD/tests/mpi/ud_zcopy" busy
ok "keeps nobody else from sending ($(sed -n "s/the other's messages took //p" "$tmp/out"))" \
  awk '/the other.s messages took/ {s = $5} END {exit !(s != "" && s < 0.01)}' "$tmp/out"
ok "its queue pairs were taken back ($(counted ud_recalled))" test "$(counted ud_recalled)" -ge 1
is "and in the end its messages land, too" "$(counted ud_zcopy)" 48

# ---- settings ------------------------------------------------------------------------------------------------------
ok "native: nobody acknowledges anything" with MRMPI_RELIABLE=no job true 3
ok "and large messages land where they belong ($(counted ud_zcopy))" test "$(counted ud_zcopy)" -ge 72
is "without a word of packets" "$(counted acks_sent) $(counted acks_carried)" "0 0"
ok "in packets, if that is wanted" with MRMPI_UD_RNDV=copy job "$(lossy 0.01)" 2
is "none lands" "$(counted ud_zcopy) $(counted ud_no_qp)" "0 0"
ok "a word that nobody knows" with MRMPI_UD_RNDV=never job true 1
like "is warned about" 'MRMPI_UD_RNDV=never: must be zcopy or copy; zcopy it is' "$tmp/out"
ok "and does what is usual" test "$(counted ud_zcopy)" -gt 0
ok "where both have reliable connections large messages go over those" with MRMPI_LINKS=ud,rc job "$(lossy 0.01)" 2
is "and none as datagrams" "$(counted ud_zcopy)" 0
ok "connections for one rank only" with MRMPI_LINKS=rc,ud with MRMPI_RC_PEERS=1 fabric eight-hosts-two-rails true \
  mrrun -n 8 --ppn 1 --stats "$BUILD/tests/mpi/ud_zcopy" all 3 300001
ok "large messages of others are datagrams ($(counted ud_zcopy)), without a copy" test "$(counted ud_zcopy)" -gt 0
done_testing
