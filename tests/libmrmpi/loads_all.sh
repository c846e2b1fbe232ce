#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The same with all sizes, loads and sets of rails. See loads.sh.
# timeout: 7200
LOADS_ALL=1 exec bash "$(dirname "$0")/loads.sh"
