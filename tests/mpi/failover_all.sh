#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rails that die and come back, by read and by write everywhere: failover.sh explains.
# timeout: 600
exec bash "$(dirname "$0")/failover.sh" all
