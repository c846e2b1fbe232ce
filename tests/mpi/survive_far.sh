#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 3600
# A rank of a window or of a file dies (survive.inc), between hosts.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/survive.inc"

between_hosts auto 0
done_testing
