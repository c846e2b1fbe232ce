#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Queue pairs for large messages as datagrams: what comes late or under another key changes no memory (pool_probe.c).
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)

timeout -k 5 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" --model hdr -- bash -c "
  simfab exec h1 -- $BUILD/tests/libmrmpi/pool_probe; simfab exec h1 -- ibv_devinfo -v -d mlx5_0" >"$tmp/out" 2>&1 </dev/null
sed 's/^/# /' "$tmp/out" | grep -v '# 	' | tail -n 20
like "places are filled, given back and used again" '^all is right$' "$tmp/out"
not_ok "nothing is left over" grep 'leak:' "$tmp/out"
# to the queue pair that was stopped, which takes nothing in any case, and to the one with another key
ok "the adapter has dropped what came under another key ($(sed -n 's/.*qkey_viol_cntr:\s*//p' "$tmp/out"))" \
  grep -q 'qkey_viol_cntr:.*0x[4-8]$' "$tmp/out"
done_testing
