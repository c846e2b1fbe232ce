#!/usr/bin/env bash
# MRMPI_LEAKS: what a program leaves behind is told, kind by kind, by the rank that does; what it frees is not.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=detect_leaks=0 ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
run() { timeout -k 5 60 mrrun -n 2 "$BUILD/tests/mpi/leaks" "$@" >"$tmp/out" 2>&1 </dev/null; }
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
export MRMPI_LEAKS=no
ok "without being asked for" run leaks
is "nothing is told either" "$(cat "$tmp/out")" ""
done_testing
