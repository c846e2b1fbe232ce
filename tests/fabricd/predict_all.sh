#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Twenty of them, with shares of bulk on each model, and in turn small messages, an aggressor and waits. See predict.py.
# timeout: 7200
exec python3 "$(dirname "$0")/predict.py" --policies 20
