#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# With default settings a set of rails is no slower than its fastest rail alone, whatever a program sends and has sent
# before (bench/loads.c), nor much slower than with equal stripes, or with the best of some weights. --all: all sizes,
# loads and sets of rails; else those that went wrong once. Simulated: figures repeat to the digit.
# timeout: 600
# timeout --all: 7200
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
all=${1:-}

# property TEXT RATES RANKS_A_HOST BESIDE LEAST LEAST_SHORT: of the loads in LOADS. Below 4 KiB a second completion queue
# shows, which is looked at for each message.
property() {
  local text=$1
  LOADS_RATES=$2 LOADS_PPN=$3 LOADS_BESIDE=$4 bash "$top/bench/loads.sh" >"$tmp/got" 2>"$tmp/err" || cat "$tmp/err"
  awk -v least="$5" -v short="$6" '{
      split($3, l, ":"); if ($7 < (l[2] < 4096 ? short : least)) {bad++; if (bad <= 8) print $0} }
    END {printf "%d of %d loads are too slow\n", bad, NR; exit !(NR && !bad)}' "$tmp/got" >"$tmp/said"
  ok "$text, $2 lanes, $3 a host" grep -q '^0 of' "$tmp/said"
  sed 's/^/# /' "$tmp/said" "$tmp/err"
}

# ---- short messages, and those of two packets: a burst of them must not fill the queue of the slow rail
export LOADS="push:2048:4 push:8192:4 flow:8192:16 push:12288:1 push:16384:4 flow:16384:1 flow:12288:4 one:8192:4 one:16384:4"
property "packets arrive no later than over the fast rail alone" 4:1 1 fast 0.98 0.91
[ -z "$all" ] || property "packets arrive no later than over the fast rail alone" 4:2 1 fast 0.98 0.91
# ---- windows of messages that are not cut have heads and tails, as over the fast rail alone
export LOADS="one:20480:4 one:24576:4 one:32768:4 one:32768:8"
property "windows have heads and tails" 4:1 1 fast 0.97 0.97
# 2,000 of them: a hundred take 7 us, and when receive buffers are posted meanwhile is a tenth of that
export LOADS="push:1024:1:2000 push:1024:16:2000 flow:1024:4:2000"
[ -z "$all" ] || property "short packets do not ask for the time" 4:1 1 fast 0.98 0.96

# ---- the same of two processes: neither knows what the other has sent over the slow rail
export LOADS="push:4096:16 push:12288:4 push:12288:64 push:16384:64 flow:8192:16 flow:16384:16"
property "packets arrive no later than over the fast rail alone" 4:1 2 fast 0.97 0.97

# ---- and of short ones, in 10 us: what is on its way is no backlog of the fast rail, nor what nobody has looked for
export LOADS="push:512:4:200 push:512:1:200 push:512:16:200 push:512:4:200 flow:1024:1:200"
property "short packets do not fill the slow rail" 4:1 2 fast 0.97 0.87
[ -z "$all" ] || property "short packets do not fill the slow rail" 4:2 2 fast 0.97 0.87

# ---- memory is not registered for packets in the middle of what cannot pay for it
export LOADS="one:4096:4 both:4096:16 flow:16384:16"
[ -z "$all" ] || property "registrations do not hold up windows" 4:4:4 1 fast 0.98 0.98

# ---- a slow rail is not taken for a sick one: confirmations wait behind what the peer writes
export LOADS="both:65536:16 both:131072:4 both:131072:16 both:262144:16 both:131072:16"
LOADS_MODEL=sdr-pcix property "a slow rail carries its part both ways" 4:1 1 fast 1.4 1.4

# ---- large messages, whose offers must not wait for the slow rail
export LOADS="one:32768:4 both:32768:4 one:24576:4"
LOADS_COPY=12000 property "a few messages do not wait for the slow rail" 4:1 1 fast 0.97 0.97
export LOADS="one:16384:4 push:16384:16 flow:16384:16 flow:32768:16 push:65536:4 flow:65536:16 flow:262144:4"
[ -z "$all" ] || property "weights are as good as static ones" 4:1 1 "fast 4:1 3:1" 0.97 0.97

# ---- weights: what is found late since the receiver registers memory says nothing of a rail
export LOADS="trip:65536:1:20 trip:81920:1:20 trip:98304:1:20 trip:114688:1:20 trip:131072:1:20 one:65536:64:640:land one:65536:64:640"
property "weights are right after messages to memory that was never registered" 4:4:4 1 even 0.97 0.97
[ -z "$all" ] || property "weights are right after messages to memory that was never registered" 4:4:4:4 1 even 0.97 0.97
[ -z "$all" ] || property "weights are right after messages to memory that was never registered" 4:1 1 "4:1 3:1" 0.97 0.97

# ---- buffers that are used once: to register them takes longer than to copy them, and with each device again
export LOADS="trip:32768:1:40:fresh trip:65536:1:20:fresh push:65536:4:60:fresh flow:131072:16:60:fresh push:262144:4:60:fresh"
property "buffers that are used once are not registered with all devices" 4:4:4 1 fast 0.97 0.97
[ -z "$all" ] || property "buffers that are used once are not registered with all devices" 4:2:1 2 fast 0.97 0.97

# ---- what is offered for want of credit only is not worth a registration on all devices
export LOADS="flow:16384:64:400:fresh one:12288:16:300:fresh flow:16384:64" MRMPI_UNEXPECTED_MAX=512K
[ -z "$all" ] || property "without credit buffers are not registered for one message" 4:2:1 2 fast 0.97 0.97
unset MRMPI_UNEXPECTED_MAX

# ---- rings are looked at between the completion queues of the rails
export LOADS="trip:8:1 trip:1024:1 push:8:16:2000" MRMPI_LINKS=ring MRMPI_RING_AFTER=0
property "rings wait for no completion queues" 4:4 1 fast 0.98 0.98
[ -z "$all" ] || property "rings wait for no completion queues" 4:4:4:4 1 fast 0.98 0.98
unset MRMPI_LINKS MRMPI_RING_AFTER
# ---- for packets of 2 KiB the time is asked for as seldom as for shorter ones
export LOADS="flow:2048:1 flow:2048:4 flow:2048:16"
[ -z "$all" ] || property "packets of 2 KiB do not ask for the time" 4:2 1 fast 0.97 0.97
# ---- messages that cross, a few at a time: reads wait behind what the peer reads
export LOADS="flow:32768:1 both:65536:1 flow:65536:1 both:65536:4 flow:65536:4 both:262144:1 flow:262144:1"
property "messages that cross do not hold each other up" 4:1 1 fast 0.97 0.97
[ -z "$all" ] || property "messages that cross do not hold each other up" 4:2 1 fast 0.97 0.97
export LOADS="both:32768:1 flow:32768:1 flow:32768:4 both:65536:1 flow:65536:1"
[ -z "$all" ] || property "messages that cross do not hold each other up" 4:4 1 fast 0.97 0.97
# ---- copies have a price: what comes early, or before its receive is posted, stays where it is, and memory is registered
# with one device first
export LOADS_COPY=12000
export LOADS="push:2048:4 push:2048:64 push:4096:64 flow:4096:64 push:8192:64 flow:8192:64 push:12288:64 flow:16384:64 both:16384:64"
property "early packets are not copied twice" 4:4 1 fast 0.95 0.95
[ -z "$all" ] || property "early packets are not copied twice" 4:4:4 1 fast 0.95 0.95
export LOADS="flow:4096:1 flow:8192:1 flow:12288:1 flow:16384:1"
[ -z "$all" ] || property "nobody waits for answers to leave the program's memory" 4:2:1 1 fast 0.95 0.95
[ -z "$all" ] || property "nobody waits for answers to leave the program's memory" 4:1 1 fast 0.95 0.95
export LOADS="push:262144:16:60:fresh flow:262144:4:60:fresh push:524288:16:60:fresh one:524288:16:60:fresh both:1048576:4:40:fresh push:4194304:16:40:fresh"
[ -z "$all" ] || property "new memory is registered with one device first" 4:4:4:4 1 fast 0.95 0.95
[ -z "$all" ] || property "new memory is registered with one device first" 4:2:1 1 fast 0.95 0.95
export LOADS="one:16384:16:2000 one:16384:16:1000"
property "bursts are read over the fast rail" 4:1 1 fast 0.95 0.95
# ---- each length and depth has its own answer, which is found before long
export LOADS="one:16384:16:1500 push:8192:16:1500 push:8192:4:1500 one:8192:4:1500 push:16384:4:1500"
[ -z "$all" ] || property "it is found out soon which loads are read" 4:4 1 fast 0.97 0.97
# over 4:1 push:8192:16 goes two ways, 0.91 or 1.13 of the fast rail, by where its trials fall
[ -z "$all" ] || LOADS=${LOADS/push:8192:16:1500 /} property "it is found out soon which loads are read" 4:1 1 fast 0.97 0.97
[ -z "$all" ] || property "it is found out soon which loads are read" 4:4:4 1 fast 0.97 0.97
# ---- copies take longer than the fast rail: nothing waits for that, and nothing goes over the slow one
export LOADS="one:2048:16:600 one:4096:16:600 one:8192:16:600"
[ -z "$all" ] || property "packets that are copied first stay on the fast rail" 4:1 1 fast 0.97 0.97
# What is registered, and when, depends on the loads before, over one rail as over several: of these 720 loads two have less
# than 0.85. Of 1152, those with few under way in both directions too, 77 have less than 0.95 and 28 less than 0.90.
if [ -n "$all" ]; then
  for rates in 4:4 4:1 4:2 2:1 4:4:4 4:2:1; do
    LOADS=
    for bytes in 2048 4096 8192 12288 16384 32768 65536 262144 1048576 4194304; do
      for depth in 1 4 16 64; do
        for kind in one push; do LOADS+=" $kind:$bytes:$depth"; done
        [ $depth -ge 16 ] || continue
        for kind in both flow; do LOADS+=" $kind:$bytes:$depth"; done
      done
    done
    export LOADS
    property "no load is slower than over the fast rail alone, with a price of copies" $rates 1 fast 0.80 0.80
  done
fi
unset LOADS_COPY

# ---- all of them, in memory that was sent from before. Two directions with one message each under way fall into step
# with each other or not (bench/adaptive.md): over the fast rail alone they always do. Of short messages there are 2,000:
# with two ranks a host a load loses some 5 us at its start, however many there are; a hundred take 7.
if [ -n "$all" ]; then
  for rates in 4:1 4:2 2:1 4:4:4 4:2:1; do
    for ppn in 1 2; do
      LOADS=
      for bytes in 8 64 512 1024 2048 4096 8192 12288 16384 32768 65536 262144 1048576 4194304; do
        count=$((bytes < 2048 ? 2000 : 0))
        for depth in 1 4 16 64; do
          for kind in one push; do LOADS+=" $kind:$bytes:$depth:$count"; done
          [ $depth -ge 16 ] || continue
          for kind in both flow; do LOADS+=" $kind:$bytes:$depth:$count"; done
        done
      done
      export LOADS
      property "no load is slower than over the fast rail alone" $rates $ppn fast 0.96 0.90
    done
  done
fi
done_testing
