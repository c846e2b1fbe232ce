#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail that loses packets beside one that is well: every row of the table.
# timeout: 10000
exec bash "$(dirname "$0")/lossy.sh" all
