#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Many to one at a receiver whose bus is slower than its cable: the shares are those of the policy. See paced.py.
# timeout: 300
exec python3 "$(dirname "$0")/paced.py" --short
