#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two rails of which one is four times as fast, and two that are equal, in virtual time: what NPmpich2 gets out of them
# with weights that adapt and with equal ones.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
equal=$top/etc/topologies/two-hosts-two-rails.net
slow=$tmp/slow.net
# the second rail's cables, named at both ends
sed -e 's/^\(\[1\](2c9000000[12]011).*\)$/\1 lid 0 1xSDR/; s/^\(\[[24]\].*mlx5_1"\)$/\1 lid 0 1xSDR/' "$equal" >"$slow"
is "the second rail's cables are of another kind" "$(grep -c 1xSDR "$slow")" 4

# Runs in the fabric, a line for each: SETTING BYTES REPEATS. Prints SETTING BYTES MICROSECONDS and what each adapter sent.
cat >"$tmp/measure" <<'END'
while read -r setting bytes repeats; do
  env "$setting" MRMPI_LOG_LEVEL=0 mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$tmp/np" -l $bytes -u $bytes -p 0 -n $repeats >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
  simfab status --counters | awk '$1 == "h1" {s[$2] += $7} END {print s["mlx5_0"] + 0, s["mlx5_1"] + 0}' >"$tmp/sent"
  echo "$setting $bytes $(awk '/-->/ {for (i = 1; i < NF; i++) if ($i == "in") print $(i + 1)}' "$tmp/out") $(cat "$tmp/sent")"
done
END
export tmp
run() { timeout 100 simfab run --topology "$1" --model sdr-pcix -- bash "$tmp/measure" >"$2" 2>&1 || { cat "$2"; return 1; }; }
us() { awk -v s="$2" -v b="$3" '$1 == s && $2 == b {print $3}' "$1"; } # FILE SETTING BYTES
# part FILE LINE: of what line LINE's run sent, how many hundredths went over the second rail
part() { awk -v n="$2" 'NR == n {print int(100 * ($5 - b) / ($4 - a + $5 - b) + 0.5)} {a = $4; b = $5}' "$1"; }
times() { awk -v a="$1" -v b="$2" -v lo="$3" -v hi="$4" 'BEGIN {print a, b, a / b; exit !(a > 0 && a / b >= lo && a / b <= hi)}'; }

ok "one rail of four times the other's rate" run "$slow" "$tmp/u" <<END
MRMPI_RAILS_MAX=1 1048576 20
MRMPI_POLICY_LARGE=even 1048576 20
MRMPI_POLICY_LARGE=adaptive 1048576 20
MRMPI_RAILS_MAX=1 65536 100
MRMPI_POLICY_LARGE=adaptive 65536 100
$(for bytes in 1024 8192 16384; do for rails in 1 2; do echo "MRMPI_RAILS_MAX=$rails $bytes 500"; done; done)
END
one=$(us "$tmp/u" MRMPI_RAILS_MAX=1 1048576)
ok "equal parts are slower than the fast rail alone" times "$one" "$(us "$tmp/u" MRMPI_POLICY_LARGE=even 1048576)" 0.4 0.65
ok "parts that adapt are faster" times "$one" "$(us "$tmp/u" MRMPI_POLICY_LARGE=adaptive 1048576)" 1.2 1.3
ok "the slow rail carries about a fifth" test "$(part "$tmp/u" 3)" -ge 18 -a "$(part "$tmp/u" 3)" -le 26
ok "64 KiB are no slower than over the fast rail alone" times "$(us "$tmp/u" MRMPI_RAILS_MAX=1 65536)" "$(us "$tmp/u" MRMPI_POLICY_LARGE=adaptive 65536)" 1 1.3
for bytes in 1024 8192 16384; do
  ok "nor are $bytes bytes that wait for each other" \
    times "$(us "$tmp/u" MRMPI_RAILS_MAX=1 $bytes)" "$(us "$tmp/u" MRMPI_RAILS_MAX=2 $bytes)" 0.985 1.02
done

ok "two equal rails" run "$equal" "$tmp/e" <<'END'
MRMPI_POLICY_LARGE=even 1048576 20
MRMPI_POLICY_LARGE=adaptive 1048576 20
MRMPI_POLICY_LARGE=even 65536 100
MRMPI_POLICY_LARGE=adaptive 65536 100
END
for bytes in 1048576 65536; do
  ok "adapting makes no difference to $bytes bytes" times "$(us "$tmp/e" MRMPI_POLICY_LARGE=even $bytes)" "$(us "$tmp/e" MRMPI_POLICY_LARGE=adaptive $bytes)" 0.998 1.002
done
is "both carry half" "$(part "$tmp/e" 2) $(part "$tmp/e" 4)" "50 50"
done_testing
