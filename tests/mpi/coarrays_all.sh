#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 7200
# Fortran programs with coarrays, all of them over every kind of link: coarrays.sh explains.
exec bash "$(dirname "$0")/coarrays.sh" all
