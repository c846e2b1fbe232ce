#!/usr/bin/env bash
# A rank, fabricd, the engine or a link goes while a job runs between two simulated hosts.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

sent() { simfab status --counters | awk '$1 == "h1" {for (i = 1; i < NF; i++) if ($i == "xmit_pkts") n += $(i + 1)} END {print n + 0}'; }
moving() { local a b; a=$(sent); sleep 0.3; b=$(sent); [ "$b" -gt $((a + 10)) ]; }

# The engine first: simfab takes everything down with it, so this fabric is one of its own.
if [ "${1:-}" = job ]; then
  echo "$SIMFAB_DIR" >"$2/dir"
  rm -rf "$tmp" # exec leaves no trap to do it
  exec mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$2/np" -l 4 -u 4 -p 0 -n 100000000
fi
if [ -z "${SIMFAB_DIR:-}" ]; then
  simfab run --topology two-hosts-two-rails -- bash "$0" job "$tmp" >"$tmp/out" 2>&1 &
  run=$!
  ok "a fabric with a job is up" wait_for 20 test -s "$tmp/dir"
  SIMFAB_DIR=$(cat "$tmp/dir")
  export SIMFAB_DIR
  ok "the job is running" wait_for 20 moving
  kill -9 "$(pgrep -f "simfab-engine .*--dir $SIMFAB_DIR" | head -n 1)"
  ended() { ! kill -0 $run 2>/dev/null; }
  ok "killing the engine ends the run within 15 seconds" wait_for 15 ended
  wait $run
  not_ok "with a failure" test $? -eq 0
  like "and a message that says what happened" 'engine' "$tmp/out"
  not_ok "no process of it is left" pgrep -f "$SIMFAB_DIR"
  not_ok "its directory is gone" test -e "$SIMFAB_DIR"
  unset SIMFAB_DIR
  export LOSS_RESULTS=$tap_n LOSS_BAD=$tap_bad
  simfab run --topology two-hosts-two-rails -- bash "$0"
  exit
fi
tap_n=$LOSS_RESULTS tap_bad=$LOSS_BAD

job() { # starts an endless ping-pong; its mrrun is $mrrun, its output $tmp/out
  mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$tmp/np" -l 4 -u 4 -p 0 -n 100000000 >"$tmp/out" 2>&1 &
  mrrun=$!
  on_exit "kill -9 $mrrun 2>/dev/null"
  wait_for 20 moving
}

ok "a job is running" job
victim=$(pgrep -P $mrrun -x NPmpich2 | tail -n 1)
kill -9 "$victim"
wait $mrrun
is "killing a rank ends the job with 128 + 9" $? 137
like "mrrun names the rank, its host, its pid and the signal" "rank [01].*h[12].*$victim.*(Killed|SIGKILL|signal 9)" "$tmp/out"

for h in h1 h2; do
  printf 'policy: %s\nstate: %s\nsocket: %s\n' "$PWD/etc/policies/simple.yaml" "$tmp/state-$h" "$tmp/$h.sock" >"$tmp/$h.yaml"
  simfab exec --real-clock $h -- fabricd --config "$tmp/$h.yaml" >"$tmp/$h.log" 2>&1 &
  eval "daemon_$h=$!"
  on_exit "kill -9 $! 2>/dev/null; wait $! 2>/dev/null"
done
export MRMPI_FABRICD_SOCKET=$tmp/%h.sock
ok "fabricd runs on both hosts" wait_for 10 test -S "$tmp/h1.sock" -a -S "$tmp/h2.sock"
ok "a job is running" job
kill -9 "$daemon_h1" "$daemon_h2"
wait "$daemon_h1" "$daemon_h2" 2>/dev/null
ok "the job goes on without the daemons" moving
ok "and is still there" kill -0 $mrrun
kill -TERM $mrrun
wait $mrrun 2>/dev/null
MRMPI_LOG_LEVEL=1 mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$tmp/np" -l 4 -u 4 -p 0 -n 5 >"$tmp/out" 2>&1
is "a new job runs with defaults" $? 0
is "and says so once" "$(grep -ci 'fabricd' "$tmp/out")" 1

# A link goes: a program that handles errors hears of it, now and whenever it asks again.
cat >"$tmp/lost.c" <<'END'
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, x = 0, err = 0, send, recv, probe, mprobe, any;
    MPI_Message m;
    MPI_Request posted, loop;
    int in, done;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&any, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &posted);
    MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &loop);
    while (!err) { /* always sending: who only waits cannot hear of the other's end */
        err = MPI_Send(&x, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
        if (!err)
            err = MPI_Test(&loop, &done, MPI_STATUS_IGNORE);
        if (!err && done)
            MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &loop);
        usleep(20);
    }
    send = MPI_Send(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
    recv = MPI_Recv(&x, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    probe = MPI_Probe(1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    mprobe = MPI_Mprobe(1 - rank, 1, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
    any = MPI_Wait(&posted, MPI_STATUS_IGNORE); /* nobody is left who could send it */
    printf("rank %d: %d %d %d %d %d\n", rank, send != 0, recv != 0, probe != 0, mprobe != 0, any != 0);
    MPI_Finalize();
}
END
san=$(sanitizers)
ok "a program that handles errors" mrcc ${san:+"-fsanitize=$san"} -o "$tmp/lost" "$tmp/lost.c"
timeout 60 mrrun -n 2 --hosts h1,h2 "$tmp/lost" >"$tmp/out" 2>&1 &
mrrun=$!
ok "it is running" wait_for 20 moving
leaf=$(simfab exec h1 -- ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p')
for port in 1 2; do simfab exec h2 -- ibportstate "$leaf" $port disable >/dev/null 2>&1; done
wait $mrrun
is "it ends by itself" $? 0
is "each rank is told so again by send, receive, probe and matched probe, and by a receive from anybody" "$(grep -o '^rank [01]: .*' "$tmp/out" | sort | tr '\n' ' ')" "rank 0: 1 1 1 1 1 rank 1: 1 1 1 1 1 "
done_testing
