#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 7200
# Every design of rings with everything: rings.sh explains.
exec bash "$(dirname "$0")/rings.sh" all
