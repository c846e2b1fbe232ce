#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fault at every step of a message: steps.py explains. steps.sh [--all | ROW...] runs a choice of the
# table, all of it, or those rows.
# timeout: 300
# timeout --all: 7200
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
[ "${1:-}" = --all ] && set -- --all "${STEPS_PART:-1/1}"
TMPDIR=$tmp python3 "$(dirname "$0")/steps.py" "$@"
