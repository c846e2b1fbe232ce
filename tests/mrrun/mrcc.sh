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

include=$(mrcc -compile-info)
ok "-compile-info names mpi.h's directory" test -e "${include#-I}/mpi.h"
is "-show prints the command" "$(mrcc -show -c x.c)" "cc $include -c x.c"
like "-show of a link has the library" "^cc $include x.o -L.* -lmpi$" <(mrcc -show x.o)
is "MRMPI_CC is the compiler" "$(MRMPI_CC=clang mrcc -show -c x.c)" "clang $include -c x.c"
printf '#!/bin/sh\nprintf "[%%s]" "$@"\n' >echoer && chmod +x echoer
is "arguments with blanks and quotes stay whole" "$(mrcc -cc=./echoer 'a b' '-DX="y  z"' -c)" "[$include][a b][-DX=\"y  z\"][-c]"
mrcc 2>err
is "no files: 1" $? 1
mkdir -p lonely/bin && cp "$BUILD/bin/mrcc" lonely/bin/
lonely/bin/mrcc -c ring.c 2>err
is "no header: 1" $? 1
like "and said where it looked" "^mrcc: there is no mpi.h in any of: .*lonely/bin/../include" err
done_testing
