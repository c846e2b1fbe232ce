#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All faults at all steps of policy apply, also of one that restarts opensm. See faults.py.
# timeout: 14400
exec python3 "$(dirname "$0")/faults.py"
