#!/usr/bin/env bash
# Fuzz what reads netlists, models, paths and datagrams, for $FUZZ_SECONDS (20).
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v clang >/dev/null || skip_all "clang is not installed"

sources=("$top/tests/simfab/fuzz.c")
for f in netlist netlist_ports fabric_build fabric model model_value port_caps mad agent umad sma portinfo pma trap sysfs; do
  sources+=("$top/simfab/engine/$f.c")
done
# shellcheck disable=SC2046
if ! clang -std=gnu17 -D_GNU_SOURCE -I"$top" -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  -o "$tmp/fuzz" "${sources[@]}" $(pkg-config --libs yaml-0.1) -lm >"$tmp/out" 2>&1; then
  grep -q 'clang_rt.fuzzer' "$tmp/out" && skip_all "clang has no libFuzzer"
  ok "the target builds" eval "cat '$tmp/out'; false"
  done_testing
fi
mkdir "$tmp/seeds"
n=0
seed() { # from stdin
  n=$((n + 1))
  cat >"$tmp/seeds/$n"
}
for f in "$top"/etc/topologies/*.net "$top"/tests/simfab/grown.net; do seed < <(printf '\0'; cat "$f"); done
seed < <(printf "\0CA 3 1 0x0000000000000011 4x HDR - SW 2 3 0x0000000000000100 ( 'h2 mlx5_0' - 'leaf1' )\n")
for f in "$top"/etc/models/*.yaml; do seed < <(printf '\1'; cat "$f"); done
# register a directed-route agent (REGISTER2: qpn 0, class 0x81 version 1), write NodeInfo through it; Set PortInfo
zeros() { head -c "$1" /dev/zero; }
seed < <(
  printf '\2\4\12'; zeros 8; printf '\201\1'
  printf '\1\142'; zeros 64; printf '\1\201\1\1'; zeros 13; printf '\21'; zeros 14; printf '\377\377'
  printf '\6\200\1\201\1\2'; zeros 13; printf '\25'; zeros 14; printf '\377\377\377\377'; zeros 92
)
seed < <(printf '\3/sys/class/infiniband/mlx5_0/ports/1/lid')
cd "$top" || exit 1
ok "nothing falls over" "$tmp/fuzz" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
  -artifact_prefix="$tmp/" -verbosity=0 "$tmp/seeds"
done_testing
