#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Partitions: hosts whose ports share one at another index than 0, on some rails only, or none at all; tables that the
# subnet manager changes under a job. --all: over every kind of link.
# timeout: 400
# timeout --all: 800
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
all=${1:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
kinds="rc ${all:+ud uc ring rc,ud}"

# "keys h2 1 0x7fff 0x8011": the table of h2's mlx5_1, as a subnet manager writes it. Switches let all through.
cat >"$tmp/keys" <<END
#!/bin/sh
host=\$1 device=mlx5_\$2
shift 2
exec simfab exec \$host -- "$BUILD/tests/simfab/set_pkeys" \$device "\$@"
END
cat >"$tmp/everywhere" <<'END'
#!/bin/sh
for h in h1 h2; do for r in 0 1; do keys $h $r "$@"; done; done
END
chmod +x "$tmp/keys" "$tmp/everywhere"
PATH=$tmp:$PATH
with() { (export "${1?}"; "${@:2}"); } # NAME=VALUE COMMAND...

# fabric TABLES SECONDS COMMAND...: the tables that ports have before COMMAND, in words of the above; its output in $tmp/out
fabric() {
  { echo "$1"; echo 'exec "$@"'; } >"$tmp/inside"
  timeout -k 5 "$2" simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" --model hdr \
    --opensm-option "part_enforce off" ${CONF:+--opensm-option "partition_config_file $CONF"} -- bash "$tmp/inside" "${@:3}" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  tail -n 40 "$tmp/out" | cut -c1-300
  return $rc
}
# job TABLES ROUNDS COMMAND...: of tests/mpi/failover
job() {
  MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=2 fabric "$1" 90 mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/failover" "${@:2}" &&
    grep -q "^$2 rounds, 0 errors" "$tmp/out" && ! grep -q 'leak:' "$tmp/out"
}
took() { sed -n "s/^round $1: \([0-9.]*\) ms.*/\1/p" "$tmp/out"; } # ROUND: ms, simulated
soon() { awk -v a="$(took "$1")" -v b="$(took "$2")" 'BEGIN { print a, b; exit !(a != "" && b != "" && a < b + 20) }'; }
packets() { awk -v h="$1" -v r="mlx5_$2:1" '/host +rail/ {t = 1} t && $1 == h && $2 == r {print $4}' "$tmp/out"; } # HOST RAIL

# ---- as opensm makes them of its partitions.conf --------------------------------------------------------------------------------

cat >"$tmp/partitions.conf" <<'END'
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full ;
red=0x0011 : ALL=full ;
END
for kind in rc ud ${all:+uc ring rc,ud}; do
  ok "$kind: limited members of the default partition, full ones of another" env MRMPI_LINKS=$kind \
    timeout -k 5 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" --model hdr \
    --opensm-option "partition_config_file $tmp/partitions.conf" -- mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/p2p_sizes"
done

# ---- before the job ---------------------------------------------------------------------------------------------------------------

# one rail's ports have their keys in another order, one pair of ports has none in common
tables='keys h1 0 0x7fff 0x8011 0x8022; keys h2 0 0 0x0022 0x8011 0x7fff; keys h1 1 0x7fff 0x8011; keys h2 1 0x7fff 0x8022'
ok "tables that differ by host and rail" job "$tables" 3
like "the pair of ports without a common partition is named, with both tables" \
  'mrmpi.0@h1. warning: rank 1 on h2, mlx5_1 port 1 to mlx5_1 port 1, path 0: not used, .*P_Keys here: 0x7fff \(limited\), 0x8011; there: 0x7fff \(limited\), 0x8022$' "$tmp/out"
is "it carries nothing" "$(packets h1 1) $(packets h2 1)" "0 0"
cat >"$tmp/crosswise.conf" <<'END'
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full ;
red=0x0011 : 0x2c90000001001=full, 0x2c90000002011=limited ;
blue=0x0022 : 0x2c90000001011=full, 0x2c90000002001=limited ;
END
ok "ports that reach each other crosswise only" with CONF="$tmp/crosswise.conf" job true 40 \
  'simfab fault link "h2 mlx5_0" 1 down after=50us nowait' 'simfab fault link "h2 mlx5_0" 1 up; sleep .3' true true true true true true true true true true true
ok "over both rails ($(packets h1 0), $(packets h1 1))" test "$(packets h1 0)" -gt 0 -a "$(packets h1 1)" -gt 0
ok "one of which is left for a while, and opened again ($(counted reopened))" test "$(counted reopened)" -ge 1
cat >"$tmp/apart.conf" <<'END'
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full ;
red=0x0011 : 0x2c90000001001=full, 0x2c90000002001=limited ;
blue=0x0022 : 0x2c90000001011=full, 0x2c90000002011=limited ;
END
ok "an adapter that dies and comes back, a rail of another partition that goes then" with CONF="$tmp/apart.conf" job true 20 \
  'simfab fault node "h1 mlx5_0" die for=15ms; sleep .3' true true 'simfab fault link "h1 mlx5_1" 1 down' true true
ok "the rail that came back carries all then ($(counted reopened))" test "$(counted reopened)" -ge 1
not_ok "no common partition is an error" fabric "everywhere 0x7fff; keys h2 1 0x8011" 60 \
  timeout -t "$tmp/took" 50 mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/p2p_sizes"
ok "at once" within 20
like "that names P_Keys" 'error: no rail leads to rank . on h.: no pair of ports shares a partition' "$tmp/out"
like "and both tables" 'P_Keys here: 0x7fff \(limited\); there: (0x7fff \(limited\)|0x8011)$' "$tmp/out"

# a partition that was asked for: what becomes of another one does not matter
tables='everywhere 0xffff 0x8011; keys h2 0 0x0011 0xffff'
ok "the default partition is used first" job "$tables" 4 'keys h2 0 0x0011 0x8022; sleep .1'
ok "so paths break when it goes ($(counted broken))" test "$(counted broken)" -ge 1
ok "MRMPI_PKEY is used before" with MRMPI_PKEY=0x11 job "$tables" 4 'keys h2 0 0x0011 0x8022; sleep .1'
is "and none breaks" "$(counted broken)" 0
ok "a partition that no port is in" with MRMPI_PKEY=0x33 job "$tables" 2
like "is told of" 'mlx5_0 port 1 is not in the partition of MRMPI_PKEY, P_Key 0x0033' "$tmp/out"

# ---- under a job ------------------------------------------------------------------------------------------------------------------

both='everywhere 0x7fff 0x8011'
for kind in $kinds; do
  export MRMPI_LINKS=$kind
  ok "$kind: keys move to other entries" job "$both" 13 'keys h2 0 0x8011 0x7fff' 'keys h1 1 0x7fff 0 0 0x8011' \
    'keys h1 0 0 0x7fff 0x8011' 'everywhere 0 0 0x8011; sleep .3'
  ok "$kind: paths broke ($(counted broken)) and were opened again ($(counted reopened))" \
    test "$(counted broken)" -ge 2 -a "$(counted reopened)" -ge 1
  ok "$kind: it goes on within 20 ms ($(took 1) ms instead of $(took 2))" soon 1 2
  ok "$kind: one rail has no common partition for a while, both ends or one being limited" job "$both" 19 \
    'keys h2 0 0x7fff 0x8022' true 'keys h2 0 0x8011; sleep .3' 'keys h1 1 0x0011; keys h2 1 0x0011' true 'keys h1 1 0x8011; sleep .3'
  ok "$kind: it goes on within 20 ms ($(took 1) ms instead of $(took 2), $(took 10) instead of $(took 11))" \
    eval 'soon 1 2 && soon 10 11'
  ok "$kind: no rail has one for a while" job "$both" 7 'everywhere 0x7fff; sleep .2; keys h1 1 0x8011; keys h2 1 0x8011; sleep .3'
  ok "$kind: all ports go to a partition that none was in" job "$both" 7 'everywhere 0 0x8033; sleep .3'
done
unset MRMPI_LINKS
ok "each rail carries data again after it" test "$(packets h1 1)" -gt 0

# none comes back
not_ok "none is left" with MRMPI_PATIENCE=2 job "$both" 4 'keys h1 0 0x7fff; keys h1 1 0x7fff 0x8022'
like "the error names P_Keys" 'mlx5_0 port 1 to mlx5_0 port 1, path 0: no partition in which both can talk is left. P_Keys here: 0x7fff \(limited\); there: 0x7fff \(limited\), 0x8011' "$tmp/out"
like "after the patience" 'is lost: no rail has led there for 2 s' "$tmp/out"

done_testing
