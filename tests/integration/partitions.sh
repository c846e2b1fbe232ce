#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A class's partition: its jobs talk in it, whatever other partitions the ports are members of.
# timeout: 200
if [ -z "${SIMFAB_DIR:-}" ]; then
  conf=$(mktemp) || exit 1
  printf 'Default=0x7fff, ipoib : ALL=full ;\nred=0x0011 : ALL=full ;\n' >"$conf"
  "$BUILD/bin/simfab" run --topology two-hosts-two-rails --opensm-option "part_enforce off" \
    --opensm-option "partition_config_file $conf" -- bash "$0"
  rc=$?
  rm -f "$conf"
  exit $rc
fi
. "$(dirname "$0")/lib.sh"
sed 's/^  - name: normal/&\n    pkey: 0x8011/; s/^  - name: batch/&\n    pkey: 0x33/' etc/policies/simple.yaml >"$tmp/red.yaml"
fabricds "$tmp/red.yaml"
like "the classes' partitions are told" 'name: normal,.* pkey: "0x0011"' <(ctl h1 status)

for h in h1 h2; do ok "a job of another class, on $h" ctl $h job set other urgent --user "$(id -u)"; done
keys() { echo "simfab exec $1 -- $BUILD/tests/simfab/set_pkeys mlx5_$2 ${*:3}"; } # HOST RAIL KEY...
explained() { mrrun --explain --hosts h1,h2 --job-id "$1" "${@:2}" | grep -o 'P_Key 0x[0-9a-f]*' | sort | uniq -c | xargs; } # JOB
is "mrrun --explain shows the class's" "$(explained plain)" "2 P_Key 0x8011"
is "another class has the default one" "$(explained other)" "2 P_Key 0xffff"
is "a setting goes before it" "$(explained plain -x MRMPI_PKEY=0x7fff)" "2 P_Key 0xffff"

# a job does not notice that the other partition goes
job=plain
ok "a job of the class" exchange 4 "$(keys h2 0 0 0x8011); sleep .1" true
is "goes on when the default partition goes" "$(counted broken)" 0
eval "$(keys h2 0 0xffff 0x8011)"
job=other
ok "one of another class" exchange 4 "$(keys h2 0 0 0x8011); sleep .1" true
ok "does not (paths that broke: $(counted broken))" test "$(counted broken)" -ge 1
eval "$(keys h2 0 0xffff 0x8011)"

for h in h1 h2; do ok "a class whose partition no port is in, on $h" ctl $h job set lost batch --user "$(id -u)"; done
job=lost
ok "its jobs run in others" exchange 2
like "and say so" "mlx5_0 port 1 is not in the partition of fabricd's policy, P_Key 0x0033; it uses others" "$tmp/out"

sed 's/0x8011/0x10000/' "$tmp/red.yaml" >"$tmp/bad.yaml"
not_ok "a P_Key that there cannot be" fabricctl policy check "$tmp/bad.yaml"
like "is named with its place" 'bad.yaml:[0-9]+:[0-9]+: error: pkey is .0x10000.; allowed: a P_Key from 0x0001 to 0x7fff' \
  <(fabricctl policy check "$tmp/bad.yaml" 2>&1)
done_testing
