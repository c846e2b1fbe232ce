#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Containers forbid system calls: programs run all the same, by the second way.
. "$(dirname "$0")/../tap.sh"
forbid=$BUILD/tests/libmrmpi/forbid
# what Docker's default profile has no exception for without a capability
usual=(bpf get_mempolicy kcmp keyctl mbind move_pages perf_event_open pidfd_getfd process_vm_readv process_vm_writev
  ptrace set_mempolicy userfaultfd)
# the leak checker of sanitized builds is a tracer
[ -z "$(sanitizers)" ] || export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
"$forbid" memfd_create -- true 2>"$tmp/why"
grep -q '^forbid: memfd_create' "$tmp/why" && skip_all "this kernel has no seccomp filters: $(cat "$tmp/why")"

forbidden() { # PROGRAM CALL...
  local program=$1
  shift
  timeout 100 "$forbid" "$@" -- mrrun -n 4 "$BUILD/tests/mpi/$program"
}
for program in p2p_sizes p2p_zcopy coll rma_mix rma_shared; do
  ok "$program where memory of others cannot be read" forbidden "$program" "${usual[@]}"
  ok "$program without memfd" forbidden "$program" memfd_create
  ok "$program without either, nor pidfd" forbidden "$program" "${usual[@]}" memfd_create pidfd_open
done
[ -z "$(sanitizers)" ] || done_testing # whose runtime a user's program has not
cat >"$tmp/maps.c" <<'C'
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    int rc = system("grep -o '/[^ ]*.*deleted.' /proc/$PPID/maps | sed 's/[0-9].*//' | sort -u");
    MPI_Finalize();
    return rc;
}
C
mrcc -o "$tmp/maps" "$tmp/maps.c" || exit 1
like "the node's memory is a memfd" '^/memfd:mrmpi' <(mrrun -n 2 "$tmp/maps")
like "or a nameless file" '^/dev/shm/#' <("$forbid" memfd_create -- mrrun -n 2 "$tmp/maps")
done_testing
