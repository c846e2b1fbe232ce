#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 900
# Large messages over datagrams, with everything: ud_zcopy.sh explains.
exec bash "$(dirname "$0")/ud_zcopy.sh" all
