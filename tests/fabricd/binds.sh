#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A share binds, in seven settings. See binds.py.
# timeout: 300
exec python3 "$(dirname "$0")/binds.py" --short
