#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1800
# deaths.sh at every step.
STRIDE=1 exec "$(dirname "$0")/deaths.sh"
