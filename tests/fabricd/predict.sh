#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A made-up policy on each model, over a cable and many to one: what `policy plan` predicts is what the wire gives. See predict.py.
# timeout: 600
exec python3 "$(dirname "$0")/predict.py" --policies 1 --seed 7 --sizes 8K,1M
