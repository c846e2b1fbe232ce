#!/usr/bin/env bash
# How fast simfab itself is: real time against virtual time and events, for ibv_rc_pingpong and for NPmpich2's
# bandwidth test over two rails.
set -u
cd "$(dirname "$0")/.." || exit 2
[ -n "${SIMFAB_DIR:-}" ] || exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash bench/simfab.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
port=$((10000 + $$ % 20000)) # below those that the kernel gives to clients

value() { simfab status | awk -v k="$1" '{l = $0} index(l, k) == 1 {sub(k "[: ]*", "", l); split(l, a, " "); print a[1]; exit}'; }
measure() { # NAME CMD...: real seconds, virtual seconds, events
  local name=$1 e0 v0 t0 e1 v1 t1
  shift
  e0=$(value events) v0=$(value "virtual time") t0=$(date +%s.%N)
  "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
  e1=$(value events) v1=$(value "virtual time") t1=$(date +%s.%N)
  awk -v n="$name" -v e=$((e1 - e0)) -v v0="$v0" -v v1="$v1" -v t0="$t0" -v t1="$t1" 'BEGIN {
    printf "%-44s %9.3f %9.4f %10d %12.0f %12.1f\n", n, t1 - t0, v1 - v0, e, e / (t1 - t0), (t1 - t0) / (v1 - v0)}'
}
pingpong() { # BYTES ITERATIONS
  port=$((port + 1))
  simfab exec h1 -- ibv_rc_pingpong -p $port -s "$1" -n "$2" >"$tmp/server" 2>&1 &
  local server=$! done=1
  for _ in $(seq 100); do
    simfab exec h2 -- ibv_rc_pingpong -p $port -s "$1" -n "$2" localhost >"$tmp/client" 2>&1 && { done=0; break; }
    sleep 0.05
  done
  wait $server
  return $done
}
printf '%-44s %9s %9s %10s %12s %12s\n' "" "real s" "virtual s" events "events/s" "real/virtual"
measure "ibv_rc_pingpong 4 B x 20000" pingpong 4 20000
measure "ibv_rc_pingpong 1 MiB x 500" pingpong 1048576 500
measure "NPmpich2 1 MiB x 200, two rails" mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$tmp/np.out" -l 1048576 -u 1048576 -p 0 -n 200
