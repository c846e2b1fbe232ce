#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrcc compiles programs that mrrun runs; the wrappers find header and library by themselves.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}

cat >"$tmp/ring.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, token = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        token = 1;
        MPI_Send(&token, 1, MPI_INT, 1 % size, 7, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("token %d of %d\n", token, size);
    } else {
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
C
cat >"$tmp/hello.cc" <<'C'
#include <mpi.h>
#include <iostream>
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::cout << "one of " << size << std::endl;
    MPI_Finalize();
}
C
cd "$tmp" || exit 1
san=$(sanitizers)
san=${san:+-fsanitize=$san}
ok "compile and link in one step" mrcc $san -Wall -Werror -o ring ring.c
is "the program runs with 4 ranks" "$(timeout 60 mrrun -n 4 ./ring)" "token 4 of 4"
ok "it is linked with the ABI library" sh -c "readelf -d ring | grep -q 'NEEDED.*libmpi.so.12'"
is "and finds it without mrrun" "$(timeout 60 ./ring; echo $?)" "token 1 of 1
0"
ok "compile, then link" sh -c "mrcc $san -c ring.c && mrcc $san -o ring2 ring.o"
is "the result runs" "$(timeout 60 mrrun -n 2 ./ring2)" "token 2 of 2"
ok "C++" mrc++ $san -Wall -Werror -o hello hello.cc
is "runs" "$(timeout 60 mrrun -n 2 ./hello | uniq -c | tr -s ' ')" " 2 one of 2"

ok "-mpi-abi: for the binary interface of MPI 5.0" mrcc -mpi-abi $san -Wall -Werror -o ring-abi ring.c
ok "the program is linked with its library" sh -c "readelf -d ring-abi | grep -q 'NEEDED.*libmpi_abi.so.1'"
is "and runs" "$(timeout 60 mrrun -n 3 ./ring-abi)" "token 3 of 3"
is "options for it" "$(mrcc -mpi-abi -compile-info) $(mrcc -mpi-abi -showme:libs)" "$(mrcc -compile-info)/standard mpi_abi"
ok "C++, too" mrc++ -mpi-abi $san -Wall -Werror -o hello-abi hello.cc
MRMPI_LANG=fortran mrcc -mpi-abi -show x.f90 >out 2>err
is "not Fortran: 1" $? 1
like "with a reason" '^mrcc: -mpi-abi is for C and C\+\+' err

include=$(mrcc -compile-info)
ok "-compile-info names mpi.h's directory" test -e "${include#-I}/mpi.h"
is "-show prints the command" "$(mrcc -show -c x.c)" "cc $include -c x.c"
like "-show of a link has the library" "^cc $include x.o -L.* -lmpi$" <(mrcc -show x.o)
is "MRMPI_CC is the compiler" "$(MRMPI_CC=clang mrcc -show -c x.c)" "clang $include -c x.c"
printf '#!/bin/sh\nprintf "[%%s]" "$@"\n' >echoer && chmod +x echoer
is "arguments with blanks and quotes stay whole" "$(mrcc -cc=./echoer 'a b' '-DX="y  z"' -c)" "[$include][a b][-DX=\"y  z\"][-c]"
mrcc 2>err
is "no files: 1" $? 1
ok "a question to the compiler links nothing" mrcc -v
# Under the names that other MPIs give them, in a folder of their own
other=$BUILD/libexec/mrmpi/bin
ok "mpicc" "$other/mpicc" $san -o ring3 ring.c
is "what it makes runs by mpirun" "$(timeout 60 "$other/mpirun" -np 3 ./ring3)" "token 3 of 3"
ok "mpicxx" "$other/mpicxx" $san -o hello2 hello.cc
is "what it makes runs by mpiexec" "$(timeout 60 "$other/mpiexec" -n 2 ./hello2 | uniq -c | tr -s ' ')" " 2 one of 2"
link=$(mrcc -link-info)
is "MPICH's -compile_info and -link_info are commands" "$("$other/mpicc" -compile_info); $("$other/mpic++" -link_info)" \
    "cc $include; c++ $link"
is "Open MPI's -showme:compile and -showme:link are options" "$("$other/mpicc" -showme:compile); $("$other/mpicc" --showme:link)" \
    "$include; $link"
is "-showme is -show" "$("$other/mpicc" -showme x.c)" "cc $include x.c $link"
is "directories and libraries" "$(for s in incdirs libdirs libs; do "$other/mpicc" -showme:$s; done | tr '\n' ' ')" \
    "${include#-I} $(sed 's/^-L\([^ ]*\) .*/\1/' <<<"$link") mpi "
is "the version, as Open MPI's wrappers say it" "$("$other/mpic++" -showme:version)" \
    "mpic++: mrmpi $(mrrun --version | sed 's/mrrun //') (Language: c++)"
"$other/mpicc" -showme:help 2>err
is "and nothing else" "$? $(cat err)" "1 mpicc: -showme:help: only compile, link, incdirs, libdirs, libs and version can be shown"
MRMPI_FC=no-such-compiler "$other/mpif90" x.f90 2>err
is "no Fortran compiler: 1" "$? $(cat err)" \
    "1 mpif90: there is no Fortran compiler 'no-such-compiler' (Debian: gfortran; MRMPI_FC names another)"
if command -v gfortran >/dev/null; then
    MRMPI_MPICH=$tmp/none "$other/mpifort" x.f90 2>err
    is "no modules of MPICH's: 1" $? 1
    is "and where" "$(cat err)" \
        "mpifort: there is no mpi.mod in any of: $tmp/none/include (MRMPI_MPICH is to be the prefix of an MPICH with Fortran's modules)"
    MRMPI_MODULES=$tmp/none "$other/mpifort" x.f90 2>err
    is "no modules in MRMPI_MODULES: 1" $? 1
    like "and where they are made" "^mpifort: there is no mpi.mod in any of: $tmp/none \(.*mrcc\(1\)" err
fi
if [ -z "$san" ] && command -v gfortran >/dev/null; then
    cat >ranks.f90 <<'F'
program ranks
  use mpi
  integer :: n, err
  call MPI_Init(err)
  call MPI_Comm_size(MPI_COMM_WORLD, n, err)
  print '(I1)', n
  call MPI_Finalize(err)
end program
F
    for f in mpifort mpif77 mpif90; do
        ok "$f" "$other/$f" -o ranks ranks.f90
    done
    is "Fortran's program runs" "$(timeout 60 mrrun -n 2 ./ranks | tr '\n' ' ')" "2 2 "
    is "without mrrun it has mrmpi's library, too, and no other" \
        "$(ldd ./ranks | sed -nE 's/.*libmpi(ch)?.so.12 => ([^ ]*) .*/\2/p')" "$(sed 's/^-L\([^ ]*\) .*/\1/' <<<"$link")/libmpi.so.12"
    is "and Fortran's" "$(ldd ./ranks | sed -nE 's/.*libmpi(ch)?fort.so.12 => ([^ ]*) .*/\2/p')" \
        "$(sed 's/^-L\([^ ]*\) .*/\1/' <<<"$link")/libmpifort.so.12"
    # modules that another version of the compiler made, as mrcc(1) tells
    mkdir modules && (cd modules && for m in mpi mpi_f08; do gfortran -fsyntax-only "$BUILD/libexec/mrmpi/fortran/$m.f90"; done)
    ok "modules elsewhere" env MRMPI_MODULES="$tmp/modules" "$other/mpifort" -o ranks2 ranks.f90
    like "are those that the compiler reads" "-I$tmp/modules -I.*libexec/mrmpi/fortran " <(MRMPI_MODULES=$tmp/modules "$other/mpifort" -show ranks.f90)
    theirs=$(ls /usr/include/*/mpich/mpi.mod 2>/dev/null | head -n 1)
    if [ -n "$theirs" ]; then
        mkdir mpich && ln -s "${theirs%/*}" mpich/include && ln -s "/usr/lib/$(gcc -print-multiarch)" mpich/lib
        ok "MPICH's modules, by MRMPI_MPICH" env MRMPI_MPICH="$tmp/mpich" "$other/mpifort" -o ranks3 ranks.f90
        is "with them runs, too" "$(timeout 60 mrrun -n 2 ./ranks3 | tr '\n' ' ')" "2 2 "
    fi
fi
mkdir -p lonely/bin && cp "$BUILD/bin/mrcc" lonely/bin/
lonely/bin/mrcc -c ring.c 2>err
is "no header: 1" $? 1
like "and said where it looked" "^mrcc: there is no mpi.h in any of: .*lonely/bin/../libexec/mrmpi/include" err
done_testing
