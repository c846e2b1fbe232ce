#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Times estimated by mrrun --explain for known memory hold for simulated messages: within a quarter, or within a factor
# of two over datagrams and unreliable connections, since the model has no input for reliability in software. The time in
# new memory is not held against messages here.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
for v in $(compgen -e | grep '^MRMPI_'); do unset "$v"; done
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LOG_LEVEL=0 tmp
sizes="8 1024 8192 16384 65536 262144 1048576 4194304"

sed '/^  copy_mbytes_per_s:/d; s/^program:/&\n  copy_mbytes_per_s: 12500/' "$root/etc/models/hdr.yaml" >"$tmp/model.yaml"
cat >"$tmp/job" <<SH
for kind in rc ring uc ud; do
  mrrun -n 2 --explain -x MRMPI_LINKS=\$kind >"$tmp/\$kind.explained" &&
  mrrun -n 2 -x MRMPI_LINKS=\$kind "$BUILD/tests/rxe/pair" $(printf 'latency:%s:40 ' $sizes) >"$tmp/\$kind.seen" || exit
done
SH
rails() { # RATES: lanes of the cables of each host's rails
  local i=0 lanes
  simfab topology star --hosts 2 --rails $# --speed HDR >"$tmp/net" || return
  for lanes; do
    sed -i "s/\\(mlx5_$i\".*\\) 4xHDR/\\1 ${lanes}xHDR/; /^Ca.*mlx5_$i\"/{n;s/ 4xHDR/ ${lanes}xHDR/}" "$tmp/net"
    i=$((i + 1))
  done
}
fabric() { timeout -k 5 200 simfab run --topology "$tmp/net" --model "$tmp/model.yaml" -- bash "$tmp/job" >"$tmp/out" 2>&1 </dev/null; }
beyond() { # KIND MOST: "BYTES ESTIMATED SEEN" where one is more than MOST times the other
  paste <(sed -n '/estimated times/,/service levels/s/^ *[0-9]\{1,\}[KM]\{0,1\}  [a-z0-9 ]*[a-z]  *\([0-9.]*\).*/\1/p' "$tmp/$1.explained" |
    head -n 8) <(awk '$1 == "latency" {print $2, $3}' "$tmp/$1.seen") |
    awk -v most="$2" 'NF != 3 {print "missing"} $1 > most * $3 || $3 > most * $1 {print $2, $1, $3} {n++} END {if (n != 8) print n " lines"}'
}

for rates in 4 "4 4" "4 1"; do
  # shellcheck disable=SC2086 # a list
  ok "rails of $rates lanes" rails $rates
  ok "their jobs run" fabric
  for kind in rc ring; do is "$kind: estimates hold within a quarter" "$(beyond $kind 1.25)" ""; done
  for kind in uc ud; do is "$kind: within a factor of two" "$(beyond $kind 2)" ""; done
done
done_testing
