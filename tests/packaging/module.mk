# SPDX-License-Identifier: BSD-3-Clause
LONG_TESTS += tests/packaging/deb.sh
