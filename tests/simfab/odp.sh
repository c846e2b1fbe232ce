#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Regions on demand, on simulated adapters that have them: the verbs suite's cases.
. "$(dirname "$0")/../tap.sh"
echo 'hca: {odp: true}' >"$tmp/odp.yaml"
timeout 60 simfab run --topology two-hosts-two-rails --model "$tmp/odp.yaml" -- \
  simfab exec h1 -- "$BUILD/tests/verbs/verbs_suite" -k memory >"$tmp/out" 2>&1 </dev/null
is "the suite ends well" "$?" 0
sed 's/^/# /' "$tmp/out"
for case in "a region on demand" "all memory on demand" registering; do
  like "$case" "^ok .*$case *$" "$tmp/out"
done
done_testing
