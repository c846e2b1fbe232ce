#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1200
# 64 agents: they start whatever their launchers print, and whichever of them is killed or stopped at whatever moment, the
# job ends soon, a host is named, and nothing stays. ROUNDS (12) of that; SEED repeats them.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/agents-lib.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
export MRMPI_LOG_LEVEL=0 LIMIT=120
client=$BUILD/tests/mrrun/test_launch_client
hosts=$(seq -s, -f 'n%g' 64)
RANDOM=${SEED:=$$}
echo "# SEED=$SEED"

for each in 1 2; do
  far -hosts "$hosts" -n $((64 * each)) "$client"
  is "64 hosts with $each ranks each" "$? $(grep -c "^rank [0-9]*/$((64 * each)) local [0-9]*/$each nodes 64" "$tmp/out")" "0 $((64 * each))"
  ok "leave nothing" gone 60
done
far -hosts "$hosts" -n 64 -l bash -c 'for i in {1..300}; do echo "$PMI_RANK line $i"; done'
is "no line of 64 hosts is lost, mixed or out of order" \
  "$? $(awk '{sub(/[[\]]/, "", $1); sub(/\]/, "", $1)} $2 != $1 || $4 != ++n[$2] {bad++} END {print NR, bad + 0}' "$tmp/out")" "0 19200 0"
far -hosts "$hosts" -s all -n 64 md5sum <"$BUILD/bin/mrrun"
is "64 ranks read standard input" "$? $(grep -c "$(md5sum <"$BUILD/bin/mrrun")" "$tmp/out")" "0 64"

# ---- launchers that say much, or fail deep in the tree
cat >"$tmp/noisy" <<END
#!/bin/sh
head -c 100000 /dev/urandom
seq 20000 >&2
exec "$on_host" "\$@"
END
cat >"$tmp/deep" <<END
#!/bin/sh
[ "\$1" = n63 ] && { echo "n63 is down" >&2; exit 9; }
exec "$on_host" "\$@"
END
chmod +x "$tmp/noisy" "$tmp/deep"
timeout 120 mrrun --launcher "$tmp/noisy" -hosts "$hosts" -n 64 echo here >"$tmp/out" 2>"$tmp/err"
is "behind 100 kB of noise" "$? $(grep -c '^here$' "$tmp/out") $(wc -l <"$tmp/err")" "0 64 0"
timeout 120 mrrun --launcher "$tmp/deep" -hosts "$hosts" -n 64 touch "$tmp/started" >"$tmp/out" 2>"$tmp/err"
is "a host that fails at the end of a branch" "$? $(cat "$tmp/err")" \
  "1 mrrun: host n63: its agent did not start: '$tmp/deep' ended with status 9: n63 is down"
not_ok "keeps all ranks from being started" test -e "$tmp/started"
ok "and nothing is left" gone 60

# ---- a look at adapters that takes longer than an agent may be silent
cat >"$tmp/slow.c" <<'END'
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_if_asked_for_rails(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--rails"))
        sleep(6);
}
END
gcc -shared -fPIC -o "$tmp/slow.so" "$tmp/slow.c"
far -hosts a,b -genv LD_PRELOAD "$tmp/slow.so" -n 2 --bind-to core --report-bindings echo here
is "holds no agent up" "$? $(grep -c '^here$' "$tmp/out") $(grep -c 'is bound to core' "$tmp/err") $(grep -c lost "$tmp/err")" "0 2 2 0"

# ---- killed and stopped at random
launch() {
  forget
  timeout 200 mrrun --launcher "$on_host" -hosts "$hosts" --grace 2 -n 64 bash -c "echo \$\$ >>$tmp/pids; sleep 300 & echo \$! >>$tmp/pids; wait" \
    >"$tmp/out" 2>"$tmp/err" &
  pid=$!
}
strike() { # SIGNAL: at a random host
  victim=n$((RANDOM % 64 + 1))
  wait_for 60 test -s "$tmp/agents/$victim"
  kill "-$1" "$(agent_of $victim)" 2>/dev/null
  timeout -t "$tmp/took" 120 sh -c "while kill -0 $pid 2>/dev/null; do sleep 0.05; done"
  wait $pid
}
for ((round = 0; round < ${ROUNDS:-12}; round++)); do
  launch
  case $((round % 3)) in
  0) # while agents start, or soon after
    sleep "0.$((RANDOM % 90 + 10))"
    strike KILL ;;
  1) wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = 128 ]'
    strike KILL ;;
  2) wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = 128 ]'
    strike STOP ;;
  esac
  not_ok "round $round: an agent is lost, and the job" test $? = 0
  like "its host is named" "^mrrun: host $victim: its agent" "$tmp/err"
  ok "soon" within 5
  ok "nothing stays" gone 60
done
launch
wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = 128 ]'
kill -INT "$(pgrep -P $pid -x mrrun)"
wait $pid
is "SIGINT ends 64 hosts" $? 130
ok "and nothing stays" gone 60
done_testing
