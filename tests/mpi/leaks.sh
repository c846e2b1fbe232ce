#!/usr/bin/env bash
# MRMPI_LEAKS: what a program leaves behind is told, kind by kind, by the rank that does; what it frees is not. --check: the
# same in one line.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=detect_leaks=0 ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
run() { timeout -k 5 60 mrrun -n 2 "$BUILD/tests/mpi/leaks" "$@" >"$tmp/out" 2>&1 </dev/null; }
run_checked() { timeout -k 5 60 mrrun --check -n 2 "$BUILD/tests/mpi/leaks" "$@" >"$tmp/out" 2>&1 </dev/null; }
told() { like "tells of $1" "^mrmpi\\[$2@[^]]*\\] warning: leak: $3\$" "$tmp/out"; }

export MRMPI_LEAKS=yes
ok "a program that leaves things behind runs" run leaks
told "a communicator and its name" 1 'communicator 0x[0-9a-f]{8}, mine was not freed'
told "one with a topology" 1 'communicator 0x[0-9a-f]{8} was not freed'
told "a datatype" 1 'datatype 0x[0-9a-f]{8}, triple was not freed'
told "an operation" 1 'operation 0x[0-9a-f]{8} was not freed'
told "a group" 1 'group 0x[0-9a-f]{8} was not freed'
told "an attribute key" 1 'attribute key 0x[0-9a-f]{8} was not freed'
told "a request" 1 'request 0x[0-9a-f]{8} was not freed'
told "a message that was probed" 1 'message of a matched probe 0x[0-9a-f]{8} was not freed'
told "a file and its name" 1 'file 0x[0-9a-f]{8}, /dev/null was not freed'
told "memory" 1 '100 bytes of MPI_Alloc_mem at 0x[0-9a-f]+'
told "an info object" 1 'info object 0x[0-9a-f]{8} was not freed'
told "an error handler" 1 'error handler 0x[0-9a-f]{8} was not freed'
told "a message that nobody received" 0 'nobody received a message from rank 1 of context [0-9]+ with tag 44'
is "and of nothing else" "$(grep -c . "$tmp/out")" 13
not_ok "a program that leaves a session open has not ended MPI" run session
told "the session" 1 'session 0x[0-9a-f]{8} was not freed'
ok "a program that frees all runs" run frees
is "and nothing is told" "$(cat "$tmp/out")" ""

one_line() { # RANK WHAT: all that the rank says
  is "rank $1: one line" "$(sed -n "s/^mrmpi\\[$1@[^]]*\\] warning: left at MPI_Finalize: //p" "$tmp/out")" "$2"
}
export MRMPI_LEAKS=no
ok "mrrun --check" run_checked leaks
one_line 1 "2 communicators (mine), 1 group, 1 datatype (triple), 1 message of a matched probe, 1 operation, 1 attribute key, 1 file (/dev/null), 1 request, 1 block of MPI_Alloc_mem (100 bytes); MRMPI_LEAKS=yes lists each"
one_line 0 "1 message that nobody received (from rank 1, tag 44); MRMPI_LEAKS=yes lists each"
is "and no more" "$(grep -c . "$tmp/out")" 2
ok "--check of a program that frees all" run_checked frees
is "tells nothing" "$(cat "$tmp/out")" ""
MRMPI_LEAKS=yes run_checked leaks
told "a message in detail" 0 'nobody received a message from rank 1 of context [0-9]+ with tag 44'
one_line 0 "1 message that nobody received (from rank 1, tag 44)"
ok "without being asked for" run leaks
is "nothing is told either" "$(cat "$tmp/out")" ""
done_testing
