#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Twenty of them. See predict.py.
# timeout: 3600
exec python3 "$(dirname "$0")/predict.py" --policies 20
