#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many to one at a receiver whose bus is slower than its cable: the shares are those of the policy.
# --all: more classes, sizes and jobs. See paced.py.
# timeout: 300
# timeout --all: 3600
[ "${1:-}" = --all ] && exec python3 "$(dirname "$0")/paced.py"
exec python3 "$(dirname "$0")/paced.py" --short
