#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# No C file has a warning of clang or of clang-tidy's checks in .clang-tidy, no script one of shellcheck beyond .shellcheckrc.
# Files are those of the last 10 commits and of the working tree, and for a changed header one source that includes the
# header; --all: all files.
# timeout --all: 1200
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
for tool in clang clang-tidy shellcheck; do command -v "$tool" >/dev/null || skip_all "$tool is not installed"; done
unset SAN
jobs=$(nproc)

# all files, or those that have changed; outside of git, or with a shorter history, all
git ls-files --cached --others --exclude-standard >"$tmp/all" 2>/dev/null || find . -path ./build -prune -o -type f -printf '%P\n' >"$tmp/all"
if [ "${1:-}" = --all ] || ! git diff --name-only HEAD~10 >"$tmp/changed" 2>/dev/null; then
  cp "$tmp/all" "$tmp/changed"
else
  git ls-files --others --exclude-standard >>"$tmp/changed"
fi
existing() { while read -r f; do [ -f "$f" ] && echo "$f"; done <"$tmp/changed"; }
existing | sort -u >"$tmp/files"

# C: how make would compile each source by clang
make --no-print-directory --always-make --dry-run V=1 CC=clang BUILD="$BUILD" tests >"$tmp/commands" 2>/dev/null
# and sources that make does not compile: benchmarks (any MPI's programs, without GNU's names), fuzzers, preloaded libraries.
# Left out: programs of HDF5, which need its headers, and the toy link, whose declaration the test adds to kinds.def.
sed -nE 's/.* -c -o [^ ]+\.o ([^ ]+\.c)$/\1/p' "$tmp/commands" | sort -u >"$tmp/made"
grep '\.c$' "$tmp/all" | grep -vE '^tests/(mpi/hdf5|libmrmpi/toy)/' | grep -vFxf "$tmp/made" | while read -r f; do
  [[ $f == bench/* ]] && flags='' || flags=-D_GNU_SOURCE
  echo "clang -std=gnu17 -I. -Ilibmrmpi/include -Wall -Wextra -Wno-unused-parameter $flags -c -o $f.o $f"
done >>"$tmp/commands"
awk -v dir="$PWD" -f packaging/compile_commands.awk "$tmp/commands" >"$tmp/compile_commands.json"
sed -n 's/.*"file": "\([^"]*\)", "command".*/\1/p' "$tmp/compile_commands.json" | sort -u >"$tmp/compiled"
grep '\.c$' "$tmp/files" | grep -Fxf - "$tmp/compiled" >"$tmp/sources"
if [ "${1:-}" != --all ]; then
  # of a header: the first source that the compiler has noted beside the header
  grep '\.h$' "$tmp/files" | while read -r header; do
    grep -rlF --include='*.d' -- " $header" "$BUILD/obj" | head -n 1
  done | sed "s|^$BUILD/obj/||; s|^standard/||; s|d$|c|" | grep -Fxf "$tmp/compiled" >>"$tmp/sources"
fi
sort -u -R "$tmp/sources" -o "$tmp/sources" # each process has its share of the slow ones
tidy() { # DATABASE JOBS: the sources that are read, in few processes, as each start costs as much as a source
  xargs -r -P "$2" -n 60 clang-tidy -p "$1" --quiet 2>/dev/null
}
ok "clang and clang-tidy have nothing to say of $(wc -l <"$tmp/sources") sources" tidy "$tmp" "$jobs" <"$tmp/sources"

# scripts: *.sh, and programs whose first line names a shell
xargs -r awk 'FNR == 1 { if (FILENAME ~ /\.sh$/ || /^#!.*sh$/) print FILENAME; nextfile }' <"$tmp/files" >"$tmp/scripts"
check() { xargs -r -P "$1" -n 12 shellcheck --severity=warning --format=gcc; }
ok "shellcheck has nothing to say of $(wc -l <"$tmp/scripts") scripts" check "$jobs" <"$tmp/scripts"

# A planted fault of each kind is found.
mkdir "$tmp/planted"
cp .clang-tidy .shellcheckrc "$tmp/planted"
cat >"$tmp/planted/fault.c" <<'C'
int fault(int n);
int fault(int n)
{
    int r;
    if (n > 3 && n > 3)
        r = 1;
    n = r;
    for (unsigned char c = 0; c < n; c++)
        r += c;
    return r;
}
C
printf '[{"directory": "%s", "file": "fault.c", "command": "clang -Wall -c fault.c"}]\n' "$tmp/planted" >"$tmp/planted/compile_commands.json"
echo "$tmp/planted/fault.c" | tidy "$tmp/planted" 1 >"$tmp/found"
for what in clang-diagnostic-sometimes-uninitialized misc-redundant-expression bugprone-too-small-loop-variable; do
  like "$what is found" "fault\.c:.*\[$what" "$tmp/found"
done
# shellcheck disable=SC2016 # text of a script
printf '#!/bin/bash\nif [ "$1" = a ] && [ ! -f *.c ]; then cd /nowhere; fi\n' >"$tmp/planted/fault.sh"
echo "$tmp/planted/fault.sh" | check 1 >"$tmp/found"
like "a script's fault is found" 'fault\.sh:2:.*SC2144' "$tmp/found"
done_testing
