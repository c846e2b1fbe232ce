#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI_Comm_spawn of 1 and of 64 processes by one process on this host, from the call to its return at the parent, beside
# Debian's MPICH and Open MPI, turn by turn: medians of SPAWN_ROUNDS in each of RUNS runs, ms. Then, of 64 ranks under
# mrrun --recover, MPIX_Comm_agree beside three MPI_Allreduce of an int (medians, ms), and MPIX_Comm_shrink after the
# death of a rank (the slowest rank, ms): on this host, and on two simulated ones in their time. Messages between the
# process and one that it has spawned: latency of 8 bytes (us), bandwidth of 64 KiB (GB/s), medians, beside the same two.
# Last, how soon a rank that waits for another knows of its death (recover told, 7 deaths in each of RUNS runs, the latest,
# ms of real time): of mrrun itself and of an agent of mrrun, on a host and on two.
# SPAWN_PARTS: spawn messages agree simulated told, or some of them; SPAWN_RANKS. A limit that is passed is told, and is exit
# status 1: 50 ms for one process, 1 s for 64, agree no longer than the three, 20 ms to shrink (both: simulated, where a rank has
# a core), 10 ms to know of a death on this host, 100 ms between hosts (both: on a quiet machine).
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=3}" "${SPAWN_ROUNDS:=5}" "${SPAWN_RANKS:=1 64}" "${SPAWN_PARTS:=spawn messages agree simulated told}"
export PATH=$BUILD/bin:/usr/sbin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
cd "$(dirname "$0")" || exit 1
for program in mpicc.mpich mpicc.openmpi mpiexec.hydra mpirun.openmpi; do
  command -v $program >/dev/null || { echo "bench/spawn.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/spawn.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    char *child[] = {"child", NULL};
    MPI_Comm inter;
    MPI_Init(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "child")) {
        MPI_Comm_get_parent(&inter);
        MPI_Comm_disconnect(&inter);
    } else {
        for (int i = 0; i < atoi(argv[2]); i++) {
            double begin = MPI_Wtime(), end;
            MPI_Comm_spawn(argv[0], child, atoi(argv[1]), MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
            end = MPI_Wtime();
            MPI_Comm_disconnect(&inter);
            printf("%.3f\n", (end - begin) * 1e3);
        }
    }
    MPI_Finalize();
    return 0;
}
C
cat >"$tmp/messages.c" <<'C'
#include <mpi.h>
#include <stdio.h>
enum { SHORT = 2000, ROUNDS = 7, LONG = 65536, WINDOW = 32, WINDOWS = 40 };
static char buf[WINDOW][LONG];
int main(int argc, char **argv)
{
    char *child[] = {"child", NULL};
    MPI_Comm inter;
    MPI_Request r[WINDOW];
    MPI_Init(&argc, &argv);
    if (argc > 1)
        MPI_Comm_get_parent(&inter);
    else
        MPI_Comm_spawn(argv[0], child, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    for (int k = 0; k < ROUNDS; k++) {
        double begin = MPI_Wtime(), trip;
        for (int i = 0; i < SHORT; i++) {
            if (argc == 1)
                MPI_Send(buf, 8, MPI_BYTE, 0, 0, inter);
            MPI_Recv(buf, 8, MPI_BYTE, 0, 0, inter, MPI_STATUS_IGNORE);
            if (argc > 1)
                MPI_Send(buf, 8, MPI_BYTE, 0, 0, inter);
        }
        trip = (MPI_Wtime() - begin) / SHORT / 2;
        begin = MPI_Wtime();
        for (int w = 0; w < WINDOWS; w++) {
            for (int i = 0; i < WINDOW; i++)
                if (argc == 1)
                    MPI_Isend(buf[i], LONG, MPI_BYTE, 0, 1, inter, &r[i]);
                else
                    MPI_Irecv(buf[i], LONG, MPI_BYTE, 0, 1, inter, &r[i]);
            MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
        }
        if (argc == 1) {
            MPI_Recv(buf, 1, MPI_BYTE, 0, 2, inter, MPI_STATUS_IGNORE);
            printf("%.3f %.3f\n", trip * 1e6, (double)WINDOW * WINDOWS * LONG / (MPI_Wtime() - begin) / 1e9);
        } else {
            MPI_Send(buf, 1, MPI_BYTE, 0, 2, inter);
        }
    }
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
}
C
cat >"$tmp/agree.c" <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
enum { ROUNDS = 31 };
static int by_size(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}
int main(int argc, char **argv)
{
    int rank, size, flag = 1, sum;
    double agree[ROUNDS], reduce[ROUNDS], begin, took, most;
    MPI_Comm alive;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
        agree[i] = MPI_Wtime() - begin;
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (int k = 0; k < 3; k++)
            MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        reduce[i] = MPI_Wtime() - begin;
    }
    qsort(agree, ROUNDS, sizeof(*agree), by_size);
    qsort(reduce, ROUNDS, sizeof(*reduce), by_size);
    if (rank == size - 1)
        raise(SIGKILL);
    while (MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS)
        ;
    begin = MPI_Wtime();
    MPIX_Comm_shrink(MPI_COMM_WORLD, &alive);
    took = MPI_Wtime() - begin;
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, alive);
    if (rank == 0)
        printf("%.3f %.3f %.3f\n", agree[ROUNDS / 2] * 1e3, reduce[ROUNDS / 2] * 1e3, most * 1e3);
    MPI_Comm_free(&alive);
    MPI_Finalize();
    return 0;
}
C
for mpi in mpich openmpi; do
  for part in spawn messages; do mpicc.$mpi -O2 -w -o "$tmp/$part.$mpi" "$tmp/$part.c" || exit 1; done
done
mpicc.mpich -O2 -o "$tmp/agree" "$tmp/agree.c" || exit 1
bad=0
wanted() { [[ " $SPAWN_PARTS " == *" $1 "* ]]; }
median() { sort -g "$1" 2>/dev/null | awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : "-"}'; }
limit() { # FIGURE LIMIT WORDS
  awk -v a="$1" -v b="$2" 'BEGIN {exit !(a + 0 > 0 && a + 0 <= b + 0)}' || { echo "limit: $3: $1, not up to $2"; bad=1; }
}

once() { # mrmpi|mpich|openmpi spawn|messages WORDS...
  local start
  case $1 in
    mrmpi) start=(mrrun -n 1 "$tmp/$2.mpich") ;;
    mpich) start=(mpiexec.hydra -n 1 "$tmp/$2.mpich") ;;
    openmpi) start=(mpirun.openmpi --oversubscribe --mca pml ob1 --mca btl vader,self,tcp -n 1 "$tmp/$2.openmpi") ;;
  esac
  timeout 180 "${start[@]}" "${@:3}" >"$tmp/out" 2>"$tmp/err" </dev/null ||
    { echo "($*: $(head -n 1 "$tmp/err"))" >&2; return 1; }
  cat "$tmp/out" >>"$tmp/times.$1"
}
if wanted spawn; then
  printf '%9s %9s %9s %9s\n' processes mrmpi MPICH "Open MPI"
  for n in $SPAWN_RANKS; do
    rm -f "$tmp"/times.*
    for ((i = 0; i < RUNS; i++)); do for mpi in mrmpi mpich openmpi; do once $mpi spawn "$n" "$SPAWN_ROUNDS"; done; done
    printf '%9d %9s %9s %9s\n' "$n" "$(median "$tmp/times.mrmpi")" "$(median "$tmp/times.mpich")" "$(median "$tmp/times.openmpi")"
    limit "$(median "$tmp/times.mrmpi")" "$([ "$n" -eq 1 ] && echo 50 || echo 1000)" "spawn of $n, ms"
  done
fi

column() { cut -d' ' -f"$2" "$tmp/times.$1" >"$tmp/column" 2>/dev/null; median "$tmp/column"; }
if wanted messages; then
  printf '%15s %9s %9s %9s\n' "between jobs" mrmpi MPICH "Open MPI"
  rm -f "$tmp"/times.*
  for ((i = 0; i < RUNS; i++)); do for mpi in mrmpi mpich openmpi; do once $mpi messages; done; done
  printf '%15s %9s %9s %9s\n' "8 bytes, us" "$(column mrmpi 1)" "$(column mpich 1)" "$(column openmpi 1)"
  printf '%15s %9s %9s %9s\n' "64 KiB, GB/s" "$(column mrmpi 2)" "$(column mpich 2)" "$(column openmpi 2)"
fi

agree() { # WORDS...: mrrun and its options
  timeout 300 "$@" --recover "$tmp/agree" >"$tmp/out" 2>"$tmp/err" </dev/null || { head -n 3 "$tmp/err"; bad=1; }
  read -r a r s < <(grep -E '^[0-9.]+ [0-9.]+ [0-9.]+$' "$tmp/out")
}
row() { printf '%22s %9s %16s %9s\n' "$1" "${a:--}" "${r:--}" "${s:--}"; }
wanted agree || wanted simulated && printf '%22s %9s %16s %9s\n' "64 ranks" agree "three allreduce" shrink
if wanted agree; then
  agree mrrun -n 64
  row "on this host"
fi
if wanted simulated; then
  agree simfab run --topology ../etc/topologies/two-hosts-two-rails.net --model hdr -- mrrun -n 64
  row "on two simulated hosts"
  limit "${a:-0}" "${r:-0}" "agree, ms (three allreduce)"
  limit "${s:-0}" 20 "shrink, ms"
fi

told() { # WORDS...: mrrun and its options
  rm -f "$tmp/told"
  for ((i = 0; i < RUNS; i++)); do
    timeout 100 "$@" --recover "$BUILD/tests/mpi/recover" told >"$tmp/out" 2>"$tmp/err" </dev/null || { head -n 3 "$tmp/err"; bad=1; }
    sed -n 's/^told after .* to \(.*\) ms$/\1/p' "$tmp/out" >>"$tmp/told"
  done
  latest=$(sort -g "$tmp/told" | tail -n 1)
}
told_row() { # NAME LIMIT WORDS...
  told "${@:3}"
  printf '%22s %9s\n' "$1" "${latest:--}"
  limit "${latest:-0}" "$2" "a death is known $1, ms"
}
if wanted told; then
  two=(simfab run --topology ../etc/topologies/two-hosts-two-rails.net --model hdr -- mrrun -n 8)
  printf '#!/bin/sh\nshift\nexec "$@"\n' >"$tmp/here"
  printf '#!/bin/sh\nhost=$1\nshift\nexec simfab exec "$host" -- "$@"\n' >"$tmp/there"
  chmod +x "$tmp/here" "$tmp/there"
  printf '%22s %9s\n' "a death is known" ms
  told_row "on this host" 10 mrrun -n 8
  told_row "by an agent" 10 mrrun -n 8 --launcher "$tmp/here" --hosts agent
  told_row "on two hosts" 100 "${two[@]}"
  told_row "on two, by agents" 100 "${two[@]}" --launcher "$tmp/there" --hosts h1,h2
fi
exit $bad
