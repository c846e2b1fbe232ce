#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A fault at a step of policy apply: a sample of steps and faults, another one each day. See faults.py.
exec python3 "$(dirname "$0")/faults.py" --short --seed "${FAULTS_SEED:-$(date +%j)}"
