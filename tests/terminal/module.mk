# SPDX-License-Identifier: BSD-3-Clause
SCRIPT_TESTS += tests/terminal/progress.sh
