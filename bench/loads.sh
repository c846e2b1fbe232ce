#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The throughput of a set of rails with default settings, load by load (loads.c), beside the best of others: its first
# and fastest rail alone, equal stripes, static weights. Simulated: figures repeat to the digit. Prints, for each load,
#   RATES RANKS_A_HOST LOAD BEST WHICH DEFAULT RATIO   MB/s, trips in us; above 1 the default is the better one
# LOADS: in the form of loads.c, or LOADS_KINDS, LOADS_SIZES, LOADS_DEPTHS and LOADS_STATES, in all combinations.
# LOADS_RATES: lanes of the rails' cables, the fastest first. LOADS_PPN. LOADS_BESIDE: fast, even, or weights.
# LOADS_COPY: the copy rate of a processor, in MB/s; else copies take no time.
set -u
: "${BUILD:?set BUILD to the build directory}" "${LOADS_MODEL:=hdr}" "${LOADS_RATES:=4:1 4:2 2:1 4:4:4 4:2:1}" "${LOADS_PPN:=1 2}"
: "${LOADS_BESIDE:=fast}" "${LOADS_KINDS:=one both push flow}" "${LOADS_DEPTHS:=1 4 16 64}" "${LOADS_STATES:=warm fresh}"
: "${LOADS_SIZES:=8 1024 4096 8192 12288 16384 32768 65536 262144 1048576 4194304}"
export BUILD PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 2

cables() { # RATES: a netlist whose rails' cables have so many lanes
  local i=0 width
  simfab topology star --hosts 2 --rails "$(wc -w <<<"${1//:/ }")" >"$work/plain" || return 1
  for width in ${1//:/ }; do # named at both ends: the switch's lines name the adapter, the adapter's its port
    awk -v name="mlx5_$i\"" -v lanes="$width" -v speed="$2" '
      /^Ca/ {own = index($0, name) > 0}
      /^Switch/ {own = 0}
      /^\[/ && (own || index($0, name)) {$0 = $0 " lid 0 " lanes "x" speed}
      {print}' "$work/plain" >"$work/next" && mv "$work/next" "$work/plain"
    i=$((i + 1))
  done
  mv "$work/plain" "$work/net"
}

measure() { # in the fabric: POLICY LOAD FIGURE
  local policy
  for policy in $LOADS_BESIDE default; do
    unset MRMPI_RAILS_MAX MRMPI_POLICY_LARGE
    case $policy in
      fast) export MRMPI_RAILS_MAX=1 ;;
      even) export MRMPI_POLICY_LARGE=even ;;
      *:*) export MRMPI_POLICY_LARGE=weighted:${policy//:/,} ;;
    esac
    # shellcheck disable=SC2086 # a list
    MRMPI_LOG_LEVEL=0 timeout 1500 mrrun -n $((2 * $1)) --ppn "$1" "$work/loads" $LOADS </dev/null 2>"$work/err" |
      awk -v p="$policy" '{print p, $1 ":" $2 ":" $3 ":" $4, ++n, $5}'
    [ ! -s "$work/err" ] || sed "s/^/$policy: /" "$work/err" >&2
  done
}

if [ -n "${LOADS_INSIDE:-}" ]; then
  measure "$1"
  exit
fi

if [ -z "${LOADS:-}" ]; then
  for state in $LOADS_STATES; do
    for bytes in $LOADS_SIZES; do
      for kind in $LOADS_KINDS; do
        for depth in $LOADS_DEPTHS; do LOADS+=" $kind:$bytes:$depth:0:$state"; done
      done
    done
  done
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export work LOADS LOADS_BESIDE
model=$LOADS_MODEL
if [ -n "${LOADS_COPY:-}" ]; then
  model=$work/model.yaml
  sed "s/^  copy_mbytes_per_s: .*/  copy_mbytes_per_s: $LOADS_COPY/" "etc/models/$LOADS_MODEL.yaml" >"$model" &&
    grep -q "copy_mbytes_per_s: $LOADS_COPY\$" "$model" || exit 1
fi
mrcc -O2 -o "$work/loads" bench/loads.c || exit 1
for rates in $LOADS_RATES; do
  cables "$rates" "$(sed -n 's/^ *speed: //p' "etc/models/$LOADS_MODEL.yaml")" || exit 1
  for ppn in $LOADS_PPN; do
    LOADS_INSIDE=1 simfab run --topology "$work/net" --model "$model" -- bash bench/loads.sh "$ppn" >"$work/out" || exit 1
    awk -v rates="$rates" -v ppn="$ppn" '
      {k = $3; load[k] = $2; trip = $2 ~ /^trip/}
      $1 == "default" {got[k] = $4; n = k > n ? k : n; next}
      !(k in best) || (trip ? $4 < best[k] : $4 > best[k]) {best[k] = $4; of[k] = $1}
      END {
        for (k = 1; k <= n; k++)
          printf "%s %d %s %s %s %s %.3f\n", rates, ppn, load[k], best[k], of[k], got[k], !best[k] ? 0 : load[k] ~ /^trip/ ? best[k] / got[k] : got[k] / best[k]
      }' "$work/out"
  done
done
