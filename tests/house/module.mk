# SPDX-License-Identifier: BSD-3-Clause
# Promises about the tree itself, checked by machine.
SCRIPT_TESTS += tests/house/lint.sh tests/house/tree.sh tests/house/names.sh tests/house/frames.sh tests/house/format.sh tests/house/build.sh tests/house/symbols.sh tests/house/install.sh tests/house/completion.sh tests/house/man.sh tests/house/timeout.sh tests/house/runner.sh tests/house/tap.sh
LONG_TESTS += tests/house/lint.sh:--all tests/house/clang.sh tests/house/find.sh
