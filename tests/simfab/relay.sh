#!/usr/bin/env bash
# Actors of a host pass their turns on without the engine: virtual time is the same as if the engine gave each its turn, to the
# last digit, whatever becomes of a process that has the turn, and of the page that the processes share.
# RELAY_KILLS: how many ranks are killed (4).
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LOG_LEVEL=0
engines=()
on_exit 'kill "${engines[@]}" 2>/dev/null; wait 2>/dev/null'

fabric() { # NAME NET OPTION...: an engine without a subnet manager, in $SIMFAB_DIR from now on
  export SIMFAB_DIR=$tmp/$1
  mkdir -m 700 "$SIMFAB_DIR" && mkfifo "$SIMFAB_DIR/ready"
  exec 9<>"$SIMFAB_DIR/ready"
  simfab-engine --topology "$root/$2" --dir "$SIMFAB_DIR" --static-subnet 0 --ready-fd 9 "${@:3}" 2>"$SIMFAB_DIR/engine.log" &
  engines+=($!)
  local line
  read -r -t 60 -u 9 line
  exec 9>&-
  [ "$line" = ready ]
}
passed() { simfab status | sed -n 's/^turns passed on among threads: //p'; }
runs() { simfab status | sed -n 's/^runs of threads: \([0-9]*\),.*/\1/p'; }
# RELAY_TIMES: how often the jobs with many ranks on a host are compared (2; their events coincide more often than others')
many() { # RANKS HOSTS
  local i
  for ((i = 0; i < ${RELAY_TIMES:-2}; i++)); do timeout 120 mrrun -n "$1" --hosts "$2" "$BUILD/tests/simfab/time_mpi" || return; done
}
figures() { # on this fabric
  local n
  for n in 4 6; do timeout 120 mrrun -n $n --hosts h1,h2 "$BUILD/tests/simfab/time_mpi" || return; done
  timeout 120 mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_threads" || return
  many 12 h1,h2
}
two=etc/topologies/two-hosts-two-rails.net four=tests/simfab/four-hosts.net

ok "an engine that gives each thread its turn, and four hosts" fabric wide.old $four --no-relay
ok "16 ranks on three hosts" eval 'many 16 h1,h2,h3 >"$tmp/many.old"'
ok "an engine that lets them pass turns on" fabric wide.new $four
ok "the same job" eval 'many 16 h1,h2,h3 >"$tmp/many.new"'
ok "has the same figures to the last digit" diff "$tmp/many.old" "$tmp/many.new"
ok "and in every run" eval 'test "$(sort -u "$tmp/many.old" "$tmp/many.new" | wc -l)" = 8'

ok "an engine that gives each thread its turn" fabric old $two --no-relay
ok "figures of jobs with several ranks on a host, and several threads in a rank" eval 'figures >"$tmp/figures.old"'
is "no turn is passed on" "$(passed)" 0
ok "an engine that lets them pass turns on" fabric new $two
ok "figures of the same jobs" eval 'figures >"$tmp/figures.new"'
ok "are the same to the last digit" diff "$tmp/figures.old" "$tmp/figures.new"
ok "with six ranks on a host in every run" \
  eval 'test "$(tail -n $((8 * ${RELAY_TIMES:-2})) "$tmp/figures.old" | sort -u | wc -l)" = 8'
ok "one turn of three and more was passed on: $(passed) of $(runs)" test $((3 * $(passed))) -gt "$(runs)"

# killed while it has the turn or waits for it: the job ends, and the fabric serves the next one
killed() {
  local i pid job
  for ((i = 0; i < ${RELAY_KILLS:-4}; i++)); do
    mrrun -n 6 --hosts h1,h2 "$BUILD/tests/mpi/rma_atomic" >"$tmp/job" 2>&1 &
    job=$!
    wait_for 60 eval "pgrep -P $job -x rma_atomic | wc -l | grep -qx 6" || return
    sleep "0.$((1 + i))"
    pid=$(pgrep -P $job -x rma_atomic | sed -n "$((1 + i % 6))p")
    [ -z "$pid" ] || kill -9 "$pid"
    wait $job && { echo "round $i: the job has not noticed"; return 1; }
    wait_for 60 eval "simfab status | grep -qx 'processes: 0'" || { simfab status; return 1; }
  done
}
ok "ranks that are killed in the middle stop nobody but their job" killed
ok "the next job has the same figures" eval 'timeout 120 mrrun -n 4 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi" >"$tmp/after"'
ok "to the last digit" eval 'head -n "$(wc -l <"$tmp/after")" "$tmp/figures.old" | diff - "$tmp/after"'

# a process of each host writes nonsense into the page
noise=()
for h in h1 h2; do
  timeout 300 "$BUILD/tests/simfab/test_hostile" "$SIMFAB_DIR" $h relay ${#noise[@]} >"$tmp/noise.$h" &
  noise+=($!)
  wait_for 60 grep -q ready "$tmp/noise.$h"
done
ok "processes write nonsense into the page that turns are passed by" eval "kill -0 ${noise[*]}"
ok "a job beside them does its work" timeout 240 mrrun -n 6 --hosts h1,h2 "$BUILD/tests/mpi/coll"
kill "${noise[@]}"
wait_for 60 eval "simfab status | grep -qx 'processes: 0'"
ok "the engine is there, and serves the next one" timeout 120 mrrun -n 4 --hosts h1,h2 "$BUILD/tests/mpi/p2p_ring"
done_testing
