#!/usr/bin/env bash
# umad and sysfs as a program on a simulated host sees them: test_umad_client with an opensm on the fabric.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
rm -rf "$tmp"
trap - EXIT
SIMFAB_CLOCK=real exec simfab run --topology two-hosts-two-rails -- \
  simfab exec h2 -- "$BUILD/tests/simfab/test_umad_client"
