#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ten million messages under random faults: soak.py explains. The seed is drawn, unless SOAK_SEED says one.
# timeout: 7200
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/soak.py" long ${SOAK_SEED:-}
