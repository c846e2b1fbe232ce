#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives of large messages (bench/coll.c) over one, two and four rails of simulated hosts: times, their ratios to
# one rail, and the part of the time that the ports alone would take ("bound"). All of it is simulated: virtual time, in
# which copying and computing on a host are free.
# MODELS ("sdr-pcix hdr"), HOSTS (8), PPN ranks a host ("1 2"), RAILS ("1 2 4"), COLLS, BYTES: less of it.
#
# The bound of a collective is what its busiest host must send or receive, by the ports' rate one way, or both together
# by the rate of a bus that both directions share:
#   bcast           every host but the root takes N in; all together as much goes out
#   allreduce       2 N (h - 1) / h out, and as much in: a reduce-scatter and an allgather between h hosts
#   alltoall        k k (h - 1) m out and in, of k ranks a host with m bytes for each other rank
#   allgather, reduce_scatter   k (h - 1) m out and in: no host sends or takes anything twice
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${MODELS:=sdr-pcix hdr}" "${HOSTS:=8}" "${PPN:=1 2}" "${RAILS:=1 2 4}"
: "${COLLS:=bcast allreduce allgather reduce_scatter alltoall}" "${BYTES:=65536 262144 1048576}"
export PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1

if [ -z "${SIMFAB_DIR:-}" ]; then
  tmp=$(mktemp -d) || exit 1
  trap 'rm -rf "$tmp"' EXIT
  BENCH_COLL=$tmp/coll
  export BENCH_COLL
  mrcc -O2 -Wall -o "$BENCH_COLL" bench/coll.c && simfab topology star --hosts "$HOSTS" --rails 4 >"$tmp/net" || exit 1
  echo "simulated; $HOSTS hosts; us, and by the time over one rail; bound: what the ports need, by the time"
  printf '%-9s %3s %-14s %8s' model ppn collective bytes
  for r in $RAILS; do printf ' %9s %6s %6s' "$r rails" ratio bound; done
  echo
  for MODEL in $MODELS; do
    export MODEL
    simfab run --topology "$tmp/net" --model "$MODEL" -- bash bench/coll_rails.sh || exit 1
  done
  exit
fi

# MB/s of a port one way, and of both directions together: what bench/models.sh finds
case $MODEL in
  sdr-pcix) one=884 both=943 ;;
  hdr) one=24600 both=49000 ;;
  *) one=0 both=0 ;;
esac

for k in $PPN; do
  for c in $COLLS; do
    # shellcheck disable=SC2086  # words
    for r in $RAILS; do
      MRMPI_RAILS_MAX=$r MRMPI_LOG_LEVEL=0 timeout 600 mrrun -n $((HOSTS * k)) --ppn "$k" "$BENCH_COLL" -q "$c" $BYTES |
        sed "s/^/$r /"
    done | awk -v model="$MODEL" -v k="$k" -v h="$HOSTS" -v one="$one" -v both="$both" -v rails="$RAILS" '
      function bound(c, m, r,  way, sum) {
        if (c == "bcast") { way = m; sum = 2 * m * (h - 1) / h }
        else if (c == "allreduce") { way = 2 * m * (h - 1) / h; sum = 2 * way }
        else if (c == "alltoall") { way = k * k * (h - 1) * m; sum = 2 * way }
        else { way = k * (h - 1) * m; sum = 2 * way }
        if (!one) return 0
        way /= one * r; sum /= both * r
        return way > sum ? way : sum
      }
      { if (!($3 in seen)) { seen[$3] = ++n; bytes[n] = $3 } us[$1, $3] = $4; name = $2 }
      END {
        count = split(rails, list, " ")
        for (i = 1; i <= n; i++) {
          printf "%-9s %3d %-14s %8d", model, k, name, bytes[i]
          for (j = 1; j <= count; j++) {
            t = us[list[j], bytes[i]]
            printf " %9.1f %6.3f %6.3f", t, \
              us[list[1], bytes[i]] ? t / us[list[1], bytes[i]] : 0, t ? bound(name, bytes[i], list[j]) / t : 0
          }
          print ""
        }
      }'
  done
done
