#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each target of fuzz.sh for ten minutes, or $FUZZ_SECONDS.
# timeout: 1800
FUZZ_SECONDS=${FUZZ_SECONDS:-600} exec bash "$(dirname "$0")/fuzz.sh"
