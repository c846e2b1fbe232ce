#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 300
# timeout --all: 7200
# Rings that peers write into: nothing is lost, doubled, reordered or changed, whatever breaks; credit; who has one; the
# designs; settings. --all: each design with everything.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/links.inc"
export MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=2 MRMPI_LINKS=ring MRMPI_RING_AFTER=0 MOST_BYTES=40000

run() { fabric "" mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/$1" "${@:2}"; } # PROGRAM ARGS...
between() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; } # N LEAST MOST

# ---- in figures --------------------------------------------------------------------------------------------------
ok "a ping-pong of all sizes" with MRMPI_RAILS_MAX=1 run links ping
grep 'bytes: ' "$tmp/out" >"$tmp/times"
ok "all short packets went through rings ($(counted ring_sent) of $(counted net_sent))" \
  test "$(counted ring_sent)" -ge 240 -a "$(counted ring_full)" = 0
is "large messages went by RDMA, and nothing was sent again" "$(test "$(counted net_stripes)" -gt 0 && echo rdma) $(counted resent)" "rdma 0"
is "what is free went with packets alone" "$(counted ring_credits)" 0
with MRMPI_RAILS_MAX=1 run links ping >/dev/null
ok "the same run again takes the same times, all of $(grep -c . "$tmp/times")" diff "$tmp/times" <(grep 'bytes: ' "$tmp/out")
ok "with MRMPI_RING_AFTER=20" with MRMPI_RING_AFTER=20 with MRMPI_RAILS_MAX=1 run links stream 6400
ok "the first packets are sent ($(counted ring_sent) of $(counted net_sent) were not)" between "$(counted ring_sent)" 100 6380
ok "a stream one way" with MRMPI_RAILS_MAX=1 run links stream 6400
ok "the reader tells what is free, once in half a ring at most ($(counted ring_credits 1) times)" between "$(counted ring_credits 1)" 1 400
ok "a flood to a rank that sleeps" with MRMPI_RING_SIZE=8K with MRMPI_RAILS_MAX=1 run links flood 300
ok "fills the ring, and the rest is sent ($(counted ring_full) packets)" test "$(counted ring_full)" -gt 100
for slots in ${all:+1} 2; do
  ok "rings of $slots slots" with MRMPI_RING_SLOTS=$slots job "" 2 4 true
  ok "are full now and then ($(counted ring_full)) and were used ($(counted ring_sent))" test "$(counted ring_full)" -gt 0 -a "$(counted ring_sent)" -gt 20
done
ok "short queues" with MRMPI_SQ_DEPTH=4 with MRMPI_SRQ_DEPTH=16 job "" 2 4 true

# ---- links that break ----------------------------------------------------------------------------------------------
ok "cables are pulled and put back" job "" 2 "$([ -n "$all" ] && echo 22 || echo 8)" "${cables[@]}"
ok "paths broke ($(counted broken)), were opened again ($(counted reopened)), and rings were used ($(counted ring_sent))" \
  test "$(counted broken)" -ge 4 -a "$(counted reopened)" -ge 2 -a "$(counted ring_sent)" -gt 50
ok "the only cable is pulled while packets lie in rings unread" with MRMPI_RAILS_MAX=1 run unread 32 "$h2 down for=100ms"
ok "which were not sent again, but for the last ones ($(counted resent) of 64)" between "$(counted resent)" 0 40
ok "they lay in rings ($(counted ring_sent)), and both broke ($(counted broken))" \
  test "$(counted ring_sent)" -ge 64 -a "$(counted broken)" -ge 4
[ -z "$all" ] || ok "one of two cables" run unread 32 "$h2 down for=100ms"
ok "an adapter dies" job "" 2 8 'simfab fault node "h2 mlx5_0" die'
ok "acknowledged by the receiver, too: packets are lost" with MRMPI_RELIABLE=yes job "" 2 5 'simfab fault link "*" loss=0.01' true

# ---- who has one ---------------------------------------------------------------------------------------------------
ok "collectives of 12 ranks, each with rings for two" with MRMPI_RING_PEERS=2 \
  fabric "" mrrun -n 12 --ppn 6 --stats "$BUILD/tests/mpi/coll"
ok "and no more ($(most rings_most) at most), which were used ($(counted ring_sent) packets)" \
  test "$(most rings_most)" = 2 -a "$(counted ring_sent)" -gt 100
ok "a rank that talks to three others, one after the other, with rings for one" with MRMPI_RING_PEERS=1 \
  fabric "--model $root/etc/models/sdr-pcix.yaml" mrrun -n 4 --ppn 3 --stats "$BUILD/tests/mpi/turns" 2100
ok "gives them to each ($(counted rings_withdrawn 3) withdrawn; $(counted ring_sent) of $(counted net_sent) packets)" \
  test "$(counted rings_withdrawn 3)" -ge 1 -a "$(counted ring_sent)" -gt 7000
is "to one at a time" "$(counted rings_most 3)" 1
ok "without any" with MRMPI_RING_PEERS=0 run links stream 100
is "all is sent" "$(counted ring_sent)" 0

# ---- with other kinds ----------------------------------------------------------------------------------------------
ok "ranks with ring,rc and with rc use rc" mixed ring,rc rc
is "and no ring" "$(counted ring_sent)" 0
ok "ring and datagrams, one connection at a time, 4 ranks" with MRMPI_LINKS=ring,ud with MRMPI_RC_PEERS=1 \
  fabric "" mrrun -n 4 --ppn 2 --stats "$BUILD/tests/mpi/coll"
ok "both are used ($(counted ring_sent) packets, $(counted acks_carried) acknowledgements)" \
  test "$(counted ring_sent)" -gt 0 -a "$(counted acks_carried)" -gt 0
ok "by a rule for short messages" with MRMPI_LINKS=ring,rc with "MRMPI_RULES=eager size<=512: ring; any: rc" job "" 2 4 true
ok "they alone take the ring ($(counted ring_sent) of $(counted net_sent) packets)" \
  test "$(counted ring_sent)" -gt 0 -a "$((4 * $(counted ring_sent)))" -lt "$((3 * $(counted net_sent)))"

# ---- designs ---------------------------------------------------------------------------------------------------------
for design in basic ${all:+piggyback} pipelined; do
  export MRMPI_RING_DESIGN=$design
  ok "$design: a ping-pong of all sizes" with MRMPI_RAILS_MAX=1 run links ping
  is "large messages go through rings" "$(counted net_stripes)" 0
  ok "what is free is told ($(counted ring_credits) times, $(counted ring_sent) packets)" \
    test "$( ([ $design = basic ] && [ "$(counted ring_credits)" -ge 500 ]) || ([ $design != basic ] && [ "$(counted ring_credits)" -le 400 ]); echo $?)" = 0
  [ -n "$all" ] || continue
  ok "$design: cables are pulled and put back" job "" 2 "$([ -n "$all" ] && echo 16 || echo 6)" "${cables[@]}"
  [ -n "$all" ] || continue
  ok "$design: rings and datagrams" with MRMPI_LINKS=ring,ud job "" 2 4 true
  ok "$design: short queues" with MRMPI_SQ_DEPTH=4 with MRMPI_SRQ_DEPTH=16 job "" 2 4 true
  ok "$design: the only cable is pulled while packets lie in rings unread" with MRMPI_RAILS_MAX=1 run unread 32 "$h2 down for=100ms"
  ok "$design: a bus that goes one way at a time" job "--model $root/etc/models/sdr-pcix.yaml" 2 3 true
done
export MRMPI_RING_DESIGN=fast
ok "an unknown design" run links stream 10
like "is said to be none" 'MRMPI_RING_DESIGN=fast: must be basic, piggyback, pipelined or zerocopy' "$tmp/out"
unset MRMPI_RING_DESIGN

# ---- the MPI programs --------------------------------------------------------------------------------------------
unset MRMPI_LEAKS MRMPI_LOG_LEVEL MOST_BYTES
if [ -n "$all" ]; then
  export MPI_TEST_TIMEOUT=600 # 2 GiB in slots of 2 KiB, one at a time, take the simulator more than a minute
  for design in basic piggyback pipelined zerocopy; do
    ok "$design: the MPI programs, one rail" with MRMPI_RING_DESIGN=$design programs net1 .
    ok "$design: the MPI programs, two rails" with MRMPI_RING_DESIGN=$design programs net2 .
  done
else
  export MPI_TEST_RANKS=3
  ok "MPI programs, two rails" programs net2 '^(p2p_order|p2p_sizes|cancel)$'
fi
done_testing
