#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two faults of different kinds at two ports: every cell of the table.
# timeout: 20000
exec bash "$(dirname "$0")/mixed.sh" all
