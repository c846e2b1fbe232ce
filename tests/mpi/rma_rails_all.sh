#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Windows over rails that die, over every kind of link, with two and four ranks: rma_rails.sh explains.
# timeout: 900
exec bash "$(dirname "$0")/rma_rails.sh" all
