#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A machine on which MPICH's libraries, headers, modules and wrappers are not there: hidden in a mount namespace of the test.
# Fortran programs are compiled by the wrappers, by CMake's FindMPI and with pkg-config, from an installation; programs that
# were linked with MPICH elsewhere run: ScaLAPACK's testers, OpenCoarrays' tests, NWChem. NWCHEM_ROOT: where the packages
# nwchem-mpich and nwchem-data were unpacked (dpkg -x), if they are not installed.
# timeout: 1200
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ -z "$(sanitizers)" ] || skip_all "a program of others does not link a sanitizer's runtime first"
command -v gfortran cmake pkg-config >/dev/null || skip_all "gfortran, cmake and pkg-config are not installed"
arch=$(gcc -print-multiarch)
if [ -z "${HIDDEN:-}" ]; then
  # /usr with a layer of its own, in which the files of MPICH are deleted
  cat >"$tmp/hide" <<'SH'
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay overlay -o lowerdir=/usr,upperdir="$1/upper",workdir="$1/work" /usr
rm -rf /usr/lib/"$2"/libmpich* /usr/lib/"$2"/libmpifort* /usr/lib/"$2"/mpich /usr/include/"$2"/mpich /usr/bin/mpi*.mpich \
  /usr/bin/*.hydra /usr/lib/"$2"/pkgconfig/mpich.pc /usr/lib/"$2"/fortran/*/mpich
[ -z "${NWCHEM_ROOT:-}" ] || cp -a "$NWCHEM_ROOT/usr/." /usr
shift 2
HIDDEN=yes exec "$@"
SH
  mkdir "$tmp/layer"
  unshare=(unshare -m)
  [ "$(id -u)" = 0 ] || unshare=(unshare -rm)
  "${unshare[@]}" bash "$tmp/hide" "$tmp/layer" "$arch" true 2>"$tmp/why" || skip_all "nothing can be hidden here: $(tail -n 1 "$tmp/why")"
  "${unshare[@]}" bash "$tmp/hide" "$tmp/layer" "$arch" bash "tests/mpi/no_mpich.sh" "$@"
  exit
fi
export MRMPI_LOG_LEVEL=0 OMP_NUM_THREADS=1
is "no library, module or wrapper of MPICH's is there" \
  "$(find /usr /lib /opt /etc/alternatives -xdev \( -name 'libmpich*.[as]*' -o -name 'libmpifort*' -o -path '*mpich*/mpi_f08.mod' -o -name 'mpif90.mpich' \) -exec test -e {} \; -print 2>/dev/null | grep -v '^/opt/mrmpi')" ""
make --no-print-directory install BUILD="$BUILD" PREFIX="$tmp/p" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
PATH=$tmp/p/libexec/mrmpi/bin:$tmp/p/bin:$PATH
job() { timeout -k 5 100 mrrun "$@" </dev/null; }
library() { readlink -f "$(job -n 1 ldd "$1" | sed -nE 's/.*lib(mpifort|mpichfort).so.12 => ([^ ]*) .*/\2/p')"; }

# ---- wrappers
cat >"$tmp/f77.f" <<'F'
      PROGRAM F77
      INCLUDE 'mpif.h'
      INTEGER E, N, S
      CALL MPI_INIT(E)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, N, E)
      CALL MPI_ALLREDUCE(N + 1, S, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, E)
      IF (N .EQ. 0) PRINT '(A, I0)', 'sum ', S
      CALL MPI_FINALIZE(E)
      END
F
for m in mpi mpi_f08; do
  cat >"$tmp/$m.f90" <<F
program with_$m
  use $m
  implicit none
  integer :: n, s, e
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, n, e)
  call MPI_Allreduce(n + 1, s, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, e)
  if (n == 0) print '(a, i0)', 'sum ', s
  call MPI_Finalize(e)
end program
F
done
cat >"$tmp/c.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int n, s;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &n);
    n++;
    MPI_Allreduce(&n, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (n == 1)
        printf("sum %d\n", s);
    return MPI_Finalize();
}
C
for w in mpif77:f77.f mpif90:mpi.f90 mpif90:mpi_f08.f90 mpifort:f77.f mpifort:mpi.f90 mpifort:mpi_f08.f90 mpicc:c.c mpicxx:c.c; do
  ok "${w%:*} compiles ${w#*:}" "${w%:*}" -o "$tmp/program" "$tmp/${w#*:}"
  is "mpiexec runs it" "$(timeout -k 5 100 mpiexec -n 3 "$tmp/program" </dev/null 2>&1)" "sum 6"
done
ok "mpifort compiles a program with mpi_f08" mpifort -o "$tmp/program" "$tmp/mpi_f08.f90"
is "its library is the installed one" "$(library "$tmp/program")" "$tmp/p/lib/libmpifort.so.12"
here=$PWD/tests/mpi/languages
for p in mpif fortran fortran08 sections newer; do
  (cd "$tmp" && mpifort -w -o "$tmp/$p" "$here/$p".f*) >"$tmp/log" 2>&1 && job -n 3 "$tmp/$p" >>"$tmp/log" 2>&1
  is "Fortran's tests: $p" "$?$(cat "$tmp/log")" 0
done

# ---- CMake, pkg-config
mkdir "$tmp/cmake"
cp "$tmp"/*.f "$tmp"/*.f90 "$tmp/c.c" "$tmp/cmake"
cat >"$tmp/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.10)
project(with_mpi C Fortran)
find_package(MPI REQUIRED COMPONENTS C Fortran)
message("HAVE ${MPI_Fortran_HAVE_F77_HEADER} ${MPI_Fortran_HAVE_F90_MODULE} ${MPI_Fortran_HAVE_F08_MODULE}.")
add_executable(f77 f77.f)
add_executable(f90 mpi.f90)
add_executable(f08 mpi_f08.f90)
add_executable(c c.c)
target_link_libraries(f77 MPI::MPI_Fortran)
target_link_libraries(f90 MPI::MPI_Fortran)
target_link_libraries(f08 MPI::MPI_Fortran)
target_link_libraries(c MPI::MPI_C)
CMAKE
cmakes() { # OPTION...
  rm -rf "$tmp/built"
  cmake -S "$tmp/cmake" -B "$tmp/built" "$@" && cmake --build "$tmp/built"
}
without_wrappers=$(printf %s "$PATH" | sed "s|$tmp/p/libexec/mrmpi/bin:||")
PATH=$without_wrappers ok "CMake's FindMPI with MPI_HOME" cmakes -DMPI_HOME="$tmp/p/libexec/mrmpi"
is "each program runs" "$(for p in f77 f90 f08 c; do job -n 2 "$tmp/built/$p" 2>&1; done | xargs)" "sum 3 sum 3 sum 3 sum 3"
is "with the installed library" "$(library "$tmp/built/f08")" "$tmp/p/lib/libmpifort.so.12"
cmakes -DMPI_HOME="$tmp/p/libexec/mrmpi" >"$tmp/log" 2>&1
like "it finds mpif.h and both modules" '^HAVE TRUE TRUE TRUE\.' "$tmp/log"
ok "CMake with the wrappers in PATH" cmakes
is "with the installed library, too" "$(library "$tmp/built/f77")" "$tmp/p/lib/libmpifort.so.12"
ok "CMake with a wrapper as its compiler" cmakes -DCMAKE_Fortran_COMPILER="$tmp/p/libexec/mrmpi/bin/mpifort" -DCMAKE_C_COMPILER="$tmp/p/bin/mrcc"
is "that runs, too" "$(job -n 2 "$tmp/built/f08" 2>&1)" "sum 3"
flags() { PKG_CONFIG_PATH=$tmp/p/lib/pkgconfig pkg-config --cflags --libs "$1"; }
# shellcheck disable=SC2046 # options
ok "pkg-config for Fortran" gfortran -o "$tmp/program" "$tmp/mpi_f08.f90" $(flags mrmpi-fort)
is "that runs" "$(job -n 2 "$tmp/program" 2>&1)" "sum 3"
# shellcheck disable=SC2046
ok "pkg-config for C" gcc -o "$tmp/program" "$tmp/c.c" $(flags mrmpi)
is "this one, too" "$(job -n 2 "$tmp/program" 2>&1)" "sum 3"

# ---- programs of others, linked with MPICH's libraries
testers=/usr/lib/$arch/scalapack/mpich-tests
mkdir "$tmp/in"
cd "$tmp/in" || exit 2
if [ -x "$testers/xdlu" ]; then
  ln -s "$testers"/*.dat . # which a tester reads where it is started
  # ScaLAPACK 2.2.1 hangs or fails with any MPI, now and then: p?lacon compares an estimate, which all ranks have alike, with
  # EST, to which p?porfs and p?gerfs give no value first. Ranks with other leftovers on their stacks take other branches, and
  # wait in other collectives. (ScaLAPACK's pull request 122, "Fix uninitialized EST in Placon".) Here EST has a value.
  cat >lacon.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#define VECTORS int *n, void *v, int *iv, int *jv, int *desc_v, void *x, int *ix, int *jx, int *desc_x
void pdlacon_(VECTORS, int *signs, double *est, int *kase)
{
    void (*scalapack)(VECTORS, int *, double *, int *) = dlsym(RTLD_NEXT, "pdlacon_");
    if (*kase == 0)
        *est = 0;
    scalapack(n, v, iv, jv, desc_v, x, ix, jx, desc_x, signs, est, kase);
}
void pzlacon_(VECTORS, double *est, int *kase)
{
    void (*scalapack)(VECTORS, double *, int *) = dlsym(RTLD_NEXT, "pzlacon_");
    if (*kase == 0)
        *est = 0;
    scalapack(n, v, iv, jv, desc_v, x, ix, jx, desc_x, est, kase);
}
C
  ok "a value for ScaLAPACK's EST" gcc -shared -fPIC -o lacon.so lacon.c -ldl
  passes() { # TESTER: all its cases, none of which has failed
    job -n 4 env LD_PRELOAD="$PWD/lacon.so" "$testers/$1" >out 2>err || { tail -n 5 out err; return 1; }
    grep -qE '^ *[1-9][0-9]* tests completed and passed|[1-9][0-9]* tests completed without checking|PASSED' out && ! grep -E 'FAILED|^ *[1-9][0-9]* tests completed and failed' out
  }
  for p in xdlu xzlu xdllt xdqr xdls xdtrd xdsvd; do ok "ScaLAPACK: $p" passes $p; done
else
  ok "ScaLAPACK's testers # SKIP not installed (scalapack-mpi-test)" true
fi
programs=/usr/lib/$arch/open-coarrays/mpich/bin/OpenCoarrays-2.10.1-tests
programs=$(echo "${programs%-*-tests}"-*-tests)
if [ -d "$programs" ]; then
  for p in allocatable_p2p_event_post co_reduce_test get_with_vector_index strided_sendget teams_coarray_sendget syncimages_status; do
    ok "OpenCoarrays: $p" job -n 8 "$programs/$p"
  done
else
  ok "OpenCoarrays' tests # SKIP not installed (libcoarrays-mpich-dev)" true
fi
if [ -x /usr/bin/nwchem.mpich ]; then
  nwchem() { job -n "$1" nwchem.mpich "$OLDPWD/bench/nwchem.nw" >out 2>&1; awk '/Total SCF energy =/ {scf = $NF} /Total MP2 energy/ {mp2 = $NF} END {printf "%.6f %.6f\n", scf, mp2}' out; }
  one=$(nwchem 1)
  like "NWChem: energies of water" '^-75\.98[0-9]+ -76\.1[0-9]+$' <(echo "$one")
  is "the same with two ranks" "$(nwchem 2)" "$one"
  is "its libraries are ours" "$(library /usr/bin/nwchem.mpich)" "$tmp/p/lib/libmpifort.so.12"
else
  ok "NWChem # SKIP not installed (nwchem-mpich)" true
fi
done_testing
