#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 7200
# Every kind of link with everything: links.sh explains.
exec bash "$(dirname "$0")/links.sh" all
