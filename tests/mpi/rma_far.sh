#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Locks of windows between hosts (rma_far.c): mutual exclusion over every kind of link and any mix of ranks, while
# cables are pulled and rails fall silent, also the only one that leads to the adapter which changes the locks; and
# targets that compute. --all: more kinds of links, and more of what happens at random.
# timeout: 300
# timeout --all: 1200
. "$(dirname "$0")/../tap.sh"
all=${1:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
two=$root/etc/topologies/two-hosts-two-rails.net

# Inside of the subnet, in simulated time. home: the rail of the adapters that change the locks is pulled at either end,
# and comes back. both: the other one, too. random SEED: a rail at a time, each 0.1 to 0.5 ms.
case $all in
  home)
    for ((i = 0; i < 4; i++)); do fault "h$((1 + i % 2)) mlx5_0" 1 down after=$((1 + 30 * i))ms for=8ms; done
    tap_exec "${@:2}"
    ;;
  both)
    for ((i = 0; i < 3; i++)); do for r in 0 1; do fault "h$((1 + (i + r) % 2)) mlx5_$r" 1 down after=$((1 + 40 * i + 2 * r))ms for=10ms; done; done
    tap_exec "${@:2}"
    ;;
  random)
    RANDOM=$2 t=0
    for ((i = 0; i < 120; i++)); do
      t=$((t + 100 + RANDOM % 400))
      fault "h$((1 + RANDOM % 2)) mlx5_$((RANDOM % 2))" 1 loss=1 after=${t}us for=$((50 + RANDOM % 500))us
    done
    tap_exec "${@:3}"
    ;;
esac

quiet() { # RANKS PPN ARGS...: it succeeds and prints nothing
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=0 timeout -k 5 100 simfab run --topology "$two" --model hdr -- \
    mrrun -n "$1" --ppn "$2" "$BUILD/tests/mpi/rma_far" "${@:3}" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc = 0 ] && [ ! -s "$tmp/out" ]
}
broken() { # FAULTS KINDS RANKS ARGS...
  MRMPI_LINKS=$2 MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 timeout -k 5 150 simfab run --topology "$two" --model hdr -- \
    bash "$0" $1 mrrun -n "$3" --ppn $((($3 + 1) / 2)) --stats "$BUILD/tests/mpi/rma_far" "${@:4}" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v "^ \|^mrrun: rails\|counters:" "$tmp/out" | tail -n 20
  [ $rc = 0 ] && ! grep -q 'leak:' "$tmp/out"
}
computes() { # MOST_US RANKS EPOCHS FLAVOR: the target is alone on its host
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=0 timeout -k 5 100 simfab run --topology "$two" --model hdr -- \
    mrrun -n "$2" --ppn $(($2 - 1)) "$BUILD/tests/mpi/rma_far" computes "$3" "$4" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc = 0 ] && awk -v most="$1" '/^[0-9]* epochs, the longest/ && $5 < most {ok = 1} END {exit !ok}' "$tmp/out"
}

# The first epoch is not counted: it finds out that nobody answers. The target looks at its memory each millisecond, and
# whoever looks at the network with nothing under way sees no sooner in simulated time that it was for nothing.
# Where the allocator is a sanitizer's nothing stays registered: what is short goes in packets, which the target answers
case $(sanitizers) in
  *address*) ;;
  *)
    ok "the target computes: no epoch of the only origin takes 25 us" computes 25 2 40 0
    ok "nor in a window of the program's memory" computes 25 2 40 1
    ok "nor in memory that is attached" computes 25 2 40 2
    for flavor in 0 1 2; do ok "three origins, flavor $flavor: they wait for each other only" computes 1000 4 20 $flavor; done
    ;;
esac
for n in 2 3 4 7; do
  ok "$n ranks count" quiet $n $(((n + 1) / 2)) count $((60 / n))
  ok "$n ranks, several windows" quiet $n $(((n + 1) / 2)) mixed 9
  ok "$n ranks, some of which share all parts" quiet $n $(((n + 1) / 2)) all 8
done
ok "on one host: no adapter" mrrun -n 3 "$BUILD/tests/mpi/rma_far" mixed 9

kinds=(auto uc ud "rc,ud")
[ -z "$all" ] || kinds+=(ring "rc,uc,ud")
for k in "${kinds[@]}"; do
  ok "$k: the rail that leads to the locks breaks" broken home "$k" 4 count 300
  ok "it did ($(counted broken) ends)" test "$(counted broken)" -ge 8
  case $k in
    auto | ring) ok "adapters took locks before and after ($(counted locks), $(counted locks_cleared) cleared)" \
      test "$(counted locks)" -ge 10 -a "$(counted locks_cleared)" -gt 0 ;;
    uc | ud) ok "no adapter takes a lock" test "$(counted locks)" = 0 ;;
  esac
done
ok "all rails break" broken both auto 4 count 200
for seed in 1 2 ${all:+3 4 5 6 7 8 9 10 11 12}; do
  ok "at random ($seed)" broken "random $seed" auto 4 count 250
  ok "windows of all flavors" broken "random $seed" auto 4 mixed 60
done
MRMPI_PATIENCE=1 MRMPI_RC_TIMEOUT=12 MRMPI_RC_RETRY=2 MRMPI_LOG_LEVEL=0 timeout -k 5 60 simfab run --topology "$two" --model hdr -- \
  timeout -k 5 50 mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/rma_far" lost "simfab fault link 'h1 *' down" >"$tmp/out" 2>&1 </dev/null
like "who holds a lock and is lost holds it no longer" 'the lock is free' "$tmp/out"
like "and nothing else ends the job" 'aborted the job with code 7' "$tmp/out"
done_testing
