#!/usr/bin/env bash
# Processes that break the attach protocol's rules must not harm the fabric or the others on it.
# timeout: 120
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
for ((i = 0; i < 200; i++)); do
  [ "$(simfab status | sed -n 's/^processes: //p')" = 0 ] && break
  sleep 0.01
done
is "all of them are gone" "$(simfab status | sed -n 's/^processes: //p')" 0
ok "a well-behaved program still finds its devices" eval 'simfab exec h1 -- ibv_devinfo | grep -q PORT_ACTIVE'
done_testing
