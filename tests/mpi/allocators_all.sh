#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every allocator in every way: allocators.sh explains.
# timeout: 1800
exec bash "$(dirname "$0")/allocators.sh" all
