#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1200
# rma_far.sh with more kinds of links, and more of what happens at random.
exec bash "$(dirname "$0")/rma_far.sh" all
