#!/usr/bin/env bash
# Programs that use much more of verbs than the pingpongs, unmodified: perftest (the time stamp counter, every operation)
# and Debian's MPICH over UCX (threads, completion events, shared receive queues).
# timeout: 280
. "$(dirname "$0")/../tap.sh"

if [ "${1:-}" != inside ]; then
  command -v opensm >/dev/null || skip_all "opensm is not installed"
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash "$0" inside
fi

listening() { awk -v p="$(printf ':%04X' "$1")" '$4 == "0A" && index($2, p) {f = 1} END {exit !f}' /proc/net/tcp /proc/net/tcp6; }
# pair PROGRAM ARGS: the client's output in $tmp/client
pair() {
  local port server i
  while port=$((10000 + RANDOM % 20000)) && listening $port; do :; done
  timeout 60 simfab exec h1 -- "$@" -p $port >"$tmp/server" 2>&1 &
  server=$!
  for ((i = 0; i < 1000; i++)); do listening $port && break; sleep 0.01; done
  timeout 60 simfab exec h2 -- "$@" -p $port localhost >"$tmp/client" 2>&1 || { cat "$tmp/client" "$tmp/server"; return 1; }
  wait $server
}
# The figure in column $1 of the results is between $2 and $3.
figure() {
  awk -v c="$1" -v lo="$2" -v hi="$3" '$1 ~ /^[0-9]+$/ && NF > 3 {v = $c} END {print v; exit !(v >= lo && v <= hi)}' "$tmp/client"
}

if command -v ib_send_lat >/dev/null; then
  while read -r column low high args; do
    # shellcheck disable=SC2086
    ok "$args" pair $args
    ok "$args: from $low to $high" figure "$column" "$low" "$high"
  done <<'TABLE'
6 4 8 ib_send_lat -n 300 -s 4
6 4 8 ib_send_lat -n 300 -s 4 -c UD
6 5 12 ib_read_lat -n 300 -s 4
6 5 12 ib_atomic_lat -n 300
4 700 900 ib_write_bw -n 500
4 700 900 ib_read_bw -n 500
4 700 900 ib_send_bw -n 500
4 800 1000 ib_send_bw -n 500 -b
TABLE
else
  ok "perftest # SKIP not installed" true
fi

if command -v NPmpich2 mpiexec.hydra >/dev/null; then
  export MPIR_CVAR_NOLOCAL=1 UCX_TLS=rc_v,self UCX_LOG_LEVEL=error
  timeout 120 mpiexec.hydra -n 1 simfab exec h1 -- NPmpich2 -l 1 -u 20000 -n 10 -o "$tmp/np" \
    : -n 1 simfab exec h2 -- NPmpich2 -l 1 -u 20000 -n 10 -o "$tmp/np" >"$tmp/mpich" 2>&1
  is "MPICH over UCX over two simulated rails" $? 0
  like "its bandwidth for 16 KiB is more than one byte per 5 ns" '16384 bytes +[0-9]+ times --> +([2-9][0-9]{3}|1[0-9]{4})\.[0-9]+ Mbps' "$tmp/mpich"
else
  ok "MPICH over UCX # SKIP not installed" true
fi
done_testing
