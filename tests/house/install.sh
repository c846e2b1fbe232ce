#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `make install` gives something that compiles, starts and runs programs from there, wherever PREFIX and LIBDIR are; what is
# text says where that is; `make uninstall` takes it away.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

# built with sanitizers: `make` must know it, and what is linked with the library needs the runtime
san=$(sanitizers)
make_it() { make --no-print-directory "$1" SAN="$san" BUILD="$BUILD" "${@:2}"; }
version=$(mrrun --version | sed 's/^mrrun //')
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
files() { # of an installation: all but what stands in directories that are the system's
  (cd "$1" && find . ! -type d | sort)
}

# ---- into a staging directory, and run from there
ok "make install" make_it install DESTDIR="$tmp/root" PREFIX=/srv/mrmpi
p=$tmp/root/srv/mrmpi
for f in bin/{mrrun,mrcc,mrc++,simfab,simfab-engine,fabricd,fabricctl} libexec/mrmpi/bin/{mpiexec,mpirun,mpicc,mpicxx,mpic++,mpiCC,mpifort,mpif77,mpif90} \
  libexec/mrmpi/{fabric-job,lib/{libmpi,libmpi_abi}.so,include/{,standard/}mpi.h,fortran/mpif.h} lib/{libmpi.so.12,libmpich.so.12,libmpifort.so.12,libmpichfort.so.12,libmpi_abi.so.1,libmrmpi.so,libsimfab.so,libsimfab-tsc.so,mrmpi_fabric.so,fabric-job} include/mrmpi/mpi.h \
  share/mrmpi/{topologies/two-hosts-two-rails.net,models/sdr-pcix.yaml,policies/simple.yaml,fabricd/fabricd.yaml,policy.schema.json} \
  share/man/{man1/mrrun.1,man5/org.mrmpi.Fabric1.5,man7/libmrmpi.7} share/dbus-1/{system.d/org.mrmpi.Fabric1.conf,system-services/org.mrmpi.Fabric1.service} \
  share/polkit-1/actions/org.mrmpi.fabric1.policy lib/systemd/{system/fabricd.service,system/fabricd.socket,system/fabric-slurm.service,catalog/mrmpi.catalog} \
  lib/tmpfiles.d/mrmpi.conf lib/pkgconfig/{mrmpi,mrmpi-abi,mrmpi-fort}.pc share/bash-completion/completions/{mrrun,fabricctl,simfab} share/modulefiles/mrmpi/"$version"; do
  test -e "$p/$f" || echo "$f"
done >"$tmp/missing"
is "all is there" "$(cat "$tmp/missing")" ""
is "no header is where compilers look without being asked" "$(ls "$p/include")" mrmpi
is "the places of programs and libraries are the only ones of PREFIX that text names" \
  "$(grep -rIohE '(/usr/local|/srv/mrmpi)/[^ ,:;"'"'"'}]*' "$p"/{lib,share,libexec} | sort -u | grep -vE '^/srv/mrmpi/(bin/fabricd|lib|lib/mrmpi_fabric\.so|libexec/mrmpi/fabric\\?-job|libexec/mrmpi/fortran/mpi(_f08)?\.f90|share/mrmpi/policy\.schema\.json)$|^/usr/local/bin$')" ""
is "nothing is left to fill in" "$(grep -rIlE '@[A-Z]+@' "$p")" ""
ok "mrcc of the installation compiles" "$p/bin/mrcc" ${san:+"-fsanitize=$san"} -o "$tmp/hello" "$tmp/hello.c"
"$p/bin/mrrun" -n 3 "$tmp/hello" >"$tmp/out" 2>&1
like "mrrun of the installation runs it" '^3 ranks, sum 3$' "$tmp/out"
# shellcheck disable=SC2046 # options
[ -n "$san" ] || gcc $(PKG_CONFIG_PATH=$p/lib/pkgconfig pkg-config --define-variable=prefix="$p" --define-variable=libdir="$p/lib" --cflags mrmpi-abi) \
  -o "$tmp/hello-abi" "$tmp/hello.c" -L "$p/lib" -lmpi_abi
[ -z "$san" ] || "$p/bin/mrcc" -mpi-abi "-fsanitize=$san" -o "$tmp/hello-abi" "$tmp/hello.c"
"$p/bin/mrrun" -n 3 "$tmp/hello-abi" >"$tmp/out" 2>&1
like "and a program for the binary interface of MPI 5.0, beside it" '^3 ranks, sum 3$' "$tmp/out"
(
  PATH=$p/libexec/mrmpi/bin:$PATH
  mpicc ${san:+"-fsanitize=$san"} -o "$tmp/hello2" "$tmp/hello.c" && mpirun -np 2 "$tmp/hello2" : -np 1 "$tmp/hello2"
) >"$tmp/out" 2>&1
like "mpicc and mpirun are in front of PATH" '^3 ranks, sum 3$' "$tmp/out"
"$p/bin/simfab" run --topology two-hosts-two-rails -- "$p/bin/mrrun" -n 2 "$tmp/hello" >"$tmp/out" 2>&1
like "and inside an installed simfab" '^2 ranks, sum 1$' "$tmp/out"
SIMFAB_TSC=patch "$p/bin/simfab" run --topology two-hosts-two-rails -- simfab exec h1 -- "$BUILD/tests/simfab/tsc_reads" >"$tmp/out" 2>&1
like "which finds what it patches the time stamp counter with" '^the counter: virtual' "$tmp/out"
touch "$p/lib/of-others"
ok "make uninstall" make_it uninstall DESTDIR="$tmp/root" PREFIX=/srv/mrmpi
is "takes away all of it, and nothing else" "$(cd "$tmp/root" && find . | sort | xargs)" ". ./srv ./srv/mrmpi ./srv/mrmpi/lib ./srv/mrmpi/lib/of-others"

# ---- LIBDIR of a distribution; a sign in a path is one, not the tools' that fill paths in
p="$tmp/a&b/usr" lib="$tmp/a&b/usr/lib/x86_64-linux-gnu"
ok "make install where libraries are in a directory of the architecture" make_it install PREFIX="$p" LIBDIR="$lib"
is "lib has no library" "$(ls "$p/lib")" "$(printf 'systemd\ntmpfiles.d\nx86_64-linux-gnu')"
"$p/bin/mrrun" -n 2 "$tmp/hello" >"$tmp/out" 2>&1 # linked with the library that is gone
like "mrrun finds the library there" '^2 ranks, sum 1$' "$tmp/out"
if [ -z "$san" ] && command -v mpicc.mpich >/dev/null && mpicc.mpich -o "$tmp/mpich" "$tmp/hello.c" 2>"$tmp/err"; then
  "$p/bin/mrrun" -n 2 "$tmp/mpich" >"$tmp/out" 2>&1
  like "also for a program that is linked with MPICH" '^2 ranks, sum 1$' "$tmp/out"
else
  ok "also for a program that is linked with MPICH # SKIP no mpicc.mpich here, or a sanitized build" true
fi
"$p/bin/simfab" run --topology two-hosts-two-rails -- mrrun -n 2 "$tmp/hello" >"$tmp/out" 2>&1
like "simfab does" '^2 ranks, sum 1$' "$tmp/out"
mkdir "$tmp/a blank" && cp -r "$p" "$tmp/a blank/"
not_ok "which refuses a path that cannot be preloaded" "$tmp/a blank/usr/bin/simfab" run --topology two-hosts-two-rails -- true
like "and says why" '^simfab: .*/a blank/usr/.*libsimfab.so: programs cannot be made to load a file whose path has a blank or a colon' "$tmp/.tap"
is "mrcc does" "$("$p/bin/mrcc" -showme:libdirs; "$p/bin/mrcc" -showme:incdirs)" "$lib
$p/include/mrmpi"
is "pkg-config does" "$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --variable=libdir mrmpi) $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --modversion mrmpi)" "$lib $version"
mkdir "$tmp/fakes"
printf '#!/bin/sh\necho "$0 $*"\n' >"$tmp/fakes/fabricctl"
chmod +x "$tmp/fakes/fabricctl"
cp "$p/bin/fabricctl" "$tmp/fabricctl" && cp "$tmp/fakes/fabricctl" "$p/bin/fabricctl"
is "the script for Slurm, beside the plugin, calls its own fabricctl" \
  "$(SLURM_JOB_RESTART_COUNT=0 PATH=$tmp/fakes:$PATH "$lib/fabric-job" end 4711)" "$p/libexec/mrmpi/../../bin/fabricctl job del 4711 --run 0"
cp "$tmp/fabricctl" "$p/bin/fabricctl"
printf '#!/bin/sh\necho "the script: $*"\n' >"$p/libexec/mrmpi/fabric-job"
like "and fabricctl its own script" '^the script: cluster 4711 urgent' <("$p/bin/fabricctl" job set 4711 urgent --cluster 2>&1)
like "the unit starts the script" "^ExecStart=$p/libexec/mrmpi/fabric-job watch$" "$p/lib/systemd/system/fabric-slurm.service"
like "fabricd(8) names the plugin" "^optional $(sed 's/-/\\\\-/g' <<<"$lib")/mrmpi_fabric.so$" "$p/share/man/man8/fabricd.8"
like "mrmpi-policy(5) names the schema" "=$(sed 's/-/\\\\-/g' <<<"$p")/share/mrmpi/policy.schema.json$" "$p/share/man/man5/mrmpi-policy.5"
ok "which is there" test -e "$p/share/mrmpi/policy.schema.json"
ok "make uninstall there" make_it uninstall PREFIX="$p" LIBDIR="$lib"
is "leaves no file" "$(files "$tmp/a&b")" ""

# ---- PREFIX=/usr beside Open MPI: no program gets the header of one and the library of the other. A root for the compiler:
# the system's files, with Open MPI's libmpi.so as -lmpi
triplet=$(gcc -print-multiarch 2>/dev/null)
theirs=/usr/lib/$triplet/libmpi.so.40 their_header=/usr/lib/$triplet/openmpi/include
if [ -z "$san" ] && [ -n "$triplet" ] && [ -e "$theirs" ] && [ -e "$their_header/mpi.h" ]; then
  sys=$tmp/sys
  mkdir -p "$sys/usr/include" "$sys/usr/lib/$triplet"
  ln -s /usr/include/* "$sys/usr/include"
  ln -s /usr/lib/"$triplet"/* "$sys/usr/lib/$triplet"
  ln -s usr/lib "$sys/lib"
  ln -s /usr/lib64 "$sys/lib64"
  ln -sf "$theirs" "$sys/usr/lib/$triplet/libmpi.so"
  by() { # COMPILER...: whose header and whose library a program of hello.c gets
    "$@" -o "$tmp/by" -H "$tmp/hello.c" -lmpi 2>"$tmp/out" || { grep -m 1 -oE 'fatal error: .*' "$tmp/out"; return; }
    echo "$(grep -oE '(mrmpi|openmpi/include|usr/include)/mpi\.h$' "$tmp/out" | head -n 1) $(readelf -d "$tmp/by" | sed -nE 's/.*\[(libmpi(ch)?\.so[^]]*)\]/\1/p' | xargs)"
  }
  ok "make install PREFIX=/usr beside Open MPI" make_it install DESTDIR="$sys" PREFIX=/usr
  is "gcc hello.c -lmpi finds no header" "$(by gcc --sysroot="$sys")" "fatal error: mpi.h: No such file or directory"
  is "with Open MPI's header it gets Open MPI's library" "$(by gcc --sysroot="$sys" -I "$their_header")" "openmpi/include/mpi.h libmpi.so.40"
  is "mrcc takes ours, both" "$(by "$sys/usr/bin/mrcc")" "mrmpi/mpi.h libmpi.so.12"
  cp "$sys/usr/include/mrmpi/mpi.h" "$sys/usr/include/mpi.h"
  is "a header of ours in include/ itself would go with Open MPI's library" "$(by gcc --sysroot="$sys")" "usr/include/mpi.h libmpi.so.40"
else
  ok "PREFIX=/usr beside Open MPI # SKIP no libopenmpi-dev here, or a sanitized build" true
fi

# ---- LIBDIR anywhere
ok "make install where LIBDIR is not below PREFIX" make_it install PREFIX="$tmp/p" LIBDIR="$tmp/far/away"
"$tmp/p/bin/mrrun" -n 2 "$tmp/hello" >"$tmp/out" 2>&1
like "mrrun finds the library" '^2 ranks, sum 1$' "$tmp/out"
if [ -r /usr/share/modules/init/bash ]; then
  is "module load" "$(bash -c '. /usr/share/modules/init/bash; module use "$0/share/modulefiles"; module load mrmpi; command -v mpicc mrrun; echo "$LD_LIBRARY_PATH"' "$tmp/p")" \
    "$(printf '%s\n' "$tmp/p/libexec/mrmpi/bin/mpicc" "$tmp/p/bin/mrrun" "$tmp/far/away")"
else
  ok "module load # SKIP no environment-modules here" true
fi
ok "make uninstall there, too" make_it uninstall PREFIX="$tmp/p" LIBDIR="$tmp/far/away"
is "no file, no directory below" "$(find "$tmp/p" "$tmp/far" -printf "%p ")" "$tmp/p $tmp/far $tmp/far/away "
make_it install PREFIX=relative >"$tmp/out" 2>&1
like "a relative PREFIX is refused" "PREFIX must be an absolute directory, not 'relative'" "$tmp/out"
done_testing
