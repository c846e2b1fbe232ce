#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 3600
# A rank of a window or of a file dies (survive.inc), between hosts, over datagrams only.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/survive.inc"

between_hosts ud 3
if [ -n "$all" ]; then
  ok "an error heard of before the failure: 40 windows of which a survivor has none" again ud 'make 1 0 lcf 415'
  ok "survivors free their windows while others, too: 40 times" again ud 'make 1 0 lr 420'
fi
done_testing
