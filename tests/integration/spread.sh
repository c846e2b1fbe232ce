#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A class says how its jobs' messages go over rails: at the start, to a running job, and as mrrun --explain tells it. Bytes are
# counted on the simulated ports.
# timeout: 150
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/rails.yaml
for h in h1 h2; do ok "job set on $h" ctl $h job set bound throughput --user "$(id -u)"; done
ctl h1 job show bound >"$tmp/show"
is "fabricctl shows it" "$(sed -n 's/^rails: //p' "$tmp/show")" '{small: "binding:mlx5_1", large: "binding"}'
like "and the plan has it" 'name: throughput.* rails: .small: .?binding:mlx5_1.?, large: binding' <(fabricctl policy plan etc/policies/rails.yaml)

# share: between two times that counters were kept, the hundredths of h1's bytes that went over its second rail
share() {
  awk '$1 != "h1" {next} {for (i = 1; i < NF; i++) if ($i == "xmit_data") x = $(i + 1)} FNR == NR {was[$2] += x; next} {now[$2] += x}
    END {a = now["mlx5_0"] - was["mlx5_0"]; b = now["mlx5_1"] - was["mlx5_1"]; print int(100 * b / (a + b) + 0.5)}' "$tmp/c0" "$tmp/c1"
}
sends() { # JOB BYTES REPEATS [SETTING]
  counts env ${4:-A=} mrrun -n 2 --hosts h1,h2 --job-id "$1" NPmpich2 -o "$tmp/np" -l "$2" -u "$2" -p 0 -n "$3" || { cat "$tmp/cmd" >&2; echo failed; return; }
  share
}
near() { test "$1" -ge "$2" -a "$1" -le "$3" || { echo "$1"; return 1; }; }
is "small messages are bound to the second rail, the only process's large ones to the first" \
  "$(sends bound 4096 1000) $(sends bound 262144 400)" "100 0"
ok "the user has his own way" near "$(sends bound 4096 1000 MRMPI_POLICY_SMALL=fair)" 48 52
ok "another class uses both" near "$(sends plain 4096 1000)" 48 52
ok "with large ones, too" near "$(sends plain 262144 100)" 48 52

explained() { mrrun --explain --hosts h1,h2 --job-id "$1" "${@:2}" | sed -n '/^Scheduling/,/^$/s/^  \([a-z]* messages: [^ ]*\):.*(\(.*\))$/\1 \2/p' | tr '\n' ';'; } # JOB
is "mrrun --explain tells whose word it is" "$(explained bound)" "small messages: binding:mlx5_1 fabricd;large messages: binding fabricd;"
is "and the user's" "$(explained bound -x MRMPI_POLICY_SMALL=fair)" "small messages: fair -x;large messages: binding fabricd;"

# a running job changes its class: what it sends afterwards goes as the new class says
export MOST_BYTES=300000 MRMPI_LOG_LEVEL=1
job=live
ok "a running job becomes bound" exchange 12 "$(set_class throughput); sleep 0.1" "$keep" "$kept" true
ok "its large messages, which are most bytes, to the first rail" near "$(share)" 0 15
ok "and free again" exchange 12 "$(set_class capability); sleep 0.1" "$keep" "$kept" true
ok "over both" near "$(share)" 42 58
done_testing
