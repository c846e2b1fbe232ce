#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the daemon tells monitoring: OpenMetrics text by a strict reader, its figures, the file for node-exporter.

if [ -z "${SIMFAB_DIR:-}" ]; then
  exec "$BUILD/bin/simfab" run --topology two-hosts-two-rails -- bash "${BASH_SOURCE[0]}"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
reader() { python3 "$top/tests/fabricd/openmetrics.py" "$@"; }
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
take() { fabricctl metrics >metrics; }
values() { reader value "$@" <metrics; }                              # SAMPLE...: of those that were taken last
reaches() { take && grep -qxF -- "$1 $2" metrics || { cat metrics; return 1; }; } # SAMPLE VALUE

ok "the reader refuses what is wrong" reader self
ok "opensm has the subnet up" simfab opensm wait
start h1
wait_for 20 fabricctl status
ok "metrics are asked for" take
is "are OpenMetrics; the daemon is up, and has no policy" \
  "$(values "fabricd_up{version=\"$(fabricctl --version | cut -d' ' -f 2)\",role=\"manager\"}" \
    'fabricd_policy_state{state="none"}' fabricd_policy_generation)" "1 1 0"

cp "$top/etc/policies/simple.yaml" "$policy"
ok "a policy is applied" fabricctl policy apply "$policy"
ok "the ports are looked at" fabricctl policy verify
fabricctl job set 1 urgent --user 0 && fabricctl job set 2 urgent --user 0
take
fabricctl status >status
is "generation and state" "$(values fabricd_policy_generation 'fabricd_policy_state{state="verified"}')" "1 1"
is "which is one of all" "$(grep -c '^fabricd_policy_state.* 1$' metrics)" 1
is "nodes, ports and differences of the fabric" \
  "$(values fabricd_fabric_nodes fabricd_fabric_ports fabricd_policy_differences)" \
  "$(sed -nE 's/^policy: .*nodes: ([0-9]+), ports: ([0-9]+), differences: ([0-9]+),.*/\1 \2 \3/p' status)"
like "how long the look took" '^fabricd_verify_duration_seconds [0-9]+\.[0-9]+$' metrics
is "the plane's ports, its master and its differences" "$(grep -E '^fabricd_plane_(ports|master|differences)' metrics | cut -d' ' -f 2 | xargs)" "2 1 0"
is "both rails are active and healthy" "$(grep -cE '^fabricd_rail_(state|health)\{device="mlx5_[01]",port="1",state="(Active|healthy)"\} 1$' metrics)" 4
is "with their whole weight; jobs and shares of classes" \
  "$(values 'fabricd_rail_weight_ratio{port="1",device="mlx5_1"}' 'fabricd_class_jobs{class="urgent"}' \
    'fabricd_class_jobs{class="batch"}' 'fabricd_class_share_ratio{class="urgent"}')" "1 2 0 0.6"
is "service levels and lanes are those of the status, of bulk on two lanes" \
  "2 $(sed -nE 's/^fabricd_class_lane\{class="urgent",kind="bulk",sl="([0-9]+)",vl="([0-9]+)"\} 1$/\1 \2/p' metrics | xargs)" \
  "$(grep -c '^fabricd_class_lane{class="urgent",kind="bulk"' metrics) $(sed -nE 's/^  - .name: urgent,.* sl_bulk: \[([0-9]+), ([0-9]+)\], vl_bulk: \[([0-9]+), ([0-9]+)\].*/\1 \3 \2 \4/p' status)"

breaks='fabricd_rail_reported_breaks_total{device="mlx5_1",port="1"}'
complaints='fabricd_rail_complaints{device="mlx5_1",port="1"}'
errors='fabricd_rail_counter_total{device="mlx5_1",port="1",end="here",counter="LinkDownedCounter"}'
is "no process has complained, and no link gone down" "$(values "$breaks" "$complaints" "$errors")" "0 0 0"
ok "one says that connections broke" "$tool" seen "$FABRICD_SOCKET" mlx5_1 1 1
ok "that is counted" wait_for 5 reaches "$breaks" 3
is "and the user" "$(values "$complaints")" 1
fault "h1 mlx5_1" down
fault "h1 mlx5_1" up
ok "a link's counters follow the port's" wait_for 20 reaches "$errors" 1

if [ "$(id -u)" = 0 ]; then
  chmod 755 "$SIMFAB_DIR"
  setpriv --reuid=65534 --clear-groups "$(command -v fabricctl)" metrics >theirs
  ok "anybody may ask" reader check <theirs
  not_ok "but not for other users' jobs" grep -q '^fabricd_class_jobs' theirs
fi
ok "as JSON: its lines" sh -c "fabricctl metrics --json | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)[-1] != \"# EOF\")'"

# ---- the file
ok "into a file" fabricctl metrics --output "$tmp/fabricd.prom"
ok "as it is" reader check <fabricd.prom
is "which others may read, and nothing is left beside it" "$(stat -c %a fabricd.prom) $(ls | grep -c '^fabricd\.prom')" "644 1"
(for _ in $(seq 8); do fabricctl metrics --output "$tmp/fabricd.prom" || exit 1; done) &
writer=$!
while kill -0 $writer 2>/dev/null; do tail -n 1 fabricd.prom; sleep 0.01; done | sort -u >ends
ok "written again and again" wait $writer
is "it is never half a file" "$(cat ends)" "# EOF"
ok "a directory that is not there" exits 1 fabricctl metrics --output "$tmp/none/fabricd.prom"
stop "${daemon_of[1]}"
ok "without a daemon it cannot be done" exits 1 fabricctl metrics --output "$tmp/fabricd.prom"
is "and the file says so" "$(reader value fabricd_up <fabricd.prom)" 0

# ---- names, and the worst case
page=$(sed 's/\\-/-/g' "$top/man/fabricctl.1" | sed -n '/^\.SH METRICS/,/^\.SH /p' | grep -oE '^\.BR? "?fabricd_[a-z_]+' | grep -oE 'fabricd_[a-z_]+' | sort)
is "fabricctl(1) has every family" "$page" "$(reader names <metrics)"
is "and metrics.c no other" "$(grep -oE '^ +\{"fabricd_[a-z_]+"' "$top/fabricd/metrics.c" | grep -oE 'fabricd_[a-z_]+' | sort)" "$page"
"$BUILD/tests/fabricd/metrics_worst" 1 >strange
is "a strange name comes back, and there is room for all" \
  "$(reader value 'fabricd_rail_reported_breaks_total{device="0\"\\\n???{},= ",port="254"}' fabricd_metrics_complete <strange)" "7 1"
"$BUILD/tests/fabricd/metrics_worst" 32 >worst
is "32 rails with long names are OpenMetrics of bounded size, which is told" \
  "$(reader value fabricd_metrics_complete <worst) $(($(stat -c %s worst) <= 131072))" "0 1"
done_testing
