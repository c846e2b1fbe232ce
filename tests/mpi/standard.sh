#!/usr/bin/env bash
# The standard's functions (functions.list) and what it has added to MPICH 4.0.2's constants (constants.list) against the header
# and the library: all are there, and none that nobody knows of.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
export LC_ALL=C
lists=$PWD/tests/mpi header=$PWD/libmrmpi/include library=$BUILD/lib/libmpi.so.12

grep -v '^#' "$lists/functions.list" | awk '{print $1; print "P" $1}' | sort -u >"$tmp/standard"
nm -D --defined-only "$library" | awk '$2 ~ /[TW]/ && $3 ~ /^P?MPI_/ {print $3}' | sort -u >"$tmp/exported"
gcc -E -P -I "$header" -include mpi.h -x c /dev/null | grep -oE '\bP?MPI_[A-Za-z0-9_]+ *\(' | tr -d ' (' | sort -u >"$tmp/declared"
gcc -E -dM -I "$header" -include mpi.h -x c /dev/null | sed -n 's/^#define \(P\{0,1\}MPI_[A-Za-z0-9_]*\)(.*/\1/p' >"$tmp/macros"

is "each line of the list has a function and a version" "$(grep -v '^#' "$lists/functions.list" | grep -vE '^MPI_[A-Za-z0-9_]+ +(4\.0|4\.1|5\.0)$')" ""
is "no function is in it twice" "$(grep -v '^#' "$lists/functions.list" | awk '{print $1}' | sort | uniq -d)" ""
# by version: MPI-4.0; 4.1, which made the conversions of handles functions; 5.0
is "it has as many functions as the standard" "$(wc -l <"$tmp/standard")" $((2 * (613 + 49 + 28)))
is "the library exports all of them, and their profiling twins" "$(comm -23 "$tmp/standard" "$tmp/exported" | tr '\n' ' ')" ""
is "the header declares all of them" "$(comm -23 "$tmp/standard" "$tmp/declared" | tr '\n' ' ')" ""
is "none is a macro" "$(comm -12 "$tmp/standard" "$tmp/macros" | tr '\n' ' ')" ""
# what was removed from the standard is still there for programs from before
removed=" Address Errhandler_create Errhandler_get Errhandler_set Type_extent Type_hindexed Type_hvector Type_lb Type_struct Type_ub "
extra() {
  local n
  comm -13 "$tmp/standard" "$tmp/exported" | while read -r n; do [[ $removed == *" ${n#*MPI_} "* ]] || echo "$n"; done
}
is "nothing else is named like a function of MPI" "$(extra | tr '\n' ' ')" ""

constants() { # as a program
  echo '#include <mpi.h>'
  echo '#include <stdio.h>'
  echo 'static int wrong; static void is(const char *n, unsigned long got, unsigned long want)'
  echo '{ if (got != want) { printf("%s is %#lx, not %#lx\n", n, got, want); wrong = 1; } }'
  echo 'int main(void) {'
  grep -v '^#' "$lists/constants.list" | awk '{print "is(\"" $1 "\", (unsigned long)" $1 ", " $3 "ul);"}'
  echo 'return wrong; }'
}
constants_hold() { constants >"$tmp/c.c" && gcc -w -I "$header" -o "$tmp/c" "$tmp/c.c" && "$tmp/c"; }
ok "constants that came later have their values" constants_hold
done_testing
