#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How far simfab goes: 512 hosts on a fat tree with opensm, packets over several hops, an exchange among all by datagrams and
# by MPI, and the memory that it takes. Times marked real are the machine's, those of a processor the engine's; microseconds are
# simulated.
set -u
cd "$(dirname "$0")/.." || exit 2
: "${BUILD:=$PWD/build}"
export BUILD PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
hosts=${SCALE_HOSTS:-512}

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }
rss_kib() { awk '/^VmRSS/ {print $2}' "/proc/$engine/status"; }
find_engine() { local p; for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -q "simfab-engine.*--dir $SIMFAB_DIR " && echo "${p#/proc/}" && return; done; }
cpu() { awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); print ($12 + $13) / hz}' "/proc/$engine/stat"; }
hops() { simfab status --counters | awk '/ vl / {for (i = 1; i < NF; i++) if ($i == "xmit_pkts") s += $(i + 1)} END {print s + 0}'; }

flows() { # NAME BYTES COUNT TIME: so many flows of such messages, right across the tree
  local i b h
  for ((i = 0; i < $3; i++)); do
    simfab flow add "${name[i]} mlx5_0" "${name[hosts - 1 - i]} mlx5_0" size="$2" >/dev/null
  done
  b=$(cpu) h=$(hops)
  simfab flow run "$4"
  awk -v n="$1" -v b="$b" -v h="$h" -v b1="$(cpu)" -v h1="$(hops)" 'BEGIN {
    printf "%-52s %8.2f million packet-hops in %.2f s of a processor: %.2f million/s\n", n, (h1 - h) / 1e6, b1 - b, (h1 - h) / (b1 - b) / 1e6}'
  simfab flow del all >/dev/null
}

if [ -z "${SIMFAB_DIR:-}" ]; then
  net=$(mktemp)
  trap 'rm -f "$net"' EXIT
  simfab topology fat-tree --hosts "$hosts" >"$net" || exit 1
  START=$(now) simfab run --topology "$net" --model hdr -- bash bench/scale.sh
  exit
fi
mapfile -t name < <(simfab status --hosts)
engine=$(find_engine)
empty=$(rss_kib)
printf '%-52s %8s s real\n' "$hosts hosts, all ports active by opensm" "$(since "$START")"
printf '%-52s %8.1f KiB\n' "engine's memory for each host" "$(awk -v r="$empty" -v n="$hosts" 'BEGIN {print r / n}')"
flows "a flow of 64 KiB messages" 65536 1 20ms
flows "a flow of 64 byte messages" 64 1 20ms
flows "64 flows of 64 KiB messages" 65536 64 1ms

before=$(rss_kib)
coproc QPS { simfab exec "${name[0]}" -- "$BUILD/tests/simfab/scale_ud" --queue-pairs 4000; }
qps=$QPS_PID # bash forgets it when the process has ended
read -r _ <&"${QPS[0]}"
printf '%-52s %8.1f KiB\n' "engine's memory for each queue pair of 64 and 64" "$(awk -v a="$before" -v b="$(rss_kib)" 'BEGIN {print (b - a) / 4000}')"
# shellcheck disable=SC1083,SC2093 # closes a file of the coprocess
exec {QPS[1]}>&-
wait "$qps"

t=$(now)
text=$("$BUILD/tests/simfab/scale_ud" "${name[@]}") || exit 1
printf '%-52s %8s s real, %s\n' "all to all by UD" "$(since "$t")" "$text"
t=$(now)
text=$(mrrun -n "$hosts" "$BUILD/tests/simfab/scale_mpi" 2>/dev/null) || exit 1
printf '%-52s %8s s real, %s\n' "MPI_Alltoall under mrrun" "$(since "$t")" "$text"
