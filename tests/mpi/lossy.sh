#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail that loses packets beside one that is well: lossy.py explains. lossy.sh [--all | PATTERN] runs a choice of the
# table, all of it, or those rows.
# timeout: 300
# timeout --all: 10000
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/lossy.py" "$@"
