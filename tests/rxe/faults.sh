#!/usr/bin/env bash
# Lossy, reordering, delaying and duplicating links: the datagrams that set up connections come through, and so does what is
# sent over the connections, reliable or not. (Datagrams: links.sh.)
# timeout: 1700
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 1680 'faults 1050: bash tests/rxe/faults.sh inside' \
    'uc-faults 500: MRMPI_LINKS=uc bash tests/rxe/faults.sh inside middle'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
. "$(dirname "$0")/wires.sh"
export MRMPI_LOG_LEVEL=3
# a packet that is lost at the end of a message is sent again after 134 ms, not after a second
export MRMPI_RC_TIMEOUT=15

each() { local i; for i in a0 b0 a1 b1; do "$@" $i || return 1; done; }
impair() { # FAULT...: netem's words, on all wires
  local i
  for i in a0 b0 a1 b1; do tc qdisc replace dev $i root netem "$@" || return 1; done
}
mend() { local i; for i in a0 b0 a1 b1; do tc qdisc del dev $i root 2>/dev/null; done; }
dropped() { # on all wires: a short program sends some dozens of packets over each
  each tc -s qdisc show dev | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | awk '{n += $1} END {print n + 0}'
}
limit=100 # seconds a job may take
job() { # RAILS RANKS PROGRAM...
  local rails=$1 n=$2
  shift 2
  timeout -k 5 $limit mrrun --stats -n "$n" --ppn $((n / 2)) --hosts "$(hosts "$rails")" "$@" >"$tmp/job" 2>&1
}
# What connecting cost in the job before: how many connections, the slowest, repeated datagrams in all.
connecting() {
  awk '/connected to rank/ { n++; for (i = 1; i < NF; i++) if ($i == "in" && $(i + 2) ~ /^ms/) { if ($(i + 1) > most) most = $(i + 1) } }
    /connect_retries=/ { sub(/.*connect_retries=/, ""); again += $1 }
    END { printf "%d connections, the slowest in %.1f ms, %d datagrams repeated", n, most, again }' "$tmp/job"
}
passes() { # TEXT RAILS RANKS PROGRAM...
  local text=$1
  shift
  local begin=$SECONDS rc
  job "$@"
  rc=$?
  tap_result $((rc != 0)) "$text: ${3##*/}, $2 ranks, $1 rails, $((SECONDS - begin)) s ($(connecting))" "$tmp/job"
}
mpi=$BUILD/tests/mpi
extent=${2:-long} # or middle: each kind of fault, few programs; or short: two faults, one program each
long=1
[ $extent = long ] || long=
middle=1
[ $extent = short ] && middle=

# ---- connecting alone: of the datagrams, and of nothing else, two of five get lost (BTH opcode 0x64: UD, send only)
lose_datagrams() { # INTERFACE
  tc qdisc add dev "$1" root handle 1: prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 &&
    tc qdisc add dev "$1" parent 1:2 handle 2: netem loss 40% &&
    tc filter add dev "$1" parent 1: protocol ip u32 match ip protocol 17 0xff match u8 0x64 0xff at 28 flowid 1:2
}
mend
ok "links that lose datagrams of connecting" each lose_datagrams
repeated=0
for i in 1 ${middle:+2} ${long:+3 4 5 6}; do
  passes "two of five datagrams lost" 2 4 "$mpi/p2p_ring"
  repeated=$((repeated + $(connecting | sed 's/.*, \([0-9]*\) datagrams.*/\1/')))
done
ok "some had to be repeated ($repeated)" test $repeated -gt 0
like "the slowest connection is told" 'connected to rank [0-9]+ on [ab] in [0-9.]+ ms' "$tmp/job"
lost=$(tc -s qdisc show dev a0 | awk '/netem/ {here = 1} here && /dropped/ {sub(/.*dropped /, ""); print $1 + 0; exit}')
ok "some were lost on the way out of a ($lost)" test "${lost:-0}" -gt 0
mend

# ---- everything
while read -r text fault; do
  case "$extent $fault" in
    short\ loss\ 5%* | short*reorder*) ;;
    short* | middle\ loss\ 1%* | middle*duplicate*) continue ;;
  esac
  ok "$fault on every wire" impair $fault
  [[ -z $middle && $text == order ]] || passes "$fault" 2 4 "$mpi/p2p_ring"
  # a queue pair of soft-RoCE that is unreliable breaks at packets of one message that change places (IBTA 9.8.2 drops the
  # message only), and this program's long messages would be sent as often as they are lucky
  [[ -z $middle && $text == loss ]] || [[ $text == late && ${MRMPI_LINKS:-rc} == uc ]] ||
    passes "$fault" 1 2 "$mpi/p2p_truncate"
  if [ -n "$long" ]; then
    passes "$fault" 2 4 "$mpi/p2p_modes"
    passes "$fault" 2 2 "$mpi/request"
    # packets that are late by as much as that come in any order, and each gap costs a reliable connection a round trip
    most=$([ "$text" = late ] && echo 16384 || echo 262144)
    # there a message takes up to 0.2 s, and this program sends some hundreds
    limit=$([ "$text" = late ] && echo 300 || echo 100)
    passes "$fault" 2 2 NPmpich2 -o "$tmp/np" -l 1 -u "$most" -p 0 -n 2
    limit=100
  fi
  case "$text" in
    loss) ok "packets were lost ($(dropped))" test "$(dropped)" -gt 0 ;;
  esac
  mend
done <<'EOF'
loss loss 1%
loss loss 5%
order delay 2ms reorder 75% 50%
twice duplicate 10%
torn corrupt 2%
late delay 20ms 10ms
EOF

# ---- what a peer that computes is taken for: who says nothing is not there, and not broken
if [[ ${MRMPI_LINKS:-rc} == uc ]]; then
  passes "a peer that computes for 5 s" 1 2 "$mpi/links" compute 5
  asked=$(sed -n 's/.* questions=\([0-9]*\).*/\1/p' "$tmp/job" | awk '{ n += $1 } END { print n + 0 }')
  ok "it is asked whether it is there ($asked times)" test "$asked" -ge 3
  not_ok "and its connection stays" grep -E ' broken=|do not come any more' "$tmp/job"
fi
done_testing
