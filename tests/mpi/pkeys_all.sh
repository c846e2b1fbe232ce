#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Partitions, over every kind of link: pkeys.sh explains.
# timeout: 800
exec bash "$(dirname "$0")/pkeys.sh" all
