#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks with different limits, with all sizes: eager_max.sh explains.
# timeout: 600
exec bash "$(dirname "$0")/eager_max.sh" all
