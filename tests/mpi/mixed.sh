#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two faults of different kinds at two ports, with default settings: mixed.py explains. mixed.sh [--all | PATTERN] runs a
# choice of the table, all of it, or those cells.
# timeout: 300
# timeout --all: 27000
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/mixed.py" "$@"
