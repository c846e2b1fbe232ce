#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fortran's interface of our own: its description against mpi.h, constants and names against MPICH's where MPICH is
# installed, and programs with mpif.h, mpi and mpi_f08, compiled by our wrapper.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)/languages
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
export LC_ALL=C MRMPI_LOG_LEVEL=0
library=$BUILD/lib/libmpifort.so.12 wrapper=$BUILD/libexec/mrmpi/bin/mpifort
made=$BUILD/libexec/mrmpi/fortran

# ---- the description
python3 -B libmrmpi/fortran/generate.py "$tmp/prototypes.h" || exit 2
prototypes() { { echo '#include "libmrmpi/include/mpi.h"' && cat "$1"; } | gcc -w -fsyntax-only -I. -x c -; }
ok "every function has the prototype of mpi.h" prototypes "$tmp/prototypes.h"
sed 's/\(MPI_Send(const void \*buf, \)int/\1long/' "$tmp/prototypes.h" >"$tmp/changed.h"
prototypes "$tmp/changed.h" 2>/dev/null
is "one type that differs is found" $? 1
names() { grep -oE '\bP?MPIX?_[A-Za-z0-9_]+ *\(' | tr -d ' (' | sort -u; }
names <"$tmp/prototypes.h" >"$tmp/described"
gcc -E -P -I libmrmpi/include -include mpi.h -x c /dev/null | tr '\n' ' ' | sed 's/;/;\n/g' |
  grep -E '^ *(int|double|MPI_[A-Za-z0-9]+) +P?MPIX?_\w+ *\(' | grep -oE '\bP?MPIX?_\w+ *\(' | tr -d ' (' | sort -u >"$tmp/declared"
# what Fortran has no functions for: conversions between languages, the tool interface, and functions that are C's alone
for_c='_(c2f|f2c|toint|fromint|c2f08|f082c|f2f08|f082f)$|^P?MPI_T_|^P?MPIX_Grequest_|^P?MPI_Abi_(get|set)_fortran_'
is "every function of mpi.h is described" "$(comm -13 "$tmp/described" "$tmp/declared" | grep -vE "$for_c" | tr '\n' ' ')" ""
is "and no other" "$(comm -23 "$tmp/described" "$tmp/declared" | tr '\n' ' ')" ""
ok "which is many" test "$(wc -l <"$tmp/described")" -gt 1000

# ---- the library
exported() { nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | sort -u; }
exported "$library" >"$tmp/ours"
is "the library needs no Fortran compiler's library" "$(readelf -d "$library" | grep -c 'NEEDED.*gfortran')" 0
is "its other name is MPICH's in Debian" "$(readlink -f "$BUILD/lib/libmpichfort.so.12")" "$(readlink -f "$library")"
theirs=$(ls /usr/lib/*/libmpichfort.so.12 2>/dev/null | head -n 1)
if [ -n "$theirs" ]; then
  # Left out: data of libmpi.so.12, what MPICH's parts say to each other, and types for polymorphic variables
  inside='^MPIR_|^MPI_F_|^P?MPI_Status_|^mpirinit|^__mpi_c_interface|_MOD___(vtab|def_init|copy)_'
  exported "$theirs" | grep -vE "$inside" | sort >"$tmp/theirs"
  ok "MPICH's library has many names" test "$(wc -l <"$tmp/theirs")" -gt 4500
  is "ours has all of them" "$(comm -23 "$tmp/theirs" "$tmp/ours" | tr '\n' ' ')" ""
  [ -n "$(sanitizers)" ] || sizes_are_theirs=yes # a sanitizer makes data longer
fi
if [ -n "${sizes_are_theirs:-}" ]; then
  sizes() { nm -D -S --defined-only "$1" | awk 'NF == 4 && $3 ~ /[BDR]/ {print $4, $2}' | grep -vE "$inside" | sort -u; }
  sizes "$theirs" >"$tmp/size.theirs" && sizes "$library" >"$tmp/size.ours"
  ok "there is data to compare" test "$(wc -l <"$tmp/size.theirs")" -gt 90
  is "data has MPICH's sizes" "$(comm -23 "$tmp/size.theirs" "$tmp/size.ours" | tr '\n' ' ')" ""
fi
header=$(ls /usr/include/*/mpich/mpif.h 2>/dev/null | head -n 1)
values() { # mpif.h: names and values, without constants that name another constant
  sed -nE 's/^ *PARAMETER *\((.*)\)$/\1/p' "$1" | tr , '\n' | sed -E 's/=\(?([^)]*)\)?$/ \1/
    s/512-1/511/; s/128-1/127/; s/8192-1/8191/' | grep -v ' MPI_' | sort
}
if [ -n "$header" ]; then
  values "$header" >"$tmp/mpif.theirs" && values "$made/mpif.h" >"$tmp/mpif.ours"
  ok "MPICH's mpif.h has many constants" test "$(wc -l <"$tmp/mpif.theirs")" -gt 240
  is "ours have their values" "$(comm -23 "$tmp/mpif.theirs" "$tmp/mpif.ours" | tr '\n' ' ')" ""
fi
modules=$(ls /usr/include/*/mpich/mpi_f08.mod 2>/dev/null | head -n 1)
version() { zcat "$1" | head -n 1 | grep -o "version '[0-9]*'"; }
if [ -n "$modules" ] && [ -f "$made/mpi_f08.mod" ] && [ "$(version "$modules")" = "$(version "$made/mpi_f08.mod")" ]; then
  python3 -B tests/mpi/modules.py "$modules" "$made/mpi_f08.mod" >"$tmp/modules"
  ok "both modules have many procedures" test "$(tail -n 1 "$tmp/modules")" -gt 1000
  # Other than MPICH's: indices have the standard's name, the flag of MPIX_Comm_agree is an integer that goes in and out;
  # comparisons name their arguments alike; a conversion that MPICH's own code uses
  differs='^p?mpir?_[a-z_]+_f08: indx ([^;]+); ours: index \1$|^(mpix|pmpixr)_comm_agree_f08: flag |^mpi_[a-z]+_f_n?eq_f08: |^mpi_status_c_assign_f08 '
  is "the procedures have MPICH's arguments" "$(sed '$d' "$tmp/modules" | grep -vE "$differs")" ""
fi
is "no line of mpif.h is too long for fixed form" "$(awk 'length > 72' "$made/mpif.h")" ""

# ---- programs
san=$(sanitizers)
if [ "$san" = thread ] || ! command -v gfortran >/dev/null; then
  done_testing
  exit
fi
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../../mrrun/lsan.supp:print_suppressions=0}
quiet() { # ranks program
  timeout -k 5 100 mrrun -n "$1" "$tmp/$2" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}
cd "$tmp" || exit 2 # where gfortran leaves the module that a program defines
try() { # program ranks...
  local p=$1 n
  ok "$p compiles" "$wrapper" ${san:+"-fsanitize=$san"} -Wall -Wno-unused-dummy-argument -Wno-conversion -g -o "$tmp/$p" "$here/$p".f*
  shift
  for n; do ok "$p, $n ranks" quiet "$n" "$p"; done
}
try mpif 1 2 4
try fortran 1 3 4
try fortran08 1 3 4
try sections 1 2 3
try newer 1 2
if [ -n "$san" ]; then
  done_testing
  exit
fi
is "the programs have no library of MPICH's" \
  "$(ldd mpif fortran fortran08 sections newer | grep -oE '(libmpi|libmpich)[a-z0-9]*\.so\.[0-9]+ => [^ ]+' | grep -v "=> $(readlink -f "$BUILD/lib")/")" ""
fabric() { # program
  timeout -k 5 100 simfab run --topology two-hosts-two-rails -- mrrun -n 2 "$tmp/$1" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && ! grep -q 'rank.*:' "$tmp/out"
}
ok "sections between hosts" fabric sections

# a free-form program includes mpif.h, too, and what is wrong is found by the module
printf 'program p\n  implicit none\n  include "mpif.h"\n  integer :: e\n  call MPI_Init(e)\n  call MPI_Finalize(e)\nend program\n' >free.f90
ok "mpif.h in free form" "$wrapper" -o free free.f90
printf 'program p\n  use mpi\n  call MPI_Comm_rank(MPI_COMM_WORLD, 1.5)\nend program\n' >wrong.f90
"$wrapper" -c wrong.f90 2>err
is "the module finds wrong arguments" $? 1
printf 'program p\n  use mpi_f08\n  call MPI_Comm_free(MPI_INFO_NULL)\nend program\n' >wrong.f90
"$wrapper" -c wrong.f90 2>err
is "and so does mpi_f08" $? 1

# ---- programs of another compiler: flang's descriptors are known, others are refused, not taken for gfortran's
cat >foreign.c <<'C'
#include <mpi.h>
#include <stdio.h>
void mpi_send_f08ts_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierror);
void mpi_isend_f08ts_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *request, int *ierror);
int main(void)
{
    int x[4] = {0}, count = 4, type = MPI_INT, dest = MPI_PROC_NULL, tag = 1, comm = MPI_COMM_SELF, request, code;
    struct { void *base; size_t length; int version; char rank, kind; } flang = {x, 4, 20180515, 0, 9};
    long intel[6] = {(long)x, 4, 0, 1, 0, 0};
    char room[512] = {0};
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        __builtin_memcpy(room, i ? (void *)intel : (void *)&flang, i ? sizeof(intel) : sizeof(flang));
        mpi_send_f08ts_(room, &count, &type, &dest, &tag, &comm, &code);
        printf("%d ", code == MPI_ERR_BUFFER);
        mpi_isend_f08ts_(room, &count, &type, &dest, &tag, &comm, &request, &code);
        printf("%d ", code == MPI_ERR_BUFFER);
    }
    return MPI_Finalize();
}
C
ok "a program with descriptors of flang and of Intel" mrcc -o foreign foreign.c -lmpifort
is "gets an error for Intel's" "$(timeout 60 mrrun -n 1 ./foreign)" "0 0 1 1 "

# FLANG names the compiler, if the package has another name for it. `make` makes its modules, of the same sources.
for name in ${FLANG:-flang-new-22 flang-22 flang-new-19 flang}; do
  flang=$(command -v "$name") && break
done
if [ -n "$flang" ]; then
  modules=$(realpath -m --relative-base="$root" "$made/flang")
  ok "make makes the modules for flang" make --no-print-directory -C "$root" BUILD="$BUILD" FLANG="$flang" "$modules/mpi.mod" "$modules/mpi_f08.mod"
  # flang 19 cannot compile a procedure with arguments of assumed rank
  sed '/^    call forwarded/d; /^  subroutine forwarded/,/^  end subroutine/d; /of assumed type/d' "$here/sections.f90" >sections.f90
  for p in mpif:1 fortran:3 fortran08:3 sections:3 newer:2; do
    case $p in
    sections:*) sources=(sections.f90) ;;
    newer:*) # flang 19 cannot compile a file that uses mpi and mpi_f08
      csplit -s -z -f newer_ -b '%02d.f90' "$here/newer.f90" '/^\(module\|program\) /' '{*}'
      sources=(newer_*.f90) ;;
    *) sources=("$here/${p%:*}".f*) ;;
    esac
    ok "flang compiles ${p%:*}" "$wrapper" -fc="$flang" -w -o "$tmp/flang.${p%:*}" "${sources[@]}"
    # flang's runtime library says "Fortran STOP" where gfortran's says nothing
    job_of_flang() { timeout -k 5 100 mrrun -n "$1" "$2" </dev/null 2>&1 | grep -vx 'Fortran STOP'; [ "${PIPESTATUS[0]}" = 0 ]; }
    is "${p%:*} of flang, ${p#*:} ranks" "$(job_of_flang "${p#*:}" "$tmp/flang.${p%:*}"; echo $?)" 0
  done
else
  ok "programs of flang # SKIP not installed (flang-19)" true
fi

# ---- profiling: a call of Fortran is one call of C, whichever name Fortran has called
cat >count.c <<'C'
#include <mpi.h>
#include <stdio.h>
static int sends, fortran_sends, gets;
int MPI_Info_get(MPI_Info info, const char *key, int length, char *value, int *flag)
{
    gets++;
    return PMPI_Info_get(info, key, length, value, flag);
}
int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buf, count, type, dest, tag, comm);
}
void pmpi_send_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierror);
void mpi_send_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierror)
{
    fortran_sends++;
    pmpi_send_(buf, count, type, dest, tag, comm, ierror);
}
int MPI_Finalize(void)
{
    printf("%d %d %d\n", sends, fortran_sends, gets);
    return PMPI_Finalize();
}
C
cat >sends.f90 <<'F'
subroutine with_mpi(ierr)
  use mpi
  integer :: ierr
  call MPI_Send(ierr, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_SELF, ierr)
  call PMPI_Send(ierr, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_SELF, ierr)
end subroutine
subroutine with_f08(ierr)
  use mpi_f08
  integer :: ierr
  character(9) :: value
  logical :: found
  call MPI_Info_get(MPI_INFO_ENV, 'command', 9, value, found)
  call PMPI_Info_get(MPI_INFO_ENV, 'command', 9, value, found)
  call MPI_Send(ierr, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_SELF)
  call PMPI_Send(ierr, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_SELF)
end subroutine
program sends
  use mpi_f08, only : MPI_Init, MPI_Finalize
  integer :: ierr
  call MPI_Init
  call with_mpi(ierr)
  call with_f08(ierr)
  call MPI_Finalize
end program
F
ok "a profiling library" mrcc -shared -fPIC -o libcount.so count.c
ok "a program with calls of both modules" "$wrapper" -o sends sends.f90 -L. -Wl,--no-as-needed -lcount -Wl,-rpath,"$tmp"
is "C's name is called 3 times, by PMPI_Send of mpi_f08 not; Fortran's once; and so are functions with code of their own" \
  "$(timeout 60 mrrun -n 1 ./sends)" "3 1 1"
done_testing
