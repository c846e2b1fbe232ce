#!/usr/bin/env bash
# Processes that break the attach protocol's rules must not harm the fabric or the others on it.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$tmp/fabric
mkdir -m 700 "$dir" && mkfifo "$dir/ready"
exec 9<>"$dir/ready"
"$BUILD/bin/simfab-engine" --topology "$root/etc/topologies/two-hosts-two-rails.net" --dir "$dir" --static-subnet 0 \
  --ready-fd 9 2>"$dir/engine.log" &
engine=$!
on_exit 'kill $engine 2>/dev/null; { wait $engine; } 2>/dev/null'
read -r -t 10 -u 9 line
is "the engine is up" "${line:-}" ready
export SIMFAB_DIR=$dir

attack() { # FIRST LAST
  local i
  for ((i = $1; i <= $2; i++)); do
    timeout 20 "$BUILD/tests/simfab/test_hostile" "$dir" h$((1 + i % 2)) "$i" || { echo "seed $i: exit $?"; return 1; }
    kill -0 $engine 2>/dev/null || { echo "seed $i killed the engine"; tail -n 20 "$dir/engine.log"; return 1; }
  done
}
ok "200 hostile processes" attack 1 200
ok "the engine answers" simfab status
wait_for 60 eval "simfab status | grep -x 'processes: 0'"
is "all of them are gone" "$(simfab status | sed -n 's/^processes: //p')" 0

# ---- killed at every point of a life ---------------------------------------------------------------------------------------

is_empty() {
  simfab status >"$tmp/status"
  grep -qx 'processes: 0' "$tmp/status" && grep -qE '^objects:( 0 [a-z ]+,?)+$' "$tmp/status" &&
    grep -q '^management: 0 umad, 0 issm, 0 agents, 0 requests,' "$tmp/status"
}
nothing_left() {
  wait_for 60 is_empty && return
  cat "$tmp/status" "$dir/engine.log"
  return 1
}
dying() {
  local stage rc
  for ((stage = 1; stage < 100; stage++)); do
    { "$BUILD/tests/simfab/test_hostile" "$dir" h1 die $stage; } 2>/dev/null
    rc=$?
    [ $rc -eq 3 ] && break
    [ $rc -eq 137 ] || { echo "stage $stage: exit $rc"; return 1; }
    nothing_left || { echo "stage $stage leaves something"; return 1; }
  done
  [ $stage -eq 32 ]
}
ok "nothing is left of processes that are killed while they attach, ask, post, hold, and in each state of a thread" dying
ok "nor does time wait for any of them" timeout 60 simfab flow run 1ms

# real programs, killed in the middle: of pingpongs, of RDMA writes, of reading a umad, of a group
at_work() { # KIND: both programs hold what they work with
  local what=' [1-9][0-9]+ queue pairs| [2-9] queue pairs'
  [ "$1" != 2 ] || what='management: [2-9] umad'
  wait_for 60 eval "simfab status | grep -E '$what'"
}
killed() {
  local i pids
  for ((i = 0; i < 12; i++)); do
    pids=()
    case $((i % 4)) in
    0) simfab exec h1 -- ibv_rc_pingpong -p $((port + i)) -n 10000000 -s 65536 & pids+=($!)
       simfab exec h2 -- bash -c "until ibv_rc_pingpong -p $((port + i)) -n 10000000 -s 65536 localhost; do :; done" & pids+=($!) ;;
    1) simfab exec h1 -- ib_write_bw -p $((port + i)) -n 1000000 -s 1048576 & pids+=($!)
       simfab exec h2 -- bash -c "until ib_write_bw -p $((port + i)) -n 1000000 -s 1048576 localhost; do :; done" & pids+=($!) ;;
    2) simfab exec h1 -- ibping -S & pids+=($!)
       simfab exec h2 -- ibping -c 1000000 -f "$(simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" & pids+=($!) ;;
    3) simfab exec h1 -- ibv_srq_pingpong -p $((port + i)) -n 10000000 & pids+=($!)
       simfab exec h2 -- bash -c "until ibv_srq_pingpong -p $((port + i)) -n 10000000 localhost; do :; done" & pids+=($!) ;;
    esac
    at_work $((i % 4)) || { echo "round $i: nobody works"; return 1; }
    sleep "0.$((1 + i % 3))"
    # first one, then the other; with what they started
    for pid in "${pids[@]}"; do
      kill -9 $(ps -o pid= --ppid "$pid") "$pid" 2>/dev/null
      { wait "$pid"; } 2>/dev/null
    done
    nothing_left || { echo "round $i leaves something"; return 1; }
  done
}
dozen_free() { # from PORT on
  local p
  for ((p = $1; p < $1 + 12; p++)); do ! listening $p || return 1; done
}
for ((port = 25100; port < 29000; port += 16)); do
  dozen_free $port && break
done
ok "nor of programs that are killed in the middle of their work" killed
ok "the engine says whom it refused, and why" grep -Eq 'pid [0-9]+.*(closed|detached)' "$dir/engine.log"
ok "a well-behaved program still finds its devices" eval 'simfab exec h1 -- ibv_devinfo | grep -q PORT_ACTIVE'
done_testing
