#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 3600
# Debian's packages: built, looked at by lintian, installed into a fresh root, used there, upgraded under a policy in force
# and a running job, removed and purged without a trace; the services under systemd, in a virtual machine (machine). The
# version before is the same files with a smaller number.
# DEBS=DIRECTORY takes packages that were built before.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
for c in dpkg-buildpackage:dpkg-dev dh:debhelper lintian:lintian mmdebstrap:mmdebstrap unshare:util-linux; do
  command -v "${c%:*}" >/dev/null || skip_all "${c%:*} is not installed (package ${c#*:})"
done
[ "$(id -u)" = 0 ] || skip_all "a fresh root is made by root"
unshare -m mount -t tmpfs none /mnt 2>/dev/null || skip_all "nothing can be mounted here"
[ -z "$(sanitizers)" ] || skip_all "a sanitized build"

version=$(sed -n 's/^VERSION *:= *//p' Makefile)
git status --porcelain >"$tmp/before" 2>/dev/null
if [ -n "${DEBS:-}" ]; then
  mkdir "$tmp/deb" && cp "$DEBS"/*_"$version"_*.deb "$tmp/deb"
else
  ok "the packages are built" packaging/deb "$tmp/deb"
  git status --porcelain >"$tmp/after" 2>/dev/null
  is "nothing is left in the tree" "$(diff "$tmp/before" "$tmp/after")" ""
fi
rm -f "$tmp"/deb/*-dbgsym_*
is "they are" "$(cd "$tmp/deb" && ls ./*.deb | sed 's|^./||; s/_.*//' | LC_ALL=C sort | xargs)" \
  "fabricd fabricd-slurm libmrmpi-dev libmrmpi0 mrmpi-bin mrmpi-doc simfab"
lintian --allow-root "$tmp"/deb/*.deb >"$tmp/lintian" 2>&1
is "lintian finds no error" "$(grep ^E: "$tmp/lintian")" ""

older() { # PACKAGE FILE: the same files, as version 0.0.9
  local d=$tmp/older/$1
  mkdir -p "$d" && dpkg-deb -R "$2" "$d" || return
  sed -i "s/^Version: .*/Version: 0.0.9/; s/(= $version)/(= 0.0.9)/g" "$d/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$d" "$tmp/old/$1_0.0.9.deb" && rm -rf "$d"
}
mkdir "$tmp/old" "$tmp/older"
for f in "$tmp"/deb/*.deb; do
  name=${f##*/}
  older "${name%%_*}" "$f" >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
done

# ---- a fresh root, with the packages' dependencies, MPICH and its bindings beside
root=$tmp/root
sources=$(sed -n '/^URIs: .*debian$/{s/^URIs: //p;q}' /etc/apt/sources.list.d/debian.sources 2>/dev/null)
mmdebstrap --mode=root --variant=minbase --include=ca-certificates,procps,systemd-sysv,dbus,libmpich-dev,mpich,gfortran,pkg-config \
  --customize-hook='mkdir "$1/debs"' --customize-hook="copy-in $tmp/old $tmp/deb /debs" \
  --customize-hook='find "$1" -xdev \( -path "$1/proc" -o -path "$1/sys" -o -path "$1/debs" \) -prune -o -print | sed "s|^$1||" | sort >"$1/debs/before"' \
  --customize-hook='chroot "$1" update-alternatives --get-selections >"$1/debs/alternatives"' \
  --customize-hook='chroot "$1" apt-get install -y --no-install-recommends $(cd "$1" && ls debs/old/*.deb | sed "s|^|/|") >"$1/debs/install.log" 2>&1' \
  "$(. /etc/os-release; echo "$VERSION_CODENAME")" "$root" "${sources:-http://deb.debian.org/debian}" >"$tmp/out" 2>&1 || {
  tail -n 5 "$tmp/out"
  grep -qE '^[0-9]|Unpacking|E: .*dpkg' "$root/debs/install.log" 2>/dev/null || skip_all "no fresh root: is the network there?"
  tail -n 20 "$root/debs/install.log"
}
on_exit 'umount -R "$root/proc" "$root/dev" 2>/dev/null'
inside() { # COMMAND...: in the root, with mounts of its own
  unshare --mount --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" || exit 1
    exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"' "$root" "$@"
}
run() { inside bash -c "$*" >"$tmp/out" 2>&1; } # a line of bash
ok "installed: all are" run 'dpkg -l libmrmpi0 libmrmpi-dev mrmpi-bin fabricd fabricd-slurm simfab mrmpi-doc | grep -c "^ii" | grep -qx 7'
ok "their files are as they were packed" run 'dpkg -V libmrmpi0 libmrmpi-dev mrmpi-bin fabricd fabricd-slurm simfab mrmpi-doc'
cat >"$root/debs/hello.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
/* Ranks 0 and 1 send each other numbered messages until the file of the argument is there, or once. */
int main(int argc, char **argv)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int rank, size, n, bad = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(text, &n);
    for (long count = 0, got; rank < 2 && size > 1;) {
        int last = count && (argc < 2 || (count % 64 == 0 && access(argv[1], F_OK) == 0));

        if (rank == 0) {
            got = last ? -1 : count;
            MPI_Send(&got, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&got, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (last)
                break;
            bad += got != count++;
        } else {
            MPI_Recv(&got, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&got, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
            if (got < 0)
                break;
        }
    }
    if (rank == 0)
        printf("%d ranks of %.5s, %d wrong\n", size, text, bad);
    return MPI_Finalize() || bad;
}
C
run 'cd /tmp && mpicc.mrmpi -o hello /debs/hello.c && mpirun.mrmpi -n 2 ./hello && ./hello'
like "mpicc.mrmpi and mpirun.mrmpi" '^2 ranks of mrmpi, 0 wrong$' "$tmp/out"
like "without the launcher, too" '^1 ranks of mrmpi' "$tmp/out"
run 'cd /tmp && mpicc.mrmpi -mpi-abi -o hello /debs/hello.c && mpirun.mrmpi -n 2 ./hello && ldd ./hello'
like "mpicc.mrmpi -mpi-abi" '^2 ranks of mrmpi, 0 wrong$' "$tmp/out"
like "with the library of the standard's interface" 'libmpi_abi.so.1 => /usr/lib/[^ ]*/mrmpi/libmpi_abi.so.1' "$tmp/out"
cat >"$root/debs/hello.f90" <<'F'
program hello
  use mpi_f08
  integer :: rank, ranks
  call MPI_Init
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Allreduce(1, ranks, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(i0, a)', ranks, ' ranks in Fortran'
  call MPI_Finalize
end program
F
run 'cd /tmp && mpifort.mrmpi -o hello /debs/hello.f90 && mpirun.mrmpi -n 2 ./hello && ldd ./hello'
like "mpifort.mrmpi" '^2 ranks in Fortran$' "$tmp/out"
like "with the library of Fortran's interface" 'libmpifort.so.12 => /usr/lib/[^ ]*/mrmpi/libmpifort.so.12' "$tmp/out"
is "Fortran's header and modules are no programs" "$(find "$root/usr/libexec/mrmpi/fortran" -type f -perm /111)" ""
run 'cd /tmp && mpicc.mpich -o hello /debs/hello.c && mpirun.mrmpi -n 2 ./hello && mpirun.mpich -n 2 ./hello; ldd ./hello | grep mpi'
like "a program of MPICH's under mrrun" '^2 ranks of mrmpi, 0 wrong$' "$tmp/out"
like "and under MPICH, which is as it was" '^2 ranks of MPICH, 0 wrong$' "$tmp/out"
run 'update-alternatives --query mpi; update-alternatives --query mpirun'
is "MPICH is the default" "$(sed -n 's/^Value: //p' "$tmp/out" | xargs)" "/usr/bin/mpicc.mpich /usr/bin/mpirun.mpich"
run 'update-alternatives --set mpi /usr/bin/mpicc.mrmpi && update-alternatives --set mpirun /usr/bin/mpirun.mrmpi &&
  update-alternatives --set mpi-$(gcc -print-multiarch) /usr/include/mrmpi && cd /tmp && mpicc -o hello /debs/hello.c && mpiexec -n 2 ./hello && mpirun -n 1 ./hello &&
  cc -o pc /debs/hello.c $(pkg-config --cflags --libs mpi) && mpirun -n 2 ./pc; man -w mpicc mpirun 2>/dev/null; readlink -f /usr/share/man/man1/mpicc.1.gz /usr/bin/mpiexec /usr/bin/mpif90'
is "with mrmpi chosen mpicc, mpiexec, mpirun and pkg-config's mpi are mrmpi's" "$(grep -c '^[12] ranks of mrmpi, 0 wrong$' "$tmp/out")" 3
is "their pages and the other names, too" "$(tail -n 3 "$tmp/out" | xargs)" "/usr/share/man/man1/mrcc.1.gz /usr/bin/mrrun /usr/bin/mrcc"
ok "what the units start is there" run 'sed -n "s/^ExecStart=\([^ ]*\).*/\1/p" /lib/systemd/system/fabric{d,-slurm}.service | xargs ls -l'
ok "the plugin's script is beside it" run 'test -x /usr/lib/*/mrmpi/fabric-job && test -e /usr/lib/*/mrmpi/mrmpi_fabric.so'
ok "a page names its place" run 'zcat /usr/share/man/man8/fabricd.8.gz | tr -d "\\\\" | grep "^optional /usr/lib/[^ ]*/mrmpi/mrmpi_fabric.so" | cut -d " " -f 2 | xargs test -e'
ok "bash's completions are there" run 'ls /usr/share/bash-completion/completions/{mrrun,fabricctl,simfab}'

# ---- upgrade while a policy is in force and a job runs
cat >"$root/debs/upgrade" <<'SH2'
set -u
cd /tmp
cp /usr/share/mrmpi/policies/simple.yaml "$SIMFAB_DIR/policy.yaml"
on() { simfab exec --real-clock "$1" -- fabricctl -s "$SIMFAB_DIR/fabricd-$1.sock" "${@:2}"; }
start() { simfab exec --real-clock "$1" -- fabricd -c /usr/share/mrmpi/fabricd/simfab.yaml 2>>"$SIMFAB_DIR/$1.log" & echo $! >"$1.pid"; }
up() { local i; for ((i = 0; i < 600; i++)); do on "$1" status >/dev/null 2>&1 && return; sleep 0.1; done; tail "$SIMFAB_DIR/$1.log"; exit 1; }
for h in h1 h2; do start $h; done
for h in h1 h2; do up $h; done
on h1 policy apply "$SIMFAB_DIR/policy.yaml" || exit 1
for ((i = 0; i < 300; i++)); do on h2 status | grep -q 'generation: 1, state: verified' && break; sleep 0.1; done
for h in h1 h2; do on $h job set 4711 urgent --user root; done
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock
mpicc.mrmpi -o hello /debs/hello.c
SIMFAB_CLOCK=real mpirun.mrmpi -n 2 --hosts h1,h2 --job-id 4711 ./hello /tmp/stop >job.out 2>&1 & job=$!
sleep 2
on h1 status | sed 's/^/before: /'
dpkg -i /debs/deb/*.deb >upgrade.log 2>&1 || { tail -n 20 upgrade.log; exit 1; }
dpkg-query -W -f '${Package} ${Version}\n' fabricd libmrmpi0
kill -0 $job && echo "the job runs on"
for h in h1 h2; do kill "$(cat $h.pid)"; done # as the package's script does by systemd
for h in h1 h2; do wait "$(cat $h.pid)"; start $h; up $h; done
for ((i = 0; i < 600; i++)); do on h1 status | grep -q 'generation: 1, state: verified' && break; sleep 0.1; done
on h1 status | sed 's/^/after: /'
on h1 job show 4711 --user root 2>/dev/null | head -n 3 || on h1 job list
on h1 policy verify | sed 's/^/verify: /'
touch stop
wait $job; echo "the job: $?"
cat job.out
mpirun.mrmpi -n 2 --hosts h1,h2 ./hello | sed 's/^/new: /'
for h in h1 h2; do kill "$(cat $h.pid)"; done
SH2
inside simfab run --topology two-hosts-two-rails -- bash /debs/upgrade >"$tmp/out" 2>&1
like "the upgrade is one" '^fabricd '"$version"'$' "$tmp/out"
like "a policy was in force" '^before: .*generation: 1, state: verified' "$tmp/out"
like "the job goes on" '^the job runs on$' "$tmp/out"
like "the daemon of the new version has the policy" '^after: .*generation: 1, state: verified' "$tmp/out"
like "so have the ports" '^verify: verified: ' "$tmp/out"
like "the job ends well" '^the job: 0$' "$tmp/out"
like "without a wrong message" '^2 ranks of mrmpi, 0 wrong$' "$tmp/out"
like "new jobs run" '^new: 2 ranks of mrmpi' "$tmp/out"
[ "$tap_bad" = 0 ] || sed 's/^/# /' "$tmp/out"

# ---- under systemd, in a virtual machine whose file system is this root
cat >"$root/debs/services" <<'SH3'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
pid() { systemctl show -p MainPID --value fabricd; }
packages() { dpkg "$@" >/dpkg.log 2>&1 || cat /dpkg.log; }
packages -P fabricd-slurm fabricd
packages -i /debs/old/fabricd_0.0.9.deb
echo "installed: $(systemctl is-enabled fabricd.service fabricd.socket | xargs), $(systemctl is-active fabricd.service fabricd.socket | xargs)"
before=$(pid)
fabricctl status | sed 's/^/status: /'
packages -i /debs/deb/fabricd_*.deb
echo "upgraded: $(systemctl is-active fabricd.service fabricd.socket | xargs), $([ "$before" != "$(pid)" ] && echo another process)"
busctl --system list | grep -o '^org.mrmpi.Fabric1'
systemctl stop fabricd.service
fabricctl status | sed 's/^/by its socket: /'
systemd-analyze verify --man=no fabricd.service fabricd.socket 2>&1 | sed 's/^/verify: /'
packages -P fabricd
echo "purged: $(systemctl is-active fabricd.service fabricd.socket | xargs), $(ls -d /run/fabricd /etc/fabricd /var/lib/fabricd 2>/dev/null | xargs)."
SH3
tests/packaging/machine "$root" /debs/services 1500 >"$tmp/out" 2>&1
rc=$?
if [ $rc = 77 ]; then
  ok "under systemd # SKIP $(cat "$tmp/out")" true
else
  is "under systemd: all is gone through" $rc 0
  like "the package enables and starts socket and daemon" '^installed: enabled enabled, active active$' "$tmp/out"
  like "fabricctl reaches it" '^status: fabricd: .*role: server' "$tmp/out"
  like "an upgrade starts the new one" '^upgraded: active active, another process$' "$tmp/out"
  like "it is on the system bus" '^org.mrmpi.Fabric1$' "$tmp/out"
  like "its socket starts it" '^by its socket: fabricd: ' "$tmp/out"
  is "systemd likes the units" "$(grep '^verify: ' "$tmp/out")" ""
  like "purged it is not active, and its directories are gone" '^purged: inactive inactive, \.$' "$tmp/out"
fi

# ---- away
run 'mkdir -p /etc/fabricd /var/lib/fabricd && touch /etc/fabricd/policy.yaml /var/lib/fabricd/x && apt-get remove -y libmrmpi0 mrmpi-doc fabricd "libmrmpi*" simfab'
ok "removed: settings and state stay" test -e "$root/etc/fabricd/policy.yaml" -a -e "$root/var/lib/fabricd/x" -a ! -e "$root/usr/bin/fabricd"
ok "purged" run 'dpkg --purge libmrmpi0 libmrmpi-dev mrmpi-bin mrmpi-doc fabricd fabricd-slurm simfab'
find "$root" -xdev \( -path "$root/proc" -o -path "$root/sys" -o -path "$root/debs" \) -prune -o -print | sed "s|^$root||" | sort >"$tmp/now"
is "no trace" "$(comm -13 "$root/debs/before" "$tmp/now" | grep -iE 'mrmpi|mrrun|mrcc|fabric|simfab|libmpi\.so')" ""
is "nothing that was there is gone" "$(comm -23 "$root/debs/before" "$tmp/now" | grep -vE '^/(tmp|run|var/(cache|log|lib/(apt|dpkg)))/|mmdebstrap$|machine-id$|policy-rc\.d$|start-stop-daemon')" ""
run 'update-alternatives --get-selections'
is "the alternatives are MPICH's again" "$(grep -E '^mpi' "$tmp/out")" "$(grep -E '^mpi' "$root/debs/alternatives")"
done_testing
