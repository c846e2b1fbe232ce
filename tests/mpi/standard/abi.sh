#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# timeout --all: 7200
# libmpi_abi.so.1 and its header: the constants and functions of the standard (abi.list), in both directions; prototypes as in
# MPICH's interface; programs that were linked with another library of this name; what happens to a process with both of our
# libraries; the MPI programs, compiled for this interface: a choice, with --all all of them, over shared memory, one rail, two,
# datagrams and rings.
. "$(dirname "$0")/../../tap.sh"
cd "$(dirname "$0")/../../.." || exit 2
export LC_ALL=C
header=$PWD/libmrmpi/include/standard list=$PWD/tests/mpi/standard/abi.list library=$BUILD/lib/libmpi_abi.so.1
all=
[ "${1:-}" = --all ] && all=yes

# ---- names ---------------------------------------------------------------------------------------------------------
preprocessed() { gcc -E -P -I "$1" -include mpi.h -x c /dev/null; }
names() { # kind: names of the list
  awk -F'\t' -v functions="$1" '!/^#/ && ($1 == "F") == functions {print functions ? $2 : $1}' "$list" | sort
}
{
  gcc -E -dM -I "$header" -include mpi.h -x c /dev/null | sed -n 's/^#define \(MPI_[A-Za-z0-9_]*\) .*/\1/p' | grep -v '^MPI_H_ABI$'
  preprocessed "$header" | grep -oE '\bMPI_[A-Z0-9_a-z]+ = ' | sed 's/ = //'
} | sort >"$tmp/constants"
preprocessed "$header" | grep -oE '\bP?MPI_[A-Z][A-Za-z0-9_]* ?\(' | tr -d ' (' | grep -vE '_(function|fn)$' | sort >"$tmp/declared"
nm -D --defined-only "$library" | awk '{print $3}' | grep -vE '^(__asan|__ubsan|__odr_asan|_init$|_fini$)' | sort >"$tmp/exported"
names 1 | awk '{print; print "P" $1}' | sort >"$tmp/functions"
ok "the list has constants and functions" test "$(names 0 | wc -l) $(names 1 | wc -l)" = "364 664"
is "the header defines the standard's constants, and no others" "$(diff <(names 0) "$tmp/constants")" ""
is "it declares the standard's functions and their profiling twins, and no others" "$(diff "$tmp/functions" "$tmp/declared")" ""
is "the library exports these, and nothing else" "$(diff "$tmp/functions" "$tmp/exported")" ""
is "its soname is libmpi_abi.so.1" "$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libmpi_abi.so.1

values() { # as a program. aliases are pointers, or names of other constants
  echo '#include <mpi.h>'
  echo '#include <stdint.h>'
  echo '#define SAME(type, a, b) _Static_assert(__builtin_types_compatible_p(__typeof__(a), type) && (a) == (b), #a)'
  echo '#define SAME_HANDLE(type, a, b) _Static_assert(__builtin_types_compatible_p(__typeof__(a), type), #a); char check_##a[(uintptr_t)(a) == (b) ? 1 : -1]'
  echo '#define SAME_ALIAS(a, b) _Static_assert(__builtin_types_compatible_p(__typeof__(a), __typeof__(b)), #a); char check_##a[(uintptr_t)(a) == (uintptr_t)(b) ? 1 : -1]'
  awk -F'\t' '!/^#/ && $1 != "F" {
    if ($2 == "enum") printf "_Static_assert(%s == %s, \"%s\");\n", $1, $3, $1
    else if ($2 == "alias") printf "SAME_ALIAS(%s, %s);\n", $1, $3
    else if ($2 == "int" || $2 == "MPI_Offset") printf "SAME(%s, %s, %s);\n", $2, $1, $3
    else printf "SAME_HANDLE(%s, %s, %s);\n", $2, $1, $3
  }' "$list"
  for n in 'MPI_Status) == 32' 'MPI_Aint) == sizeof(void *)' 'MPI_Offset) == 8' 'MPI_Count) == 8' 'MPI_Comm) == sizeof(void *)'; do
    echo "_Static_assert(sizeof($n, \"a size\");"
  done
  for n in 'MPI_SOURCE) == 0' 'MPI_TAG) == 4' 'MPI_ERROR) == 8'; do echo "_Static_assert(__builtin_offsetof(MPI_Status, $n, \"a field\");"; done
}
values >"$tmp/values.c"
ok "all constants have the standard's types and values" gcc -w -fsyntax-only -I "$header" "$tmp/values.c"
sed 's/\(MPI_ERR_ABI == \)62/\163/' "$tmp/values.c" >"$tmp/wrong.c"
not_ok "which one wrong value would show" gcc -w -fsyntax-only -I "$header" "$tmp/wrong.c"
sed 's/MPI_BAND, 0x00000028/MPI_BAND, 0x00000029/' "$tmp/values.c" >"$tmp/wrong.c"
not_ok "and a handle's" gcc -w -fsyntax-only -I "$header" "$tmp/wrong.c"
ok "the header is C++" g++ -Wall -Wextra -Werror -fsyntax-only -I "$header" -include mpi.h -x c++ /dev/null
ok "and strict C99" gcc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$header" -include mpi.h -x c /dev/null
# Both headers have a function's prototype in the same words; abi_check.sh compares the others with MPICH's.
prototypes() { preprocessed "$1" | tr '\n' ' ' | sed 's/;/;\n/g' | grep -oE '\b(int|double|MPI_[A-Z][a-z]+) MPI_[A-Z][A-Za-z0-9_]* *\(.*;' | tr -s ' ' | sort; }
prototypes "$header" >"$tmp/ours"
prototypes libmrmpi/include >"$tmp/mpich"
is "functions have the prototypes of the other header" "$(comm -23 "$tmp/ours" "$tmp/mpich" | grep -vE ' MPI_P(send|recv)_init_c ?\(')" ""
ok "all of them" test "$(wc -l <"$tmp/ours")" = 664

# ---- libraries -----------------------------------------------------------------------------------------------------
san=$(sanitizers)
san=${san:+-fsanitize=$san}
job() { MRMPI_LOG_LEVEL=0 timeout -k 5 120 "$@" </dev/null; }
cat >"$tmp/ring.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, token = 1, sum, major, minor, version;
    MPI_Status st;
    if (MPI_Init(&argc, &argv))
        return 99;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 3, (rank + size - 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
    MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&st.MPI_SOURCE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Abi_get_version(&major, &minor);
    MPI_Get_version(&version, &size);
    if (rank == 0)
        printf("tokens %d, sources %d, ABI %d.%d, MPI %d\n", token, sum, major, minor, version);
    return MPI_Finalize();
}
C
# Another library with the same name, as a program was linked with elsewhere: it has the functions and no more.
sed 's/.*/int &(void); int &(void) { return 99; }/' "$tmp/functions" >"$tmp/stubs.c"
mkdir "$tmp/stubs"
ok "a library of stubs" gcc -w -shared -fPIC -Wl,-soname,libmpi_abi.so.1 -o "$tmp/stubs/libmpi_abi.so.1" "$tmp/stubs.c"
ln -s libmpi_abi.so.1 "$tmp/stubs/libmpi_abi.so"
ok "a program that is linked with the stubs" gcc -I "$header" -o "$tmp/ring" "$tmp/ring.c" -L "$tmp/stubs" -lmpi_abi
LD_LIBRARY_PATH=$tmp/stubs "$tmp/ring" >/dev/null 2>&1
is "does nothing with them" $? 99
[ -n "$san" ] || is "and runs unchanged with ours" "$(job mrrun -n 3 "$tmp/ring" 2>&1)" "tokens 3, sources 3, ABI 1.0, MPI 5"

cat >"$tmp/both.c" <<'C'
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (!dlopen(argv[1], RTLD_NOW))
        puts(dlerror());
    puts("has both");
    return MPI_Finalize();
}
C
mrcc $san -o "$tmp/both" "$tmp/both.c" -ldl
"$tmp/both" "$library" >"$tmp/out" 2>&1
is "a program of MPICH's interface that loads the other library: its status" $? 1
like "its error" 'has loaded both libmpi\.so\.12 .* and libmpi_abi\.so\.1 .*compile the program and its libraries for the same MPI interface' "$tmp/out"
not_ok "the program does not go on" grep -q "has both" "$tmp/out"
"$tmp/both" "$BUILD/lib/libmpich.so.12" >"$tmp/out" 2>&1
is "one library by two names is no fault: $(cat "$tmp/out")" "$?$(cat "$tmp/out")" "0has both"

# ---- programs ------------------------------------------------------------------------------------------------------
# Left out, because each of their cases calls functions of MPICH that the standard, and so this library, has not: grequest
# (MPIX_Grequest_start, requests with a poll function; request.c has the standard's) and recover (MPIX_Comm_revoke, shrink,
# agree and get_failed). A program of the standard that goes on after the loss of a rank is here instead.
mkdir "$tmp/programs"
choice='arguments|absent|idup|status|p2p_forms|coll|attr|handles|file_views|rma_mix|session|mpi_t|inter_coll|errors|ports|spawn'
[ -z "$all" ] || choice='.*'
sed -n 's/^\([a-z][a-z_0-9]*\) .*/\1/p' tests/mpi/programs.list | sort -u | grep -xE "$choice" |
  grep -vxE 'grequest|recover' >"$tmp/chosen"
# The functions whose arguments are tried: of this header. MPI_Psend_init and MPI_Precv_init are their large forms, too.
awk -f tests/mpi/functions.awk "$BUILD/man/mrmpi-functions.7" "$header/mpi.h" | grep -vE '^FUNCTION\(MPI_P(send|recv)_init_c,' >"$tmp/functions.h"
compile() { # program
  mrcc -mpi-abi $san -O${all:+1} -w -D_GNU_SOURCE -I. -I"$tmp" -include tests/mpi/standard/compat.h -rdynamic -o "$tmp/programs/$1" "tests/mpi/$1.c" -lpthread -lm
}
export -f compile
export tmp san all
compiled() { xargs -P "$(nproc)" -I{} bash -c 'compile {}' <"$tmp/chosen" && [ "$(ls "$tmp/programs" | wc -l)" = "$(wc -l <"$tmp/chosen")" ]; }
ok "$(wc -l <"$tmp/chosen") programs compile by mrcc -mpi-abi" compiled
ok "they are linked with the library" sh -c "readelf -d '$tmp/programs/coll' | grep -q 'NEEDED.*libmpi_abi.so.1'"
ports=$tmp/programs/ports spawn=$tmp/programs/spawn
ok "ports in a job" job mrrun -n 4 "$ports" within
ok "names of services" job mrrun -n 3 "$ports" names
ok "wrong ports are errors" job mrrun -n 2 "$ports" errors
two_jobs() { # CASE RANKS, CASE RANKS: at the same time
  job mrrun -n "$2" "$ports" "$1" "$tmp/port" 1 &
  job mrrun -n "$4" "$ports" "$3" "$tmp/port" 1 && wait $!
}
ok "jobs connect" two_jobs serve 2 call 3
ok "processes start processes" job mrrun -n 2 "$spawn" some 3
ok "of two programs" job mrrun -n 2 "$spawn" parts
ok "what cannot be started is an error" job mrrun -n 2 "$spawn" wrong
cat >"$tmp/survive.c" <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}
int main(int argc, char **argv)
{
    int rank, x = 1, sum = 0, others[] = {0, 2};
    MPI_Group all, rest;
    MPI_Comm c;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        raise(SIGKILL);
    if (class_of(MPI_Recv(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) != MPI_ERR_PROC_ABORTED)
        return 10;
    if (class_of(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) != MPI_ERR_PROC_ABORTED)
        return 11;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, others, &rest);
    if (MPI_Comm_create_group(MPI_COMM_WORLD, rest, 0, &c) || MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, c))
        return 12;
    if (rank == 0)
        printf("%d go on\n", sum);
    MPI_Group_free(&all);
    MPI_Group_free(&rest);
    MPI_Comm_free(&c);
    return MPI_Finalize();
}
C
ok "a program that survives one of its ranks" mrcc -mpi-abi $san -o "$tmp/survive" "$tmp/survive.c"
job mrrun --recover -n 3 "$tmp/survive" >"$tmp/out" 2>"$tmp/err"
is "the standard's error, and a communicator of the others" "$? $(cat "$tmp/out")" "0 2 go on"
if [ -n "$all" ]; then
  nm -D --undefined-only "$tmp"/programs/* "$BUILD/tests/mpi/standard/objects" | awk '{print $2}' | sort -u >"$tmp/called"
  is "the programs call every function of the standard" "$(names 1 | comm -23 - "$tmp/called" | tr '\n' ' ')" ""
  ok "all of ports.sh" env PORTS_PROGRAM="$ports" bash tests/mpi/ports.sh
  ok "all of spawn.sh" env SPAWN_PROGRAM="$spawn" bash tests/mpi/spawn.sh
fi
ok "handles, statuses, ranks, modes and attributes" job mrrun -n 1 "$BUILD/tests/mpi/standard/objects"
run() { # MODE SETTING...: the chosen programs, at least $least times
  env MPI_TEST_DIR="$tmp/programs" MPI_TEST_RANKS="${ranks:-}" "${@:2}" bash tests/mpi/run-mpi.sh "$1" "^($(paste -sd'|' "$tmp/chosen"))\$" >"$tmp/run" 2>&1
  local rc=$?
  grep -E '^(not ok|# )' "$tmp/run" | head -n 40
  echo "$(grep -c '^ok' "$tmp/run") runs"
  [ $rc -eq 0 ] && [ "$(grep -c '^ok' "$tmp/run")" -ge "$least" ]
}

least=${all:+1}10
if [ -n "$all" ]; then
  ok "over shared memory" run shm
  ranks='2 7'
  ok "over one rail" run net1
  ok "over two rails" run net2
  ok "by datagrams" run net1 MRMPI_LINKS=ud
  ok "by rings in the peers' memory" run net1 MRMPI_LINKS=ring MRMPI_RING_AFTER=0
else
  ranks=3
  ok "over shared memory" run shm
  printf 'coll\np2p_forms\nrma_mix\n' >"$tmp/chosen"
  ranks=2 least=3
  ok "three of them between hosts" run net2
fi
done_testing
