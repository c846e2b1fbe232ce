#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A made-up policy and four kinds of load, on the three models: what `policy plan` predicts is what the wire gives.
# --all: twenty policies, with shares of bulk on each model, and in turn small messages, an aggressor and waits. See predict.py.
# timeout: 600
# timeout --all: 7200
[ "${1:-}" = --all ] && exec python3 "$(dirname "$0")/predict.py" --policies 20
exec python3 "$(dirname "$0")/predict.py" --short --policies 1 --seed 7 --sizes 8K,1M
