#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster.sh with a daemon on each of the 64 hosts.
DAEMONS=64 exec bash "$(dirname "$0")/cluster.sh"
