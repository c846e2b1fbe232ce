#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The class of a job changes, with other kinds of link and of large transfer: change.sh explains.
# timeout: 600
SETTINGS='MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_LINKS=uc MRMPI_LINKS=ud' exec bash "$(dirname "$0")/change.sh"
