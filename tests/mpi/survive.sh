#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 3600
# A rank of a window or of a file dies (survive.inc), in shared memory.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/survive.inc"

for pattern in fence groups 'ring|test' 'lock|shared' 'all|request' make \
  'collective|ordered' 'change|split|nonblocking' open; do
  ok "in shared memory: ${pattern//|/, }" in_memory "$pattern"
done
done_testing
