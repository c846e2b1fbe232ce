#!/usr/bin/env bash
# What runs again on a fabric repeats to the last digit, beside a neighbour that computes and a fabricd that serves real time: MPI over one
# rail and two, several ranks on a host with memory between them, several threads in a rank, which wait for each other in every way;
# and a pair of programs that no launcher starts.
# REPEAT: how many times each (2; --all: 100).
# timeout: 900
# timeout --all: 3600
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
cd "$(dirname "$0")/../.." || exit 2
command -v opensm >/dev/null || skip_all "opensm is not installed"
[ "${1:-}" = --all ] && export REPEAT=100
times=${REPEAT:-2}

if [ "${1:-}" != inside ]; then
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash tests/simfab/repeat.sh inside
fi

if [ "$times" -gt 2 ]; then busy 1; else neighbour; fi
# a daemon of a simulated host that lives in real time, and is asked all the time
printf 'policy: %s\nstate: %s\nsocket: %s\n' "$PWD/etc/policies/simple.yaml" "$tmp/state" "$tmp/fabricd.sock" >"$tmp/fabricd.yaml"
SIMFAB_CLOCK=real simfab exec h1 -- fabricd --config "$tmp/fabricd.yaml" >"$tmp/fabricd.log" 2>&1 &
daemon=$!
(while sleep 0.05 && kill -0 $daemon; do fabricctl --socket "$tmp/fabricd.sock" status; done) >/dev/null 2>&1 &
asker=$!
on_exit 'kill $daemon $asker; wait 2>/dev/null'
wait_for 60 test -S "$tmp/fabricd.sock"
ok "fabricd is there" fabricctl --socket "$tmp/fabricd.sock" status

# again N CMD...: a line of each run's output in $tmp/all
again() {
  local i n=$1
  shift
  : >"$tmp/all"
  for ((i = 0; i < n; i++)); do
    timeout 60 "$@" 2>"$tmp/err" | tr '\n' ' ' >>"$tmp/all"
    echo >>"$tmp/all"
  done
}
# how many outcomes, of how many runs that printed what the pattern says
outcomes() { echo "$(sort -u "$tmp/all" | wc -l) of $(grep -cE "$1" "$tmp/all")"; }
figures='([0-9]+ bytes [0-9.]+ us \(simulated\) ){6}barrier [0-9.]+ us .*allreduce [0-9.]+ us'

# work that takes no time; nine waits that are in vain, each 10 us shorter than the one before; nine that are not; and four threads that share a lock
waits='^work: 0.030 us mutex: not in 190 us cond: not in 180 us clock cond: not in 170 us sem: not in 160 us rdlock: not in 150 us '
waits+='wrlock: not in 140 us join: not in 130 us mtx: not in 120 us cnd: not in 110 us '
waits+='([a-z ]+: in time, came [0-8], [0-9.]+ us ){9}(thread [0-3]: [0-9.]+ us, last at [0-9], saw [0-9]+ ){4}$'

for rails in 1 2; do
  MRMPI_RAILS_MAX=$rails again $times mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi"
  is "MPI over $rails rails: one outcome" "$(outcomes "$figures")" "1 of $times"
done
again $times mrrun -n 4 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi"
is "four ranks on two hosts: one outcome" "$(outcomes "$figures")" "1 of $times"
again $times mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_threads"
is "four threads in each of two ranks: one outcome" "$(outcomes '(thread [0-3]: [0-9.]+ us, came [0-3] \([0-9]+\) ){4}')" "1 of $times"
again $times mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_waits"
is "waits that may end at a time: one outcome, and those that nobody ends take their time" "$(outcomes "$waits")" "1 of $times"
again $times mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_omp"
is "teams of OpenMP: one outcome" "$(outcomes '^(thread [0-3]: [0-9.]+ us, [0-9]+ of the loops ){4}order [0-9]+ $')" "1 of $times"
again $times mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_omp" 3
is "teams of which one thread calls MPI: one outcome" "$(outcomes '^200 regions: [0-9.]+ us $')" "1 of $times"
again $times mrrun -n 6 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi"
is "six ranks on two hosts: one outcome" "$(outcomes "$figures")" "1 of $times"

# the second of two is still starting, and busy, when the first polls already: no time passes for that, nor for messages between them
by_hand() {
  local first rc i
  rm -f "$tmp/port"
  simfab exec h1 -- "$BUILD/tests/simfab/time_start" "$tmp/port" &
  first=$!
  wait_for 60 test -s "$tmp/port"
  simfab exec h2 -- timeout 60 "$BUILD/tests/simfab/time_start" "$(cat "$tmp/port")" -
  rc=$?
  [ $rc = 0 ] || kill $first
  wait $first
}
: >"$tmp/all"
for ((i = 0; i < times; i++)); do by_hand >>"$tmp/all" 2>>"$tmp/err"; done
is "programs started by hand: one outcome, in less than a millisecond" \
  "$(outcomes '^start: [0-9]{1,3}\.[0-9]+ us exchange: [0-9]{1,3}\.[0-9]+ us$')" "1 of $times"

# programs without a launcher, which tell each other by a socket when to begin: more often, as it takes luck to see
if [ ! -x "$(command -v ib_send_bw)" ]; then
  ok "a pair of programs # SKIP perftest is not installed" true
elif ! how=$(counter); then
  ok "a pair of programs # SKIP $how" true
else
  pairs=$((2 * times))
  : >"$tmp/all"
  for ((i = 0; i < pairs; i++)); do
    pair ib_send_bw -d mlx5_0 -s 65536 -n 300 >"$tmp/err" 2>&1 && grep -E '^ *65536 ' "$tmp/client" >>"$tmp/all"
  done
  is "a pair of programs: one outcome" "$(outcomes '^ *65536 +300 +[0-9.]+ +[0-9.]+')" "1 of $pairs"
fi
done_testing
