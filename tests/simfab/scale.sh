#!/usr/bin/env bash
# Many hosts: a fat tree that opensm brings up, a process on each, all talking to all, by datagrams and by MPI; twice the same.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"

if [ "${1:-}" != inside ]; then
  simfab topology fat-tree --hosts 96 >"$tmp/net" || exit 1
  simfab run --topology "$tmp/net" --model hdr -- bash "$0" inside
  exit
fi
mapfile -t name < <(simfab status --hosts)
some=$(IFS=,; echo "${name[*]::32}")
is "96 hosts" "${#name[@]}" 96
ok "96 processes send to each other by UD" eval '"$BUILD/tests/simfab/scale_ud" "${name[@]}" >"$tmp/1"'
like "9216 messages" '^96 processes, 9216 messages: [0-9.]+ us' "$tmp/1"
ok "and again" eval '"$BUILD/tests/simfab/scale_ud" "${name[@]}" >"$tmp/2"'
is "which takes the same simulated time" "$(cat "$tmp/2")" "$(cat "$tmp/1")"
like "no packet was lost on the way" '^packets: [0-9]+ delivered, 0 dropped' <(simfab status)
ok "32 ranks: MPI_Alltoall" eval 'mrrun -n 32 --hosts "$some" "$BUILD/tests/simfab/scale_mpi" >"$tmp/3" 2>&1'
like "is right, and took its time" '^32 ranks: [0-9.]+ us, then [0-9.]+ us' "$tmp/3"
done_testing
