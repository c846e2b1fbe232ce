#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A share binds, whatever is sent. See binds.py.
# timeout: 5400
exec python3 "$(dirname "$0")/binds.py"
