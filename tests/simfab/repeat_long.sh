#!/usr/bin/env bash
# repeat.sh, a hundred times each.
# timeout: 3600
REPEAT=100 exec bash "$(dirname "$0")/repeat.sh"
