#!/usr/bin/env bash
# Runs test_verbs.c on a simulated host.
: "${BUILD:?set BUILD to the build directory}"
command -v opensm >/dev/null || [ -x /usr/sbin/opensm ] || { echo "1..0 # SKIP opensm is not installed"; exit 0; }
exec "$BUILD/bin/simfab" run --topology two-hosts-two-rails -- "$BUILD/bin/simfab" exec h1 -- "$BUILD/tests/simfab/test_verbs"
