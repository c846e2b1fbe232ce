#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 300
# timeout --all: 7200
# Unreliable connections and datagrams under MPI: nothing is lost, doubled, reordered or changed, whatever the fabric loses;
# figures without loss; settings. --all: each kind of link with everything.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/links.inc"
export MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=2 MOST_BYTES=40000

links() { fabric "" mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/links" "$@"; }
# KIND and settings, for what follows: rc+ is rc with acknowledgements, ud- is ud without
over() { # KIND RAILS CMD...
  local kind=$1 reliable=auto
  [[ $kind == *+ ]] && reliable=yes
  [[ $kind == *- ]] && reliable=no
  MRMPI_LINKS=${kind%[+-]} MRMPI_RELIABLE=$reliable MRMPI_RAILS_MAX=$2 "${@:3}"
}
lose() { echo "simfab fault link \"*\" loss=$1"; }
# a rank's counters that are zero are not printed, so there must be others
few_again() { [ "$(counted net_sent)" -ge "$1" ] && [ "$(counted resent)" -le "$2" ]; } # PACKETS MOST: of so many, or more
quiet() { few_again 1 0 && [ "$(counted duplicates)" = 0 ] && [ "$(counted timeouts)" = 0 ]; }

# ---- without loss, in figures ------------------------------------------------------------------------------------
for kind in rc rc+ uc uc- ud ud-; do
  ok "$kind: a ping-pong of all sizes" over $kind 2 links ping
  ok "nothing is sent again ($(counted resent)), comes twice ($(counted duplicates)) or is waited for in vain ($(counted timeouts))" quiet
  n=$(($(counted acks_sent) + $(counted acks_carried)))
  if [[ $kind == rc || $kind == *- ]]; then is "and nothing is acknowledged" "$n" 0
  else ok "it is acknowledged ($n)" test "$n" -gt 0; fi
  datagrams=0; [[ $kind == ud* ]] && datagrams=$(($(counted net_sent) + $(counted acks_sent)))
  is "datagrams are counted" "$(counted ud_sent)" "$datagrams"
  if [[ $kind == [ur]?- ]]; then like "that this is unsafe is said" 'MRMPI_RELIABLE=no: a packet that the network loses is lost' "$tmp/out"
    is "once" "$(grep -c 'MRMPI_RELIABLE=no' "$tmp/out")" 1
  else not_ok "and this is not unsafe" grep 'MRMPI_RELIABLE' "$tmp/out"; fi
  if [[ $kind == u* && ( -n $all || $kind != *- ) ]]; then
    grep 'bytes: ' "$tmp/out" >"$tmp/times"
    over $kind 2 links ping >"$tmp/again" || true
    ok "the same run again takes the same times, all of $(grep -c . "$tmp/times")" diff "$tmp/times" <(grep 'bytes: ' "$tmp/out")
  fi
done
for kind in uc ud; do
  ok "$kind: a stream one way" over $kind 1 links stream 6400
  ok "its receiver acknowledges one in 32 packets and the last ($(counted acks_sent 1))" \
    test "$(counted acks_sent 1)" -ge 150 -a "$(counted acks_sent 1)" -le 240
  ok "its sender keeps a window of packets ($(counted unconfirmed_most 0), $(counted unconfirmed_bytes_most 0) bytes)" \
    test "$(counted unconfirmed_most 0)" -gt 32 -a "$(counted unconfirmed_most 0)" -lt 1000 -a "$(counted unconfirmed_bytes_most 0)" -lt 1000000
  ok "nothing is sent twice" quiet
  ok "$kind: a stream one way, short queues" with MRMPI_SRQ_DEPTH=16 over $kind 1 links stream 640
  ok "does not wait for late acknowledgements ($(tail -n 1 "$tmp/out"))" \
    awk '/us a message/ {us = $1} END {exit !(us != "" && us < 50)}' "$tmp/out"
  ok "$kind: a flood to a rank that sleeps" over $kind 1 links flood 1000
  ok "nearly nothing is sent again ($(counted resent) of $(counted net_sent))" few_again 1000 40
  ok "$kind: a rank that computes for 5 s" over $kind 1 links compute 5
  # a poll that finds nothing lets the 5 s pass at once here, so there is one time-out, not one a second
  ok "gets a few packets again ($(counted timeouts 0) time-outs, $(counted resent 0) packets)" \
    test "$(counted timeouts 0)" -ge 1 -a "$(counted resent 0)" -ge 1 -a "$(counted resent 0)" -le 20
  like "and all comes soon after" '^all are there after 5\.0' "$tmp/out"
done

# two ranks of another host, and what one of them may send alone would fill the queue
ok "ud: messages from all to one that sleeps now and then, short queues" with MRMPI_SRQ_DEPTH=64 over ud 1 \
  fabric "" mrrun -n 4 --ppn 2 --stats "$BUILD/tests/mpi/links" crowd 60
ok "nearly nothing is sent again ($(counted resent) of $(counted net_sent))" few_again 960 40

# ---- loss --------------------------------------------------------------------------------------------------------
for kind in ud uc rc,ud ud,rc rc+; do
  for rails in 1 2; do
    for loss in 0.01 0.1; do
      [ -z "$all" ] && [[ $kind$rails$loss != ud10.1 && $kind$rails$loss != uc20.01 && $kind$rails$loss != rc+10.01 ]] && continue
      ok "$kind, $rails rails: $loss of the packets are lost" over $kind $rails job "" 2 7 "$(lose $loss)" true
      # a connection of the adapter's may repeat all that is lost by itself, before we miss it
      [[ $kind == *rc* ]] || ok "and sent again ($(counted resent) of $(counted net_sent), after $(counted timeouts) time-outs; $(
        counted duplicates) in vain)" test "$(counted resent)" -gt 0
      [[ $loss = 0.1 || $kind == *,* ]] && continue
      is "no link is taken as dead for that" "$(grep -c 'do not come any more' "$tmp/out")" 0
    done
  done
done

# ---- links that break ----------------------------------------------------------------------------------------------
for kind in ud uc rc,ud ${all:+ud,rc uc,ud rc+}; do
  ok "$kind: cables are pulled and put back" over $kind 2 job "" 2 16 "${cables[@]}"
  ok "paths broke ($(counted broken)) and were opened again ($(counted reopened))" \
    test "$(counted broken)" -ge 4 -a "$(counted reopened)" -ge 2
done
for kind in ud ${all:+uc rc,ud rc+}; do
  ok "$kind: an adapter dies" over $kind 2 job "" 2 8 'simfab fault node "h2 mlx5_0" die'
  ok "$kind: a link swallows everything, without a word" over $kind 2 job "" 2 10 "$h2 loss=1" "$h2 loss=0; sleep 0.3" true
done
echo 'hca: {uc_srq: false}' >"$tmp/own.yaml"
ok "uc, adapters that cannot share receive queues: cables" over uc 2 job "--model $tmp/own.yaml" 2 16 "${cables[@]}"
ok "uc, such adapters: a flood to a rank that sleeps" over uc 1 fabric "--model $tmp/own.yaml" \
  mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/links" flood 300
ok "does not overrun their buffers ($(counted resent) of $(counted net_sent) packets sent again)" few_again 300 40
ok "uc, such adapters: loss" over uc 1 job "--model $tmp/own.yaml" 2 7 "$(lose 0.01)" true
# Connections that take nothing any more, and adapters that say nothing of it. One rail, and then one queue pair beside those for
# connecting, one of them in reserve: no other link shows that the peer lives.
deaf='hca: {uc_srq: false, uc_recovers: false'
rounds=${all:+3}
for most in ${all:+''} ', max_qp: 3'; do
  printf '%s%s}\nlink: {mtu: 2048}\n' "$deaf" "$most" >"$tmp/deaf.yaml"
  ok "uc, adapters that are deaf after a write that lost a packet$most: loss" over uc 1 job "--model $tmp/deaf.yaml" 2 ${rounds:-2} "$(lose 0.01)"
  ok "connections were made anew ($(counted reopened))" test "$(counted reopened)" -ge 2
done
ok "and peers were asked ($(counted questions))" test "$(counted questions)" -ge 2

# ---- other sizes -------------------------------------------------------------------------------------------------
printf 'link: {mtu: 256}\n' >"$tmp/256.yaml"
printf 'link: {mtu: 2048}\n' >"$tmp/2048.yaml"
for kind in ud ${all:+uc}; do
  ok "$kind: packets of 256 bytes, with loss" over $kind 2 job "--model $tmp/256.yaml" 2 5 "$(lose 0.01)"
  [ -z "$all" ] || ok "$kind: of 2048 bytes, four ranks" over $kind 2 job "--model $tmp/2048.yaml" 4 5 "$(lose 0.01)"
  ok "$kind: short queues" with MRMPI_SQ_DEPTH=4 with MRMPI_SRQ_DEPTH=16 over $kind 2 job "" 2 5 "$(lose 0.01)"
  ok "$kind: short eager messages" with MRMPI_EAGER_MAX=64 over $kind 1 job "" 2 5 "$(lose 0.01)"
  ok "$kind: long ones" with MRMPI_EAGER_MAX=64K over $kind 1 job "" 2 5 "$(lose 0.01)"
done

# ---- settings ----------------------------------------------------------------------------------------------------
ok "ranks with rc,ud and with ud use ud" mixed rc,ud ud
ok "which is acknowledged ($(counted acks_sent))" test "$(counted acks_sent)" -gt 0
ok "ranks with ud,rc and rc,uc use rc" mixed ud,rc rc,uc
is "which is not" "$(counted acks_sent)" 0
not_ok "ranks with nothing in common" with MRMPI_PATIENCE=5 mixed rc uc,ud
like "are told" 'uses no kind of link that is used here \(MRMPI_LINKS\)' "$tmp/out"
while read -r name value says; do
  not_ok "$name=$value" with "$name=$value" links stream 1
  like "is refused" "$name=$value is not $says" "$tmp/out"
done <<'EOT'
MRMPI_LINKS rc,tcp auto, or a comma list of rc, uc, ud and ring
MRMPI_LINKS ud,ud auto, or a comma list of rc, uc, ud and ring, each at most once
MRMPI_RELIABLE maybe one of auto, yes, no
EOT

# ---- the MPI programs --------------------------------------------------------------------------------------------
unset MRMPI_LEAKS MRMPI_LOG_LEVEL
if [ -n "$all" ]; then
  for kind in ud uc rc,ud ud,rc rc+; do
    ok "$kind: the MPI programs, one rail" over $kind 1 programs net1 .
    ok "$kind: the MPI programs, two rails" over $kind 2 programs net2 .
  done
else
  export MPI_TEST_RANKS='3 4' MPI_TEST_MORE='^(part|isendrecv)$' MPI_TEST_MORE_RANKS=3
  ok "ud: MPI programs, two rails" over ud 2 programs net2 '^(p2p_order|p2p_modes|p2p_eager|cancel|threads)$'
  ok "uc: MPI programs, one rail" over uc 1 programs net1 '^(p2p_sizes|isendrecv|p2p_flood|part)$'
  ok "ud,rc: MPI programs, two rails" over ud,rc 2 programs net2 '^(p2p_sizes|p2p_truncate)$'
fi
done_testing
