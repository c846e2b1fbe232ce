#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Adaptive striping over time, on simulated hosts: how soon it is right again after another program has used the second rail for
# 60 ms (Figure 20 of Liu, Vishnu and Panda, SC 2004, a hundred times as fast), that weights are as before after a
# second in which there are only small messages, and that a program which always has messages under way adapts, too.
# timeout: 200
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
equal=$top/etc/topologies/two-hosts-two-rails.net
export tmp MRMPI_LOG_LEVEL=0
ok "the stream program is built" mrcc -O2 -o "$tmp/streams" "$top/bench/figures/streams.c"
sed -e 's/^\(\[1\](2c9000000[12]011).*\)$/\1 lid 0 1xSDR/; s/^\(\[[24]\].*mlx5_1"\)$/\1 lid 0 1xSDR/' "$equal" >"$tmp/slow.net"

# on every host the first rank has both rails, the second one only the second rail
cat >"$tmp/rank" <<'END'
[ $((PMIX_RANK % 2)) = 1 ] && export MRMPI_DEVICES=mlx5_1
exec "$tmp/streams" "$1"
END
cat >"$tmp/shared" <<'END'
mrrun -n 4 --ppn 2 sh "$tmp/rank" "time:$1:2000:80:40000:100000"
END
cat >"$tmp/idle" <<'END'
mrrun -n 2 --ppn 1 "$tmp/streams" -d 4 push:65536 push:1048576 rest:1000 push:1048576 push:65536
END
run() { # NETLIST OUTPUT SCRIPT [ARGUMENT]
  timeout 150 simfab run --topology "$1" --model sdr-pcix -- bash "${@:3}" >"$2" 2>&1 || { cat "$2"; return 1; }
}

# recovery FILE: ms from 100 ms until an interval reaches 0.97 of the mean before, all later ones too; and what was lost
recovery() {
  awk '$1 == "time" {at[++n] = $2; v[n] = $3}
    END {
      for (i = 1; i <= n; i++) if (at[i] > 4 && at[i] <= 40) {before += v[i]; k++} else if (at[i] > 60 && at[i] <= 100) {during += v[i]; d++}
      before /= k; during /= d
      for (i = 1; i <= n; i++) if (at[i] > 100 && v[i] < 0.97 * before) last = at[i]
      printf "%.0f %.3f\n", last ? last - 100 : 0, during / before
    }' "$1"
}
for bytes in 65536 262144; do
  ok "$bytes bytes while another program uses the second rail" run "$equal" "$tmp/t$bytes" "$tmp/shared" $bytes
  read -r ms part <<<"$(recovery "$tmp/t$bytes")"
  echo "# $bytes bytes: $part of the bandwidth meanwhile, right again after $ms ms"
  ok "$bytes bytes: the other program is felt, and less than with equal parts" awk -v p="$part" 'BEGIN {exit !(p > 0.7 && p < 0.95)}'
  ok "$bytes bytes: recovery takes less than 50 ms" test "$ms" -lt 50
done

rate() { awk -v b="$2" -v k="$3" '$1 == "push" && $2 == b && ++n == k {print $3}' "$1"; } # FILE BYTES WHICH
ok "a second of small messages between large ones" run "$tmp/slow.net" "$tmp/i" "$tmp/idle"
for bytes in 65536 1048576; do
  ok "$bytes bytes go as fast as before" awk -v a="$(rate "$tmp/i" $bytes 1)" -v b="$(rate "$tmp/i" $bytes 2)" \
    'BEGIN {print a, b; exit !(a > 950 && b >= 0.98 * a)}'
done

# ---- a look at the network always finds something here, after memory was registered as before it
printf '%s\n' flows: '- {from: "h1 mlx5_1", to: "h2 mlx5_1"}' | cat "$top/etc/models/hdr.yaml" - >"$tmp/beside.yaml"
ok "the load program is built" mrcc -O2 -o "$tmp/loads" "$top/bench/loads.c"
simfab topology star --hosts 2 --rails 2 --speed HDR >"$tmp/hdr.net"
beside() {
  timeout 150 simfab run --topology "$tmp/hdr.net" --model "$tmp/beside.yaml" -- \
    mrrun -n 2 --ppn 1 "$tmp/loads" push:1048576:16:200 flow:262144:16:200 >"$tmp/flow"
}
ok "a flow has half of the second rail" beside
for least in push:34000 flow:68000; do
  ok "${least%:*}: messages have the first one and the other half (at least ${least#*:} MB/s)" \
    awk -v k="${least%:*}" -v least="${least#*:}" '{print} $1 == k {n++; bad += $5 < least} END {exit !n || bad}' "$tmp/flow"
done
done_testing
