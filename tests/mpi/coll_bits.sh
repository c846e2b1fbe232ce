#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 2400
# Sums of numbers that do not add exactly, with ranks that are late at random: all ranks of an allreduce have the same bits, and
# so has every repetition and every run, over shared memory and between hosts. --all: more ranks, and other links.
. "$(dirname "$0")/../tap.sh"
program=$BUILD/tests/mpi/coll_bits
export MRMPI_LOG_LEVEL=0
all= times=8
[ "${1:-}" = --all ] && all=yes times=20

jobs() { # COMMAND...: the digests of two runs in which other ranks are late
  for seed in 1 2; do timeout -k 5 280 "$@" "$program" $seed $times </dev/null >"$tmp/$seed" 2>&1 || { cat "$tmp/$seed"; return 1; }; done
}
same() { # COMMAND...
  jobs "$@" && [ "$(grep -c -v by_arrival "$tmp/1")" = 8 ] && diff <(grep -v by_arrival "$tmp/1") <(grep -v by_arrival "$tmp/2")
}
for n in ${all:+2 4 6} 3 5; do ok "shared memory, $n ranks" same mrrun -n $n; done
not_ok "a sum in the order of arrival differs" diff <(grep by_arrival "$tmp/1") <(grep by_arrival "$tmp/2")
hosts() { # RANKS RAILS [SETTING...]
  same simfab run --topology two-hosts-two-rails -- env MRMPI_RAILS_MAX="$2" "${@:3}" mrrun -n "$1" --ppn $((($1 + 1) / 2))
}
ok "two hosts, 4 ranks" hosts 4 2
if [ -n "$all" ]; then
  for n in 2 3 5 6; do ok "two hosts, $n ranks" hosts $n 2; done
  ok "one rail" hosts 3 1
  ok "datagrams" hosts 3 1 MRMPI_LINKS=ud
  ok "rings in the peers' memory" hosts 3 1 MRMPI_LINKS=ring MRMPI_RING_AFTER=0
  ok "lost packets" hosts 4 2 MRMPI_LINKS=uc
fi
done_testing
