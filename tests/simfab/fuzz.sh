#!/usr/bin/env bash
# Fuzz what reads netlists, models, paths, datagrams and commands, and a whole engine by what processes say to it: six runs,
# each for $FUZZ_SECONDS (20).
# timeout: 7200
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v clang >/dev/null || skip_all "clang is not installed"
cd "$top" || exit 1

build() { # TARGET SOURCE...
  local target=$1
  shift
  # shellcheck disable=SC2046
  clang -std=gnu17 -D_GNU_SOURCE -I"$top" -O1 -g -fsanitize=fuzzer,address,undefined \
    -fno-sanitize-recover=undefined -o "$tmp/$target" "$@" $(pkg-config --libs yaml-0.1) -lm >"$tmp/out" 2>&1 && return
  grep -q 'clang_rt.fuzzer' "$tmp/out" && skip_all "clang has no libFuzzer"
  ok "$target builds" eval "cat '$tmp/out'; false"
  done_testing
  exit 1
}
run() { # TARGET OPTION...
  local target=$1
  shift
  ok "$target${FUZZ_KIND:+ ($FUZZ_KIND)}: nothing falls over" "$tmp/$target" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=4096 -timeout=30 \
    -rss_limit_mb=2048 -artifact_prefix="$tmp/" -verbosity=0 "$@"
}

sources=(tests/simfab/fuzz.c)
for f in fabric/{netlist,netlist_parse,netlist_ports,fabric_build,fabric,pcie,model,model_value,port_caps} base/{words,text,util} \
  mgmt/{mad,mad_class,route,timer,agent,umad,umad_page,umad_rx,sma,portinfo,pma,samples,trap,sysfs} fault/{fault_parse,flow_parse}; do
  sources+=("simfab/engine/$f.c")
done
build inputs "${sources[@]}"
engine=(tests/simfab/fuzz_engine.c)
for f in simfab/engine/*/*.c; do
  [ "$f" = simfab/engine/client/main.c ] || engine+=("$f")
done
build engine "${engine[@]}"

kinds=(netlist model datagrams paths words)
mkdir -p "${kinds[@]/#/$tmp/seeds/}"
n=0
seed() { # KIND, from stdin
  n=$((n + 1))
  cat >"$tmp/seeds/$1/$n"
}
for f in etc/topologies/*.net tests/simfab/*.net; do seed netlist <"$f"; done
for f in etc/models/*.yaml; do seed model <"$f"; done
seed netlist < <(printf "CA 3 1 0x0000000000000011 4x HDR - SW 2 3 0x0000000000000100 ( 'h2 mlx5_0' - 'leaf1' )\n")
# lists in models
seed model < <(printf 'faults:\n  - {link: "h1 mlx5_0", port: 1, set: loss=0.1, at_ms: 2}\nflows:\n  - {from: h1, to: h2, sl: 1}\nports:\n  - {node: h1, vl_cap: 2}\n')
# register a directed-route agent (REGISTER2: qpn 0, class 0x81 version 1), write NodeInfo through it; Set PortInfo
zeros() { head -c "$1" /dev/zero; }
seed datagrams < <(
  printf '\4\12'; zeros 8; printf '\201\1'
  printf '\1\142'; zeros 64; printf '\1\201\1\1'; zeros 13; printf '\21'; zeros 14; printf '\377\377'
  printf '\6\200\1\201\1\2'; zeros 13; printf '\25'; zeros 14; printf '\377\377\377\377'; zeros 92
)
# a performance agent: Set PortSamplesControl of port 1, then time passes, PortSamplesResult and PortCounters
seed datagrams < <(
  printf '\7\310\1\4\1\2'; zeros 13; printf '\20'; zeros 47; printf '\1'; zeros 134
  for attribute in 21 21 22; do
    printf '\107\310\1\4\1\1'; zeros 13; printf "\\$attribute"; zeros 47; printf '\1'; zeros 134
  done
)
seed paths < <(printf '/sys/class/infiniband/mlx5_0/ports/1/lid')
seed words < <(printf 'link\nh1 mlx5_0\n1\nloss=0.1\ncorrupt=1e-3\nafter=2ms\nfor=10us')
seed words < <(printf 'link\nleaf*\noverrun=1\nfc=off\nwidth=1\nspeed=FDR10\nnowait')
seed words < <(printf 'link\nh1 mlx5_0\n1\ndrop=1,2,20')
seed words < <(printf 'host\nh1\ndie\nat=3s')
seed words < <(printf 'add\nh1\nh2\nsl=1\nsize=4096\nrate=100\nfor=1ms')

for kind in "${kinds[@]}"; do
  FUZZ_KIND=$kind run inputs "$tmp/seeds/$kind"
done
run engine -len_control=0
done_testing
