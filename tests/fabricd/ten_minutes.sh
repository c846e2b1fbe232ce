#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The README's ten minutes with fabricd, literally.

. "$(dirname "$0")/lib.sh"
cd "$top" || exit 1
sed -n '/^## fabricd in ten minutes/,/^## Where/s/^    //p' README.md >"$tmp/commands"
first=$(head -n 1 "$tmp/commands")
is "it begins with a shell on a simulated fabric" "$first" "simfab run --topology eight-hosts-two-rails -- bash"
sed 1d "$tmp/commands" >"$tmp/inside"
rc=0
timeout 120 bash -c "$first" <"$tmp/inside" >"$tmp/out" 2>&1 || rc=$?
is "and goes on to its end" "$rc $(tail -n 1 "$tmp/inside")" "0 exit"
like "the plan" 'name: urgent, share: 60.0, priority: 3, small: 1024, sl_small: 1, vl_small: 4' "$tmp/out"
like "the policy is verified" '^verified: 32 ports of 17 nodes ' "$tmp/out"
like "and on another host" 'generation: 1, state: verified, nodes: 3, ports: 4' "$tmp/out"
like "the job's class" 'class batch$' "$tmp/out"
like "and its levels" 'service level 7' "$tmp/out"
like "what would change" 'VLArb low: expected ' "$tmp/out"
like "the second policy is followed" 'host: h2, role: server' "$tmp/out"
like "by everybody" 'generation: 2, state: verified, nodes: 3, ports: 4' "$tmp/out"
is "no command was refused" "$(grep -E '^(bash|mrrun): |^fabricctl: .*(refused|not done|nobody)' "$tmp/out")" ""
done_testing
