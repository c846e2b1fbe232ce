#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 900
# Hosts that are not alike, with everything: pairs.sh explains.
exec bash "$(dirname "$0")/pairs.sh" all
