#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Windows over rails whose cables are pulled and put back, at both ends, while all that windows can do is under way:
# over every kind of link, with default settings. Nothing is lost or done twice, and nothing takes long.
# --all: with all kinds of links, with two and four ranks.
# timeout: 300
# timeout --all: 900
. "$(dirname "$0")/../tap.sh"
all=${1:-}
root=$(cd "$(dirname "$0")/../.." && pwd)

# Inside of the subnet, in simulated time. cables: they are pulled at one end, then at the other one, and put back.
# silence: each 4 ms one rail of one end, in turn, loses all for 2 ms, without a word.
case $all in
  cables)
    fault 'h2 mlx5_0' 1 down after=2ms for=3ms
    fault 'h1 mlx5_1' 1 down after=12ms for=3ms
    tap_exec "${@:2}"
    ;;
  silence)
    for ((i = 1; i <= 40; i++)); do fault "h$((1 + i / 2 % 2)) mlx5_$((i % 2))" 1 loss=1 after=$((4 * i))ms for=2ms; done
    tap_exec "${@:2}"
    ;;
esac

job() { # FAULTS KINDS RANKS ROUNDS
  MRMPI_LINKS=$2 MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 timeout -k 5 200 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- \
    bash "$0" "$1" mrrun -n "$3" --ppn $(($3 / 2)) --stats "$BUILD/tests/mpi/rma_rails" "$4" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v "^ \|^mrrun: rails" "$tmp/out" | tail -n 20
  [ $rc = 0 ] && grep -q "^$4 rounds, the longest" "$tmp/out" && ! grep -q 'leak:' "$tmp/out"
}
longest() { sed -n 's/.*the longest wait \([0-9.]*\) ms.*/\1/p' "$tmp/out"; }

for kinds in auto uc ud ${all:+rc ring rc,ud rc,uc,ud}; do
  for ranks in 2 ${all:+4}; do
    ok "$kinds, $ranks ranks, cables are pulled: all is where it was put, and counted once" job cables $kinds $ranks 20
    ok "links broke ($(counted broken))" test "$(counted broken)" -ge 2
    case $kinds in auto | rc) ok "parts of transfers moved to the other rail ($(counted moved))" test "$(counted moved)" -gt 0 ;; esac
    ok "no wait took longer than 40 ms of simulated time ($(longest) ms)" awk -v t="$(longest)" 'BEGIN { exit !(t != "" && t < 40) }'
    ok "$kinds, $ranks ranks, rails fall silent: the same" job silence $kinds $ranks 8
  done
done
done_testing
