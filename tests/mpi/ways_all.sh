#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ways that fail or go silent: every row of the table.
# timeout: 3000
exec bash "$(dirname "$0")/ways.sh" all
