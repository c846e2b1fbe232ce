#!/usr/bin/env bash
# What a job says when it dies of an MPI error: one line with rank, function, argument and class, and a status that is not 0.
. "$(dirname "$0")/../tap.sh"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0} # a job that is ended frees nothing
prog=$BUILD/tests/mpi/fatal

dies() { # way
  timeout -k 5 30 mrrun -n 2 "$prog" "$1" >"$tmp/$1" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/$1"
  [ $rc -ne 0 ] && [ $rc -lt 124 ]
}
ok "a wrong rank ends the job" dies rank
like "says who, where and what" 'rank 1 .*MPI_Send: .*dest 77 is not in MPI_COMM_WORLD.*MPI_ERR_RANK' "$tmp/rank"
is "in one line" "$(grep -c MPI_Send "$tmp/rank")" 1
ok "a truncated message ends the job" dies truncate
like "says how long it was" 'MPI_Recv: .*8 bytes.*MPI_ERR_TRUNCATE' "$tmp/truncate"
ok "MPI_Abort ends the job" dies abort
like "says the code" 'rank 1 .*code 9.*MPI_Abort' "$tmp/abort"
# The others are in MPI_Init still, where they look for what the first rank shares
starts() {
  timeout -k 5 60 mrrun -n 16 "$prog" start >"$tmp/start" 2>&1 </dev/null
  local aborts
  aborts=$(grep -c 'rank 0 .*code 8.*MPI_Abort' "$tmp/start")
  cat "$tmp/start"
  [ "$aborts" = 1 ] && ! grep -q 'shared memory' "$tmp/start"
}
ok "a rank that aborts when the others start is all that is told of" starts
ok "a call before MPI_Init ends the job" dies early
like "says so" 'MPI_Comm_rank was called before MPI_Init' "$tmp/early"
ok "a call after MPI_Finalize ends the job" dies late
like "says so" 'MPI_Barrier was called after MPI_Finalize' "$tmp/late"
ok "MPI_ERRORS_ABORT ends the job" dies errors_abort
like "says why" 'rank 1 .*MPI_Send: .*tag -4 .*MPI_ERR_TAG' "$tmp/errors_abort"
ok "an error that the program reports ends the job" dies called
like "says its number" 'rank 1 .*MPI_Comm_call_errhandler: .*error 32' "$tmp/called"
ok "an error of a session ends the job" dies session
like "says which" 'MPI_Group_from_session_pset: .*"mpi://MOON".*MPI_ERR_ARG' "$tmp/session"
ok "an error before MPI_Init ends the process" dies early_info
like "says which" 'MPI_Info_get_nkeys: .*null handle.*MPI_ERR_INFO' "$tmp/early_info"
ok "starting again without the others ends the job" dies alone
like "says who is missing" 'rank 0 .*exited with code 0, while others started MPI again' "$tmp/alone"
if [ -z "$(sanitizers)" ]; then # whose allocators end the process themselves
  for i in 1 2 3 4 5; do # how much is left when it ends differs
    ok "a rank that has no memory for what comes ends the job, $i" dies memory
    like "says so" 'mrmpi\[0.*out of memory for a message from rank 1' "$tmp/memory"
    like "and so does the launcher" 'mrrun: rank 0 .*aborted the job with code 1: out of memory' "$tmp/memory"
  done
fi
# over hosts, where the adapter has to know the memory
dies_apart() { # way
  timeout -k 5 60 simfab run --topology "$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net" --model hdr -- mrrun -n 2 --ppn 1 "$prog" "$1" >"$tmp/$1" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/$1"
  [ $rc -ne 0 ] && [ $rc -lt 124 ]
}
ok "a send from memory that is not mapped ends the job" dies_apart unmapped
like "says what is wrong" 'cannot be registered for sending: Bad address; part of it is not mapped' "$tmp/unmapped"
is "not a limit" "$(grep -c ulimit "$tmp/unmapped")" 0
like "whose error it is" 'MPI_Send: .*at 0x.*Bad address.*MPI_ERR_BUFFER' "$tmp/unmapped"
done_testing
