#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout --all: 14400
# A fault at a step of policy apply: a sample of steps and faults, another one each day.
# --all: all faults at all steps, also of an apply that restarts opensm. See faults.py.
[ "${1:-}" = --all ] && exec python3 "$(dirname "$0")/faults.py"
exec python3 "$(dirname "$0")/faults.py" --short --seed "${FAULTS_SEED:-$(date +%j)}"
