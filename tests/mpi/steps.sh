#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fault at every step of a message: steps.py explains. steps.sh [ROW...] runs a choice of the table, or those rows.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/steps.py" "$@"
