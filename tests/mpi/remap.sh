#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Registered memory: buffers that come and go, pinned by the cache within its limits, and on adapters that page on demand.
# --all: by every kind of link, and what settings and adapters leave out.
. "$(dirname "$0")/../tap.sh"
all=${1:-}
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
echo 'hca: {odp: true}' >"$tmp/odp.yaml"
echo 'hca: {max_mr: 512}' >"$tmp/few.yaml"

# over MODEL [NAME=VALUE...]: the program ends well, and nothing is left registered
over() {
  local model=$1
  shift
  env MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 "$@" timeout -k 5 60 simfab run --topology "$topology" --model "$model" -- \
    mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/remap" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 30
  [ $rc = 0 ] && ! grep -q 'leak:' "$tmp/out"
}

ok "pinned" over hdr MRMPI_REG_CACHE_ENTRIES=0
ok "unmappings were acted on ($(counted reg_cache_unmapped))" test "$(counted reg_cache_unmapped)" -ge 6
is "nothing was evicted" "$(counted reg_cache_evicted)" 0
ok "pinned, 10 buffers at most" over hdr MRMPI_REG_CACHE_ENTRIES=10
ok "others were evicted ($(counted reg_cache_evicted))" test "$(counted reg_cache_evicted)" -ge 200
is "and there were never more" "$(counted reg_cache_entries_most)" 20
ok "on demand" over "$tmp/odp.yaml" MRMPI_ODP=yes
is "nothing was pinned" "$(counted reg_cache_misses)" 0
ok "but registered ($(counted reg_on_demand))" test "$(counted reg_on_demand)" -ge 600

# COSTS: registrations of a program whose buffers are new, if the library assumes these costs
registrations() {
  MRMPI_MODEL=$1 timeout -k 5 60 simfab run --topology "$topology" --model hdr -- \
    mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/p2p_sizes" >"$tmp/out" 2>&1 </dev/null && counted reg_cache_misses
}
usual=$(registrations "") dear=$(registrations register_ns=1000000) free=$(registrations register_ns=0)
ok "dear registrations are avoided ($dear, usually $usual)" test "${dear:-99}" -lt "${usual:-0}"
ok "free ones are not ($free)" test "${free:-0}" -gt "${usual:-99}"
[ -n "$all" ] || { done_testing; exit; }

ok "pinned, written" over hdr MRMPI_RNDV=write
ok "unmappings were acted on ($(counted reg_cache_unmapped))" test "$(counted reg_cache_unmapped)" -ge 6
ok "on demand, written" over "$tmp/odp.yaml" MRMPI_ODP=yes MRMPI_RNDV=write
ok "it was ($(counted reg_on_demand))" test "$(counted reg_on_demand)" -ge 600
ok "pinned, few bytes" over hdr MRMPI_REG_CACHE_MAX=1M
ok "others were evicted ($(counted reg_cache_evicted))" test "$(counted reg_cache_evicted)" -ge 100
ok "an adapter with room for few registrations" over "$tmp/few.yaml" MRMPI_SRQ_DEPTH=64
is "nothing is paged on demand where no adapter does" "$(counted reg_on_demand)" 0

for links in ring,rc rc,ud; do
  ok "on demand, $links" over "$tmp/odp.yaml" MRMPI_ODP=yes MRMPI_LINKS=$links
  ok "it was ($(counted reg_on_demand))" test "$(counted reg_on_demand)" -ge 300
done
ok "datagrams alone" over "$tmp/odp.yaml" MRMPI_ODP=yes MRMPI_LINKS=ud
ok "are sent on demand ($(counted reg_on_demand))" test "$(counted reg_on_demand)" -ge 300
ok "and received in what is pinned ($(counted reg_cache_misses))" test "$(counted reg_cache_misses)" -ge 100
ok "unreliable connections: everything is" over "$tmp/odp.yaml" MRMPI_ODP=yes MRMPI_LINKS=uc
is "really" "$(counted reg_on_demand)" 0
is "and it says so, once" "$(grep -c 'unreliable connections.*cannot use' "$tmp/out")" 1
ok "adapters without it" over hdr MRMPI_ODP=yes
is "say so, once" "$(grep -c 'no on-demand paging' "$tmp/out")" 1
ok "auto" over "$tmp/odp.yaml" MRMPI_ODP=auto
is "pins what stays registered" "$(counted reg_on_demand)" 0
ok "auto, nothing stays registered" over "$tmp/odp.yaml" MRMPI_REG_CACHE_MAX=0
ok "pages on demand ($(counted reg_on_demand))" test "$(counted reg_on_demand)" -ge 600
ok "no" over "$tmp/odp.yaml" MRMPI_REG_CACHE_MAX=0 MRMPI_ODP=no
is "does not" "$(counted reg_on_demand)" 0
done_testing
