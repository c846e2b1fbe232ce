#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 2400
# Reductions with other results in another order (sums of numbers that do not add exactly, the maximum of a NaN and a number,
# the program's operations), with ranks that are late at random: all ranks of an allreduce have the same bits, and so has every
# repetition and every run, over shared memory and between hosts. --all: more ranks, other links, each algorithm.
. "$(dirname "$0")/../tap.sh"
program=$BUILD/tests/mpi/coll_bits
export MRMPI_LOG_LEVEL=0
all= times=8 most=
[ "${1:-}" = --all ] && all=yes times=20

jobs() { # COMMAND...: the digests of two runs in which other ranks are late
  for seed in 1 2; do timeout -k 5 280 "$@" "$program" $seed $times $most </dev/null >"$tmp/$seed" 2>&1 || { cat "$tmp/$seed"; return 1; }; done
}
digests() { grep -E '^[a-z_]+ [0-9a-f]{16}$' "$tmp/$1" | grep -v by_arrival; } # SEED
same() { # COMMAND...
  jobs "$@" && [ "$(digests 1 | wc -l)" = 13 ] && diff <(digests 1) <(digests 2)
}
by() { # ALGORITHM COMMAND...: all allreduces by this algorithm
  MRMPI_COLL=allreduce:$1 "${@:2}"
}
for n in ${all:+2 4 6} 3 5; do ok "shared memory, $n ranks" same mrrun -n $n; done
not_ok "a sum in the order of arrival differs" diff <(grep by_arrival "$tmp/1") <(grep by_arrival "$tmp/2")
hosts() { # RANKS RAILS [SETTING...]
  same simfab run --topology two-hosts-two-rails -- env MRMPI_RAILS_MAX="$2" "${@:3}" mrrun -n "$1" --ppn $((($1 + 1) / 2))
}
ok "two hosts, 4 ranks" hosts 4 2
ok "5 ranks, by doubling" by doubling same mrrun -n 5
if [ -n "$all" ]; then
  for n in 2 3 5 6; do ok "two hosts, $n ranks" hosts $n 2; done
  ok "one rail" hosts 3 1
  ok "datagrams" hosts 3 1 MRMPI_LINKS=ud
  ok "rings in the peers' memory" hosts 3 1 MRMPI_LINKS=ring MRMPI_RING_AFTER=0
  lossy() { # NODE [SETTING...]: links of NODE lose packets
    same simfab run --topology two-hosts-two-rails -- bash -c 'simfab fault link "$1" loss=0.01 && exec "${@:2}"' lossy "$1" \
      env MRMPI_RELIABLE=yes "${@:2}" mrrun --stats -n 4 --ppn 2
  }
  times=8
  for kind in uc ud rc; do
    [ $kind = rc ] && most=8193 node="*" || most=1025 node="h2 mlx5_0" # all rails of uc or ud take minutes
    ok "$kind, links that lose a packet in a hundred" lossy "$node" MRMPI_LINKS=$kind
    cat "$tmp/1" "$tmp/2" >"$tmp/out"
    ok "$(counted resent) packets were sent again" test "$(counted resent)" -gt 0
  done
  times=8 most=
  for alg in doubling halving ring spread two-level; do
    [ $alg = two-level ] || ok "4 ranks, by $alg" by $alg same mrrun -n 4
    ok "6 ranks of two hosts, by $alg" by $alg hosts 6 2
  done
fi
done_testing
