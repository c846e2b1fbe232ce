#!/usr/bin/env bash
# `make install` into a fresh directory gives something that compiles, starts and runs programs from there.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

# built with sanitizers: `make` must know it, and what is linked with the library needs the runtime
san=$(sanitizers)
ok "make install" make --no-print-directory install SAN="$san" DESTDIR="$tmp/root" PREFIX=/opt/mrmpi BUILD="$BUILD"
p=$tmp/root/opt/mrmpi
for f in bin/mrrun bin/mrcc libexec/mrmpi/bin/{mpiexec,mpirun,mpicc,mpicxx,mpifort,mpif77,mpif90} bin/simfab bin/fabricd bin/fabricctl lib/libmpi.so.12 lib/libmpich.so.12 lib/libmrmpi.so lib/libsimfab.so lib/libsimfab-tsc.so include/mpi.h \
  share/mrmpi/topologies/two-hosts-two-rails.net share/mrmpi/models/sdr-pcix.yaml share/mrmpi/policy.schema.json share/man/man1/mrrun.1 share/man/man5/org.mrmpi.Fabric1.5 share/dbus-1/system.d/org.mrmpi.Fabric1.conf \
  share/dbus-1/system-services/org.mrmpi.Fabric1.service share/polkit-1/actions/org.mrmpi.fabric1.policy lib/mrmpi_fabric.so lib/fabric-job lib/systemd/system/fabricd.service lib/systemd/system/fabricd.socket lib/systemd/catalog/mrmpi.catalog lib/tmpfiles.d/mrmpi.conf lib/pkgconfig/mrmpi.pc; do
  ok "$f is installed" test -e "$p/$f"
done
cat >"$tmp/hello.c" <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, sum %d\n", size, sum);
    return MPI_Finalize();
}
C
ok "mrcc of the installation compiles" "$p/bin/mrcc" ${san:+"-fsanitize=$san"} -o "$tmp/hello" "$tmp/hello.c"
"$p/bin/mrrun" -n 3 "$tmp/hello" >"$tmp/out" 2>&1
like "mrrun of the installation runs it" '^3 ranks, sum 3$' "$tmp/out"
PATH=$p/libexec/mrmpi/bin:$PATH
ok "its mpicc is in front of PATH" mpicc ${san:+"-fsanitize=$san"} -o "$tmp/hello2" "$tmp/hello.c"
mpirun -np 2 "$tmp/hello2" : -np 1 "$tmp/hello2" >"$tmp/out" 2>&1
like "so is its mpirun" '^3 ranks, sum 3$' "$tmp/out"
"$p/bin/simfab" run --topology two-hosts-two-rails -- "$p/bin/mrrun" -n 2 "$tmp/hello" >"$tmp/out" 2>&1
like "and inside an installed simfab" '^2 ranks, sum 1$' "$tmp/out"
SIMFAB_TSC=patch "$p/bin/simfab" run --topology two-hosts-two-rails -- simfab exec h1 -- "$BUILD/tests/simfab/tsc_reads" >"$tmp/out" 2>&1
like "which finds what it patches the time stamp counter with" '^the counter: virtual' "$tmp/out"
done_testing
