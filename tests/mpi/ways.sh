#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ways that fail or go silent, with default settings: ways.py explains. ways.sh [--all | ROW] runs a choice of the
# table, all of it, or those rows.
# timeout: 300
# timeout --all: 3000
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/ways.py" "$@"
