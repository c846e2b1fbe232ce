#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build systems find an installed mrmpi by the lines that the guide documents: CMake's FindMPI, Meson, pkg-config, Autoconf's
# AX_MPI; in C, C++ and Fortran, and where another MPI is the system's. What they build runs without a word about libraries.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ -z "$(sanitizers)" ] || skip_all "a sanitized build: programs of others are not linked with its runtime"

p=$tmp/prefix lib=$tmp/prefix/lib/x86_64-linux-gnu
make --no-print-directory install BUILD="$BUILD" PREFIX="$p" LIBDIR="$lib" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
home=$p/libexec/mrmpi
languages='c c++'
there() { local c; for c; do command -v "$c" >/dev/null || return; done; } # COMMAND...: all of them
there gfortran && languages="$languages fortran"
mkdir "$tmp/src" && cd "$tmp/src" || exit 2
cat >hello.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("%d ranks\n", size);
    return MPI_Finalize();
}
C
cp hello.c hello.cc
cat >hello.f90 <<'F'
program hello
  use mpi
  integer :: rank, n, err
  call MPI_Init(err)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, err)
  call MPI_Comm_size(MPI_COMM_WORLD, n, err)
  if (rank == 0) print '(I1,A)', n, ' ranks'
  call MPI_Finalize(err)
end program
F
ours() { # PROGRAM: is it linked with this installation, and does it run?
  local linked
  linked=$(ldd "$1" | sed -nE 's/.*libmpi(ch)?\.so\.12 => ([^ ]*) .*/\2/p' | sort -u)
  [ "$(dirname "$linked")" = "$lib" ] || { echo "it is linked with '$linked'"; ldd "$1"; return 1; }
  [ "$("$p/bin/mrrun" -n 2 "$1")" = "2 ranks" ]
}
each() { # TEXT DIRECTORY: programs of all languages
  local l
  for l in $languages; do ok "$1: $l" ours "$2/hello_${l//+/p}"; done
}

# ---- CMake
if there cmake; then
  cat >CMakeLists.txt <<'CM'
cmake_minimum_required(VERSION 3.10)
project(hello LANGUAGES C CXX)
if(FORTRAN)
  enable_language(Fortran)
endif()
find_package(MPI REQUIRED)
add_executable(hello_c hello.c)
target_link_libraries(hello_c MPI::MPI_C)
add_executable(hello_cpp hello.cc)
target_link_libraries(hello_cpp MPI::MPI_CXX)
if(FORTRAN)
  add_executable(hello_fortran hello.f90)
  target_link_libraries(hello_fortran MPI::MPI_Fortran)
endif()
CM
  with=$([[ $languages != *fortran* ]] || echo -DFORTRAN=1)
  ok "CMake: cmake -DMPI_HOME=PREFIX/libexec/mrmpi" cmake -S . -B cm -DMPI_HOME="$home" $with
  ok "CMake builds" cmake --build cm
  each "CMake" cm
  is "CMake: its launcher" "$(sed -n 's/^MPIEXEC_EXECUTABLE:FILEPATH=//p' cm/CMakeCache.txt)" "$home/bin/mpiexec"
  ok "CMake: PATH=PREFIX/libexec/mrmpi/bin:PATH cmake" env PATH="$home/bin:$PATH" cmake -S . -B cm2
  is "CMake takes the library from there" "$(sed -n 's/^MPI_mpi_LIBRARY:FILEPATH=//p' cm2/CMakeCache.txt)" "$lib/libmpi.so"
else
  ok "CMake # SKIP cmake is not installed" true
fi

# ---- Meson
if there meson ninja; then
  mkdir ms-src && cp hello.* ms-src
  {
    echo "project('hello', 'c', 'cpp'$([[ $languages != *fortran* ]] || echo ", 'fortran'"))"
    for l in c:c cpp:cc $([[ $languages != *fortran* ]] || echo fortran:f90); do
      echo "executable('hello_${l%:*}', 'hello.${l#*:}', dependencies: dependency('mpi', language: '${l%:*}', method: 'config-tool'))"
    done
  } >ms-src/meson.build
  ok "Meson: PATH=PREFIX/libexec/mrmpi/bin:PATH meson setup, method: 'config-tool'" env PATH="$home/bin:$PATH" meson setup ms ms-src
  ok "Meson builds" ninja -C ms
  each "Meson" ms
else
  ok "Meson # SKIP meson or ninja is not installed" true
fi

# ---- pkg-config
export PKG_CONFIG_PATH=$lib/pkgconfig
# shellcheck disable=SC2046 # words
ok "pkg-config: cc \$(pkg-config --cflags --libs mrmpi)" cc -o hello_pc hello.c $(pkg-config --cflags --libs mrmpi)
ok "pkg-config: it runs" ours ./hello_pc

# ---- Autoconf
macro=$(ls /usr/share/aclocal/ax_mpi.m4 2>/dev/null)
if [ -n "$macro" ] && there autoconf aclocal; then
  mkdir ac && cp hello.c ac && cd ac || exit 2
  cat >configure.ac <<'AC'
AC_INIT([hello], [1])
AC_PROG_CC
AX_MPI([], [AC_MSG_ERROR([there is no MPI])])
CC=$MPICC
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
AC
  printf 'hello: hello.c\n\t@CC@ -o $@ hello.c @MPILIBS@\n' >Makefile.in
  ok "Autoconf's AX_MPI" sh -c 'aclocal && autoconf'
  ok "AX_MPI: PATH=PREFIX/libexec/mrmpi/bin:PATH ./configure" env PATH="$home/bin:$PATH" ./configure
  ok "AX_MPI builds" env PATH="$home/bin:$PATH" make
  ok "AX_MPI: it runs" ours ./hello
  ok "AX_MPI: ./configure MPICC=PREFIX/bin/mrcc" ./configure MPICC="$p/bin/mrcc"
  like "AX_MPI takes it" "^CC='?$p/bin/mrcc" config.log
else
  ok "AX_MPI # SKIP autoconf, automake or autoconf-archive is not installed" true
fi
done_testing
