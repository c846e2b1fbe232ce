#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Adaptive striping beside the best static weights, the fast rail alone, and the paper's Equations 3 and 4: rails of
# several ratios, one way and both ways, 1 and 4 messages under way, one process a node and two. MB/s, simulated.
#   best    the highest of the static weights tried, the fast rail alone among them, and which weights these were
#   ratio   adaptive : best. "!" where that is below 0.97, "<" where adaptive is slower than the fast rail alone by 0.5 %
# ADAPTIVE_MODELS, ADAPTIVE_RATES (widths of the rails' cables), ADAPTIVE_CASES, ADAPTIVE_SIZES, ADAPTIVE_POLICIES:
# fewer, or others. ADAPTIVE_KEEP: a file name; what was measured goes to NAME.MODEL.RATES.
set -u
: "${BUILD:?set BUILD to the build directory}" "${ADAPTIVE_MODELS:=sdr-pcix hdr}" "${ADAPTIVE_RATES:=4:1 4:2 4:4 4:2:1}"
: "${ADAPTIVE_CASES:=push-1 push-4 flow-1 flow-4 push-2x4 flow-2x4}" "${ADAPTIVE_SIZES:=16384 65536 262144 1048576 4194304}"
export BUILD PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH ADAPTIVE_CASES ADAPTIVE_SIZES
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

# In the fabric: each case under each policy; prints POLICY CASE BYTES MB/S.
measure() { # RATES
  local rails policy case depth ppn sizes=() weights
  rails=$(tr -cd : <<<"$1" | wc -c)
  if [ "$rails" = 2 ]; then weights="8:4:1 8:2:1 4:2:1 6:3:2 4:1:1 2:1:1 1:1:1"; else weights="8:1 6:1 5:1 4:1 3:1 2:1 3:2 1:1"; fi
  for policy in ${ADAPTIVE_POLICIES:-fast $weights adaptive eq3 eq4}; do
    unset MRMPI_RAILS_MAX
    case $policy in
      fast) export MRMPI_RAILS_MAX=1 MRMPI_POLICY_LARGE=even ;;
      *:*) export MRMPI_POLICY_LARGE=weighted:${policy//:/,} ;;
      *) export MRMPI_POLICY_LARGE=$policy ;;
    esac
    for case in $ADAPTIVE_CASES; do
      depth=${case#*-} ppn=1
      [[ $depth = *x* ]] && ppn=${depth%x*} depth=${depth#*x}
      sizes=()
      for b in $ADAPTIVE_SIZES; do sizes+=("${case%-*}:$b"); done
      MRMPI_LOG_LEVEL=0 timeout 300 mrrun -n $((2 * ppn)) --ppn $ppn "$STREAMS" -d "$depth" "${sizes[@]}" </dev/null 2>"$work/err" |
        awk -v p=$policy -v c=$case '{print p, c, $2, $3}'
      [ ! -s "$work/err" ] || { echo "$policy $case: $(head -n 1 "$work/err")" >&2; }
    done
  done
}

if [ -n "${STREAMS:-}" ]; then
  measure "$1"
  exit
fi

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export work STREAMS=$work/streams
mrcc -O2 -o "$STREAMS" bench/figures/streams.c || exit 1
for model in $ADAPTIVE_MODELS; do
  for rates in $ADAPTIVE_RATES; do
    cables "$rates" "$(sed -n 's/^ *speed: //p' "etc/models/$model.yaml")" || exit 1
    simfab run --topology "$work/net" --model "$model" -- bash bench/adaptive.sh "$rates" >"$work/out" || exit 1
    [ -z "${ADAPTIVE_KEEP:-}" ] || cp "$work/out" "$ADAPTIVE_KEEP.$model.$rates"
    printf '%s, rails of %s lanes, simulated, MB/s\n%-10s %9s %9s %9s %9s %7s %9s %9s %9s\n' "$model" "$rates" \
      case bytes fast best weights adaptive ratio "  eq3" "  eq4"
    awk '
      $1 != "adaptive" && $1 !~ /^eq/ {k = $2 " " $3; if ($4 > best[k]) {best[k] = $4; of[k] = $1 == "fast" ? "1:0" : $1}}
      {v[$1, $2 " " $3] = $4; if (!seen[$2 " " $3]++) order[n++] = $2 " " $3}
      END {
        for (i = 0; i < n; i++) {
          k = order[i]; split(k, c, " "); a = v["adaptive", k]; f = v["fast", k]
          miss = a < 0.97 * best[k]; slow = a < 0.995 * f; misses += miss; slows += slow
          printf "%-10s %9d %9.0f %9.0f %9s %9.0f %7.3f %9.0f %9.0f %s%s\n", c[1], c[2], f, best[k], of[k], a, a / best[k], v["eq3", k], v["eq4", k], miss ? "!" : "", slow ? "<" : ""
        }
        printf "%d cases: %d below 0.97 of the best static weights, %d slower than the fast rail alone\n\n", n, misses, slows
      }' "$work/out"
  done
done
