#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 7200
# One host after the other, with every kind of link and of large transfer: hosts.sh explains.
AT_A_TIME=1 LIMIT=1000 SETTINGS='MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_RAILS_MAX=1 MRMPI_LINKS=uc MRMPI_LINKS=ud MRMPI_LINKS=rc,ud' \
  exec bash "$(dirname "$0")/hosts.sh"
