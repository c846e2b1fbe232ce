#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks measure the costs by which protocols are chosen: on simulated adapters the costs of the timing model, to the digit. A
# hundredfold cost is refused, a setting stays, and what ranks measured is counted beside what is in force.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
topology=$root/etc/topologies/two-hosts-two-rails.net
derive() { sed "s/^  $2:.*/  $2: $3/" "$root/etc/models/$1.yaml"; } # MODEL KEY VALUE: to standard output

# over MODEL [NAME=VALUE...]: the counters of costs of each rank, in $tmp/costs
over() {
  env MRMPI_LOG_LEVEL=3 "${@:2}" timeout -k 5 60 simfab run --topology "$topology" --model "$1" -- \
    mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/silent" recv lives 10 true >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed -n 's/^mrmpi\[\([01]\).*counters:.* \(model_copy_mbps=.*\)/\1 \2/p' "$tmp/out" | sort >"$tmp/costs"
  [ $rc = 0 ] || sed 's/^/# /' "$tmp/out" | tail -n 20
  return $rc
}
# The rank that waits, rank 0, measures the round trip, too.
trip() { sed -n "s/^0.* $1=\([0-9]*\).*/\1/p" "$tmp/costs"; } # NAME
cost() { grep -o " $1=[0-9]*" "$tmp/costs" | sed 's/.*=//' | sort -u | tr '\n' ' '; } # NAME: of both ranks, once if the same

ok "a current adapter" over hdr
is "confirms the default of a registration" "$(cost model_register_ns)$(cost seen_register_ns)" "10500 9920 "
is "and of each further byte" "$(cost model_register_byte_ps)$(cost seen_register_byte_ps)" "15 14 "
is "and of a round trip" "$(trip model_trip_ns)" 1750
ok "within an eighth ($(trip seen_trip_ns))" test "$(trip seen_trip_ns)" -gt 1531 -a "$(trip seen_trip_ns)" -lt 1969
is "copies take no virtual time: the default" "$(cost model_copy_mbps)$(cost seen_memory_mbps)" "12500 "
cp "$tmp/costs" "$tmp/before"
ok "again" over hdr
ok "the same, to the digit" cmp "$tmp/before" "$tmp/costs"

ok "an adapter of 2004" over sdr-pcix
is "takes four times as long to register" "$(cost model_register_ns)$(cost model_register_byte_ps)" "39600 73 "
measured_us() { sed -n 's/.*costs of memory measured in \([0-9]*\)\..*/\1/p' "$tmp/out" | sort -n | tail -n 1; }
ok "measured in less than 200 us ($(measured_us))" test "$(measured_us)" -lt 200
ok "and three times for a round trip, or more ($(trip model_trip_ns))" test "$(trip model_trip_ns)" -gt 5250

derive hdr copy_mbytes_per_s 4000 >"$tmp/slow.yaml"
ok "a processor that copies 4 GB/s" over "$tmp/slow.yaml"
is "is measured" "$(cost model_copy_mbps)$(cost seen_memory_mbps)" "4000 4000 "
ok "the same, set" over "$tmp/slow.yaml" MRMPI_MODEL=copy_mbps=9000,trip_ns=3000
is "the setting stays, beside the measured rate" "$(cost model_copy_mbps)$(cost seen_memory_mbps)" "9000 4000 "
is "and the round trip" "$(cost model_trip_ns)" "3000 "

derive hdr reg_mr_ns 1000000 >"$tmp/wrong.yaml"
ok "a hundredfold registration" over "$tmp/wrong.yaml"
is "is refused" "$(cost model_register_ns)" "10500 "
derive hdr copy_mbytes_per_s 125 >"$tmp/wrong.yaml"
ok "a hundredth of the copy rate" over "$tmp/wrong.yaml"
is "is refused, and counted" "$(cost model_copy_mbps)$(cost seen_memory_mbps)" "12500 125 "
derive hdr propagation_ns 50000 >"$tmp/wrong.yaml"
ok "a round trip of 200 us" over "$tmp/wrong.yaml"
is "is refused" "$(trip model_trip_ns)" 1750
ok "and counted ($(trip seen_trip_ns))" test "$(trip seen_trip_ns)" -gt 175000

# A page of memory that the ranks of this host share: real time, so an interrupted measurement may tell nothing.
inside() { # [NAME=VALUE...]: the counters of two ranks with large messages
  env MRMPI_LOG_LEVEL=3 MRMPI_OVERSUBSCRIBED=0 "$@" mrrun -n 2 --stats "$BUILD/tests/mpi/p2p_truncate" 2>&1 </dev/null |
    sed -n 's/^mrmpi\[\([01]\).*counters:.* \(model_copy_mbps=.*\)/\1 \2/p' >"$tmp/costs"
}
measured_inside() {
  for _ in {1..20}; do
    inside "$@"
    grep -q ' seen_page_ns=[1-9]' "$tmp/costs" && return
  done
  return 1
}
ok "a page of memory inside a host is measured" measured_inside
ok "the same, set" measured_inside MRMPI_MODEL=page_ns=777
is "the setting stays" "$(cost model_page_ns)" "777 "
done_testing
