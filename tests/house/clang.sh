#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1800
# Another compiler builds all of it without a warning, and what it builds passes messages, on a node and between hosts.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
command -v clang >/dev/null || skip_all "clang is not installed"
unset SAN
built=$tmp/build
build() { env -u BUILD make --no-print-directory -j"$(nproc)" CC=clang BUILD="$built" all "$built"/tests/mpi/{p2p_order,coll,rma_fence} >"$tmp/out" 2>&1; }
ok "clang builds all" build || cat "$tmp/out"
# the language is C17 with GNU's extensions
warnings() { grep "warning:" "$tmp/out" | grep -v "is a GNU extension"; }
not_ok "without a warning" warnings
job() { # HOW ARGS...
  BUILD=$built PATH=$built/bin:$PATH MRMPI_LOG_LEVEL=0 timeout -k 5 120 "$@" </dev/null
}
for program in p2p_order coll rma_fence; do
  ok "$program on a node" job mrrun -n 3 "$built/tests/mpi/$program"
  ok "$program between hosts" job simfab run --topology etc/topologies/two-hosts-two-rails.net -- \
    mrrun -n 4 --ppn 2 "$built/tests/mpi/$program"
done
done_testing
