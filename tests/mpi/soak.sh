#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many messages under random faults: soak.py explains. The seed is always the same here;
# --all: ten million, from a seed that is drawn, unless SOAK_SEED says one.
# timeout: 300
# timeout --all: 7200
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
extent=(short 1)
[ "${1:-}" = --all ] && extent=(long ${SOAK_SEED:-})
TMPDIR=$tmp python3 "$(dirname "$0")/soak.py" "${extent[@]}"
