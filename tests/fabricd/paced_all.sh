#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The same with more classes, sizes and jobs. See paced.py.
# timeout: 3600
exec python3 "$(dirname "$0")/paced.py"
