#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fault at every step of a message, the whole table: steps.py explains.
# timeout: 7200
. "$(dirname "$0")/../tap.sh"
command -v python3 >/dev/null || skip_all "python3 is not installed"
TMPDIR=$tmp python3 "$(dirname "$0")/steps.py" all "${STEPS_PART:-1/1}"
