#!/usr/bin/env bash
# The binary interface against MPICH's own header, when it is installed: every constant that both define has the same value,
# every type the same size, every function that ours declares the same prototype.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
ours=$PWD/libmrmpi/include theirs=
for d in /usr/lib/*/mpich/include /usr/include/mpich*; do [ -f "$d/mpi.h" ] && theirs=$d; done
[ -n "$theirs" ] || skip_all "MPICH's mpi.h is not installed"

# names: object-like macros and enumerators of our header
names() {
  gcc -E -dM -I "$ours" -include mpi.h -x c /dev/null | sed -n 's/^#define \(MPI\(X\|CH\)\?_[A-Za-z0-9_]*\) .*/\1/p'
  gcc -E -P -I "$ours" -include mpi.h -x c /dev/null | grep -oE '\bMPI(R_T)?_[A-Z0-9_]+ = [0-9]+' | sed 's/ = .*//'
}
defined_in() { # header-dir: those of the names on stdin that it knows, as a program
  local n
  echo '#include <mpi.h>'
  echo '#include <stdio.h>'
  echo '#include <stddef.h>'
  echo 'static void number(const char *name, unsigned long long n) { printf("%s %llx\n", name, n); }'
  echo 'static void text(const char *name, const char *s) { printf("%s %s\n", name, s); }'
  echo 'int main(void) {'
  while read -r n; do
    echo "_Generic(($n), char *: text, default: number)(\"$n\", ($n));"
  done
  for n in MPI_Comm MPI_Datatype MPI_Request MPI_Status MPI_Aint MPI_Offset MPI_Count MPI_Fint MPI_Message MPI_Info MPI_File; do
    echo "printf(\"sizeof %s %zu\\n\", \"$n\", sizeof($n));"
  done
  for n in MPI_SOURCE MPI_TAG MPI_ERROR count_lo count_hi_and_cancelled; do
    echo "printf(\"offset %s %zu\\n\", \"$n\", offsetof(MPI_Status, $n));"
  done
  echo 'return 0; }'
}
values() { # header-dir out
  defined_in <"$tmp/names" >"$tmp/v.c"
  gcc -w -c -I "$1" -o "$tmp/v.o" "$tmp/v.c" && gcc -o "$tmp/v" "$tmp/v.o" -Wl,--unresolved-symbols=ignore-all && "$tmp/v" >"$2"
}

names | sort -u >"$tmp/all"
gcc -E -dM -I "$theirs" -include mpi.h -x c /dev/null | sed -n 's/^#define \([A-Za-z0-9_]*\) .*/\1/p' >"$tmp/known"
# enumerators, of which not all are given their number
gcc -E -P -I "$theirs" -include mpi.h -x c /dev/null | grep -oE '\bMPI(R_T)?_[A-Z0-9_]+ ?[=,}]' | sed 's/ *[=,}]//' >>"$tmp/known"
gcc -E -P -I "$theirs" -include mpi.h -x c /dev/null | grep -oE '^ *MPI(R_T)?_[A-Z0-9_]+,?$' | tr -d , | tr -d ' ' >>"$tmp/known"
sort -u -o "$tmp/known" "$tmp/known"
# addresses of functions differ, of course
comm -12 "$tmp/all" "$tmp/known" | grep -vE '^MPI_INCLUDED$|_FN$' >"$tmp/names"
ok "there is something to compare" test "$(wc -l <"$tmp/names")" -gt 200
# but for what MPI has got since (constants.list, which standard.sh checks)
unknown=$(comm -23 "$tmp/all" "$tmp/known" | comm -23 - <(sed -n 's/^\(MPI_[A-Z0-9_a-z]*\) .*/\1/p' tests/mpi/constants.list | sort) | tr '\n' ' ')
is "no constant is ours alone" "$unknown" ""
# ... and none theirs alone, but what is for ROMIO and for the header itself
theirs_alone() {
  grep -E '^MPI(X|CH|R_T)?_[A-Z0-9_]+$' "$tmp/known" | grep -vE '_T$|^MPI(CH_(ERR|API|ATTR)|_PROTO_H|_FILE_DEFINED|_LAST_FUNC)' | comm -13 "$tmp/all" -
}
is "and none MPICH's alone" "$(theirs_alone | tr '\n' ' ')" ""
# Programs built with MPICH's header know these classes of errors; MPI_Abi_... is nothing that they call.
returned() {
  sed -n 's/^    E(\([A-Z_]*\)),$/MPI_ERR_\1/p' libmrmpi/api/abi_mpich.c
  sed -nE 's/^ *T_CHECK\(.*, ([A-Z_]+)\);$/MPI_T_ERR_\1/p; s/^NOTHING\(\w+, ([A-Z_]+),.*/MPI_T_ERR_\1/p' libmrmpi/api/mpi_t*.c
}
ok "there are classes that functions return" test "$(returned | sort -u | wc -l)" -gt 35
is "and MPICH's header has all but one" "$(returned | sort -u | comm -23 - "$tmp/known" | tr '\n' ' ')" "MPI_ERR_ABI "
ok "our header's values" values "$ours" "$tmp/a"
ok "MPICH's values" values "$theirs" "$tmp/b"
ok "all $(wc -l <"$tmp/names") constants, sizes and offsets agree" diff "$tmp/a" "$tmp/b"

# Prototypes: declaring every function of ours after MPICH's header is an error if one differs.
prototypes() {
  gcc -E -P -I "$ours" -include mpi.h -x c /dev/null | tr '\n' ' ' | sed 's/;/;\n/g' |
    grep -E '^ *(int|double|MPI_Aint) P?MPI_[A-Z][A-Za-z0-9_]* *\(' | sed 's/^ *//' >"$tmp/protos"
  [ "$(wc -l <"$tmp/protos")" -gt 400 ] || { echo "found too few: $(wc -l <"$tmp/protos")"; return 1; }
  { echo '#include <mpi.h>'; cat "$tmp/protos"; } >"$tmp/p.c"
  gcc -w -fsyntax-only -I "$theirs" "$tmp/p.c"
}
ok "every function has MPICH's prototype" prototypes
# Every function and datum of MPI that MPICH's library has, with its profiling twin, is here.
symbols() { nm -D --defined-only "$1" | awk '$3 ~ /^P?MPIX?_/ {print $3}' | sort -u; }
library=$(ls /usr/lib/*/libmpich.so.12 2>/dev/null | head -n 1)
all_symbols() {
  symbols "$library" >"$tmp/theirs" && symbols "$BUILD/lib/libmpi.so.12" >"$tmp/ours"
  [ "$(wc -l <"$tmp/theirs")" -gt 900 ] || { echo "found too few: $(wc -l <"$tmp/theirs")"; return 1; }
  missing=$(comm -23 "$tmp/theirs" "$tmp/ours" | tr '\n' ' ')
  [ -z "$missing" ] || { echo "missing: $missing"; return 1; }
}
[ -z "$library" ] || ok "all symbols of MPICH's library are here" all_symbols
# Whatever name MPICH's library and its bindings of other languages have in common is one thing at run time: it is here too,
# as a function or as data of the same size, because a program may hold a copy of it.
dynamic() { # library nm-option...: name and kind of its symbols
  nm -D "${@:2}" "$1" | sed 's/@.*//' | awk '{
    kind = NF == 2 ? "undefined" : $(NF - 1) ~ /[TtWwi]/ ? "function" : "data " $2
    print $NF, kind
  }' | sort -u
}
shared_symbols() { # binding
  dynamic "$library" -S --defined-only >"$tmp/theirs" && dynamic "$BUILD/lib/libmpi.so.12" -S --defined-only >"$tmp/ours" || return 1
  dynamic "$1" | sed 's/ .*//' | join - "$tmp/theirs" >"$tmp/shared"
  echo "$(wc -l <"$tmp/shared") symbols"
  [ "$(wc -l <"$tmp/shared")" -gt "$2" ] || return 1
  missing=$(comm -23 "$tmp/shared" "$tmp/ours")
  [ -z "$missing" ] || { echo "missing or of another kind or size:"; echo "$missing"; return 1; }
}
if [ -n "$library" ]; then
  ok "what the Fortran binding shares with it, too" shared_symbols "${library%/*}/libmpichfort.so.12" 500
  ok "and what the C++ binding does" shared_symbols "${library%/*}/libmpichcxx.so.12" 150
fi
ok "the header is C++" g++ -Wall -Wextra -Werror -fsyntax-only -I "$ours" -include mpi.h -x c++ /dev/null
ok "and strict C99" gcc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$ours" -include mpi.h -x c /dev/null
done_testing
