#!/usr/bin/env bash
# Virtual time does not depend on the machine: programs print the same digits each time beside a neighbour that computes, whoever comes
# first; threads that spin on memory without a call see it change at the right time; nobody stops the world but who computes.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"

if [ "${1:-}" != inside ]; then
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash "$0" inside
fi

# pair PROGRAM ARGS: the client's output in $tmp/client
pair() {
  local port server i
  port=$(free_port)
  timeout 60 simfab exec h1 -- "$@" -p $port >"$tmp/server" 2>&1 &
  server=$!
  wait_for 60 listening $port
  timeout 60 simfab exec h2 -- "$@" -p $port localhost >"$tmp/client" 2>&1 || { cat "$tmp/client" "$tmp/server"; return 1; }
  wait $server
}
outcomes() { sort -u "$tmp/all" | wc -l; } # how many different outcomes there were
timed() { grep -E 'bytes in|iters in|^ [0-9]+ +[0-9]+ ' "$tmp/client"; }

neighbour

: >"$tmp/all"
for i in 1 2 3 4 5; do pair ibv_rc_pingpong -n 200 && timed | tr '\n' ' ' >>"$tmp/all" && echo >>"$tmp/all"; done
is "ibv_rc_pingpong, five times: one outcome" "$(outcomes) of $(wc -l <"$tmp/all")" "1 of 5"

how="perftest is not installed"
if command -v ib_write_lat >/dev/null && how=$(counter); then
  : >"$tmp/all"
  : >"$tmp/each"
  for i in 1 2 3; do
    pair ib_write_lat -n 200 -s 4 -U
    timed >>"$tmp/all"
    grep -E '^[0-9]+, [0-9.]+ *$' "$tmp/client" >>"$tmp/each"
  done
  # a spinner is known by the processor time that it uses: where others take the processor away, an exchange may be late
  is "ib_write_lat spins on memory: the typical exchange is the same each time" \
    "$(awk '{print $5}' "$tmp/all" | sort -u | wc -l) of $(wc -l <"$tmp/all")" "1 of 3"
  typical=$(awk '{print $5; exit}' "$tmp/all")
  like=$(awk -v t="$typical" '$2 > t - .01 && $2 < t + .01' "$tmp/each" | wc -l)
  echo "# $like of $(wc -l <"$tmp/each") exchanges take $typical us"
  ok "and nine exchanges of ten are as the others" test "$like" -ge 540
else
  ok "ib_write_lat # SKIP $how" true
fi

simfab exec h1 -- "$BUILD/tests/simfab/time_timers" >"$tmp/timers" 2>&1
is "timers, sleeps and time-outs of a process with verbs end at their virtual times" \
  "$(grep -c ': right$' "$tmp/timers") right, $(grep -vcE ': right$|^(poll|select|epoll_wait): [01]$|is empty$' "$tmp/timers") others" "16 right, 0 others"

# One rank is away in the world while the others wait for it by the clock: for whom time passes it passes for all. A clock
# that is ahead of the fabric's hears late of what the others do: by as much as it was away.
away() { # RANKS PER_HOST: what the slowest exchange took when it was back, in ms more than the next one; how long it was away
  MRMPI_LOG_LEVEL=0 timeout 60 mrrun -n $1 --ppn $2 "$BUILD/tests/simfab/time_away" 'sleep 1' 'sleep 0.05' 'sleep 1' >"$tmp/away" || return 1
  awk '{more = ($6 - $8) / 1000; if (more > most) most = more; if ($4 / 1000 > away) away = $4 / 1000}
       END {print most + 0, away + 0; exit NR != 3}' "$tmp/away"
}
more=$(away 2 1)
ok "a rank that was away is heard as soon as one that was not ($more)" awk -v m="$more" 'BEGIN {split(m, v, " "); exit !(m != "" && v[1] < 0.1)}'
ok "and by the clock it was away" awk -v m="$more" 'BEGIN {split(m, v, " "); exit !(v[2] > 20)}'
# a host's ranks wait for memory and the network at once; mrmpi sleeps a millisecond at a time there
more=$(away 4 2)
ok "and with two ranks on each host ($more)" awk -v m="$more" 'BEGIN {split(m, v, " "); exit !(m != "" && v[1] < 10)}'
if command -v qperf >/dev/null; then
  port=$(free_port)
  timeout 100 simfab exec h1 -- qperf -lp $port >"$tmp/server" 2>&1 &
  wait_for 60 listening $port
  timeout 90 simfab exec h2 -- qperf -lp $port -t 1 localhost rc_bw rc_rdma_write_bw >"$tmp/qperf" 2>&1
  timeout 10 simfab exec h2 -- qperf -lp $port localhost quit >/dev/null 2>&1
  is "qperf measures one virtual second, twice" "$(grep -cE 'bw += +8[67][0-9] MB/sec' "$tmp/qperf")" 2
else
  ok "qperf # SKIP not installed" true
fi
done_testing
