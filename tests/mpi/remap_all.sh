#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Registered memory with everything: remap.sh explains.
exec bash "$(dirname "$0")/remap.sh" all
