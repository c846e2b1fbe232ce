#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The multirail channel between simulated hosts: both rails used and alike, settings, LID paths, service levels from
# fabricd, short queues, a network that loses packets. vc_probe checks order and every byte.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
probe=$BUILD/tests/libmrmpi/vc_probe

# in_fabric TOPOLOGY OUTPUT SCRIPT [simfab options]: run SCRIPT in a fresh fabric; counters end up in OUTPUT.counters
in_fabric() {
  local topology=$1 out=$2 script=$3
  shift 3
  timeout 100 simfab run --topology "$topology" "$@" -- bash -c "$script; rc=\$?; simfab status --counters >$out.counters; exit \$rc" >"$out" 2>&1
}
two() { in_fabric two-hosts-two-rails "$@"; }
# sent OUTPUT HOST DEVICE [VL]: bytes
sent() {
  awk -v h="$2" -v d="$3" -v v="${4:-}" '$1 == h && $2 == d && (v == "" || $5 == v) {s += $7} END {print s + 0}' "$1.counters"
}
near() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a > 1e6 && b > 1e6 && a / b < 1.1 && b / a < 1.1)}' || { echo "$1 and $2 bytes"; return 1; }; }

ok "two ranks on two rails" two "$tmp/a" "mrrun -n 2 $probe 1000"
ok "both rails carried the same" near "$(sent "$tmp/a" h1 mlx5_0)" "$(sent "$tmp/a" h1 mlx5_1)"
ok "in the other direction too" near "$(sent "$tmp/a" h2 mlx5_0)" "$(sent "$tmp/a" h2 mlx5_1)"
is "without fabricd it says so, once" "$(grep -c 'no fabricd' "$tmp/a")" 1
is "and stays on virtual lane 0" "$(awk '/^h/ && $5 != 0' "$tmp/a.counters" | wc -l)" 0

ok "MRMPI_RAILS_MAX=1" two "$tmp/b" "MRMPI_RAILS_MAX=1 mrrun -n 2 $probe 200"
is "uses one rail" "$(sent "$tmp/b" h1 mlx5_1)" 0
ok "MRMPI_DEVICES=mlx5_1" two "$tmp/b" "MRMPI_DEVICES=mlx5_1:1 mrrun -n 2 $probe 200"
is "uses that one" "$(sent "$tmp/b" h1 mlx5_0)" 0
not_ok "a device that is not there ends the job" two "$tmp/b" "MRMPI_DEVICES=mlx9_9 mrrun -n 2 $probe 200"
like "and it is told why" 'MRMPI_DEVICES=mlx9_9' "$tmp/b"

ok "eight ranks" two "$tmp/b" "mrrun -n 8 $probe 100"
ok "short queues" two "$tmp/b" "MRMPI_SRQ_DEPTH=16 MRMPI_SQ_DEPTH=4 mrrun -n 4 $probe 300"
ok "small packets only" two "$tmp/b" "MRMPI_EAGER_MAX=64 mrrun -n 2 $probe 1000"
ok "no registration cache" two "$tmp/b" "MRMPI_REG_CACHE_MAX=0 mrrun -n 2 $probe 100"

printf 'fault:\n  loss: 0.03\n' >"$tmp/loss.yaml"
ok "a network that loses 3 % of all packets" two "$tmp/b" "mrrun -n 4 $probe 200" --model "$tmp/loss.yaml"

ok "two LID paths" in_fabric two-switches-two-paths "$tmp/c" "MRMPI_PATHS=2 mrrun -n 2 $probe 300" --opensm-option "lmc 1"
is "take both links between the switches" "$(awk '$1 == "leaf1" && $6 > 1e6' "$tmp/c.counters" | wc -l)" 3
ok "one LID path" in_fabric two-switches-two-paths "$tmp/c" "mrrun -n 2 $probe 300" --opensm-option "lmc 1"
is "takes one" "$(awk '$1 == "leaf1" && $6 > 1e6' "$tmp/c.counters" | wc -l)" 2

# service levels: fabricd's word, seen in what each virtual lane carried
cat >"$tmp/classes.sh" <<END
set -u
cd $top
for h in h1 h2; do
  mkdir -p $tmp/\$h
  printf 'state: %s\nsocket: %s\n' $tmp/\$h/state $tmp/\$h.sock >$tmp/\$h/fabricd.yaml
  [ \$h = h1 ] && printf 'opensm: {config: %s, pid_file: %s, restart: simfab opensm restart}\n' \
      \$SIMFAB_DIR/opensm/opensm.conf \$SIMFAB_DIR/opensm/opensm.pid >>$tmp/\$h/fabricd.yaml
  [ \$h = h2 ] && printf 'policy: %s\n' $top/etc/policies/simple.yaml >>$tmp/\$h/fabricd.yaml
  simfab exec --real-clock \$h -- fabricd --config $tmp/\$h/fabricd.yaml >$tmp/\$h/log 2>&1 &
  pids="\${pids:-} \$!"
done
trap 'kill \$pids; wait' EXIT
for h in h1 h2; do for _ in \$(seq 200); do [ -S $tmp/\$h.sock ] && break; sleep 0.05; done; done
cp etc/policies/simple.yaml $tmp/simple.yaml
fabricctl --socket $tmp/h1.sock policy apply $tmp/simple.yaml || exit 3
for h in h1 h2; do fabricctl --socket $tmp/\$h.sock job set fast urgent --user \$(id -u) || exit 3; done
export MRMPI_FABRICD_SOCKET=$tmp/%h.sock MRMPI_LOG_LEVEL=2
mrrun -n 2 --job-id fast $probe 300
END
ok "a job of class urgent" two "$tmp/d" "bash $tmp/classes.sh"
like "is told its service levels" 'job fast is of class urgent: service level 1 for small messages, 2 for large' "$tmp/d"
is "nothing goes on virtual lane 0" "$(sent "$tmp/d" h1 mlx5_0 0)" 0
vl=0
for v in 1 2 4; do [ "$(awk -v v=$v '$1 ~ /^h[12]$/ && $5 == v {s += $7} END {print s + 0}' "$tmp/d.counters")" -gt 10000 ] && vl=$((vl + 1)); done
is "small messages and both bulk lanes go on theirs" $vl 3
done_testing
