#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many messages under random faults: soak.py explains. The seed is always the same here.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/soak.py" short 1
