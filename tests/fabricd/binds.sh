#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A share binds, in five settings; --all: in all of them. See binds.py.
# timeout: 300
# timeout --all: 5400
[ "${1:-}" = --all ] && exec python3 "$(dirname "$0")/binds.py"
exec python3 "$(dirname "$0")/binds.py" --short
