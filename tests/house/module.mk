# SPDX-License-Identifier: BSD-3-Clause
# Promises about the tree itself, checked by machine.
TESTPROGS += tests/house/settings
tests/house/settings_SRCS := tests/house/settings.c libmrmpi/base/config.c libmrmpi/base/stats.c libmrmpi/base/log.c
SCRIPT_TESTS += tests/house/tree.sh tests/house/symbols.sh tests/house/install.sh tests/house/man.sh
