#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every C file is as clang-format 14, Debian 12's, makes it by .clang-format; other versions differ in details.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

format=$(command -v clang-format-14 || command -v clang-format) || skip_all "clang-format is not installed"
"$format" --version | grep -q ' version 14\.' || skip_all "$("$format" --version), not 14"

sources() { git ls-files '*.c' '*.h' 2>/dev/null || find . -path ./build -prune -o -name '*.[ch]' -print; }
misformatted() { xargs "$format" --style=file -n 2>&1 | sed -n 's/^\(.*\): warning: code should be clang-formatted.*/\1/p'; }
is "each file is formatted" "$(sources | misformatted | head -n 20)" ""
printf 'int  f( void );\n' >"$tmp/f.c"
cp .clang-format "$tmp"
like "a file that is not formatted is found" '/f\.c:1:[0-9]+$' <(echo "$tmp/f.c" | misformatted)
done_testing
