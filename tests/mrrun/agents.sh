#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs on other hosts: agents that a launcher starts, which pass on output, input, signals and ends.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/agents-lib.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
export MRMPI_LOG_LEVEL=0
client=$BUILD/tests/mrrun/test_launch_client
net=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
sorted() { sort "$tmp/out" | tr '\n' ';'; }

far -hosts a,b,c -n 6 "$client"
is "ranks on three hosts find each other" "$? $(sort "$tmp/out" | sed 's/ job.* map/ map/' | sed -n '1p;4p')" \
    "0 rank 0/6 local 0/2 nodes 3 node a map 0,0,1,1,2,2 peers 0,1
rank 3/6 local 1/2 nodes 3 node b map 0,0,1,1,2,2 peers 2,3"
is "what a login shell says is nobody's output" "$(cat "$tmp/err"; grep -c Welcome "$tmp/out")" 0
ok "nothing is left" gone

# ---- output and input
far -hosts a,b -n 4 -l bash -c 'for i in {1..2000}; do echo "$PMI_RANK line $i"; done; echo "to stderr" >&2'
is "no line is lost, mixed or out of order" \
    "$? $(awk '$2 != substr($1, 2, 1) || $4 != ++n[$2] {bad++} END {print NR, bad + 0}' "$tmp/out") $(sort "$tmp/err" | head -n 1)" \
    "0 8000 0 [0] to stderr"
head -c 3000000 /dev/urandom >"$tmp/random"
far -hosts a,b -n 2 md5sum <"$tmp/random"
is "rank 0 reads standard input" "$? $(grep -c "$(md5sum <"$tmp/random")" "$tmp/out")" "0 1"
far -hosts a,b -s all -n 3 md5sum <"$tmp/random"
is "or all ranks do" "$? $(grep -c "$(md5sum <"$tmp/random")" "$tmp/out")" "0 3"
far -hosts a,b -n 2 true <"$tmp/random"
is "or nobody, and that holds nothing up" "$?" 0
far -hosts a,b -n 4 -outfile-pattern "$tmp/file.%h" cat "$tmp/random"
is "output goes to files of hosts" "$? $(cat "$tmp/file.a" "$tmp/file.b" | wc -c)" "0 12000000"
timeout 60 mrrun --launcher "$on_host" -hosts a,b -n 2 yes 2>"$tmp/err" | head -n 3 >"$tmp/out"
is "when nobody reads any more, ranks get SIGPIPE" "${PIPESTATUS[0]} $(wc -l <"$tmp/out")" "141 3"

# ---- parts, directories, variables
mkdir "$tmp/dir"
printf '#!/bin/sh\necho "$(basename "$(pwd)") $PMI_RANK $ONE $ALL $HERE"\n' >"$tmp/dir/show"
chmod +x "$tmp/dir/show"
HERE='as it is' far -hosts a,b -genv ALL 'for all' -n 2 -wdir "$tmp/dir" -env ONE=1 ./show : -n 1 -host b sh -c 'echo "$PMI_RANK $ONE$ALL"'
is "parts with directories and variables of their own" "$? $(sorted)" "0 2 for all;dir 0 1 for all as it is;dir 1 1 for all as it is;"
far -hosts a,b -n 2 true : -n 1 "$tmp/none"
is "a program that is not there" $? 127
like "is told with its host" "^mrrun: host b, rank 2: cannot run '$tmp/none' in .*: No such file" "$tmp/err"
far -hosts a,b -n 2 -wdir "$tmp/none" true
not_ok "a directory that is not there" test $? = 0
like "as well" "^mrrun: host [ab], rank [01]: cannot enter directory '$tmp/none': No such file" "$tmp/err"
far -hosts a,b -n 2 --bind-to core --report-bindings sh -c 'taskset -p $$'
is "ranks are bound there" "$? $(grep -c '^mrrun: rank [01] is bound to core: processors [0-9]' "$tmp/err") $(sed 's/.*: //' "$tmp/out" | sort -u | wc -l)" "0 2 1"

# ---- ends
far -hosts a,b -n 4 "$client" kill:3:6
is "a rank killed by a signal" $? 134
like "is told with its host" "^mrrun: rank 3 \(host b, pid [0-9]+\) was killed by signal 6 \(SIGABRT.*\); ending the job\$" "$tmp/err"
is "and nobody else" "$(grep -c '^mrrun:' "$tmp/err")" 1
far -hosts a,b -n 4 "$client" abort:2:42
is "MPI_Abort" "$? $(grep -c 'rank 2 .*aborted the job with code 42' "$tmp/err")" "42 1"
far -hosts a,b -n 3 sh -c 'exit $((PMI_RANK + 3))'
is "the first failure's code" "$(grep -oE 'rank . .*exited with code .' "$tmp/err" | sed 's/rank \(.\).* \(.\)/\1 \2/' | awk -v rc=$? '{print ($2 == $1 + 3), ($2 == rc)}' rc=$(sed -n 's/.*exited with code \(.\).*/\1/p' "$tmp/err"))" "1 1"

# ---- signals
start() { # ARGS...: in the background, until all ranks have written their pids
  local ranks=$1
  shift
  forget
  mrrun --launcher "$on_host" "$@" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  # shellcheck disable=SC2171 # two strings make one command
  wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = '"$ranks" ]
}
deaf="trap '' INT TERM; echo \$\$ >>$tmp/pids; sleep 300 & echo \$! >>$tmp/pids; setsid sleep 300 & echo \$! >>$tmp/pids; while :; do wait; done"
start 6 -hosts a,b -n 2 --grace 60 bash -c "$deaf"
kill -INT $pid
wait_for 30 grep -q 'SIGINT: asking 2 ranks to end' "$tmp/err"
sleep 0.2
timeout -t "$tmp/took" 60 sh -c "kill -INT $pid; while kill -0 $pid 2>/dev/null; do sleep 0.05; done" &
wait $pid
is "a second SIGINT ends a job that does not hear the first" $? 137
wait
ok "at once" within 10
ok "with all that ranks have started, and agents" gone
start 2 -hosts a,b -n 2 bash -c "trap 'echo told; exit 0' USR1; echo \$\$ >>$tmp/pids; while :; do sleep 0.05; done"
kill -TSTP $pid
stopped() { [ "$(grep -c '^State:.T' $(sed 's|.*|/proc/&/status|' "$tmp/pids") | grep -c ':1$')" = "$1" ]; }
ok "SIGTSTP stops ranks there" wait_for 30 stopped 2
kill -CONT $pid
ok "SIGCONT has them go on" wait_for 30 stopped 0
kill -USR1 $pid
wait $pid
is "other signals are passed on" "$? $(sorted)" "0 told;told;"
start 6 -hosts a,b -n 2 bash -c "$deaf"
kill -KILL $pid
wait $pid 2>/dev/null
ok "after kill -9 of mrrun nothing is left on any host" gone

# ---- what is lost
sleeps="echo \$\$ >>$tmp/pids; sleep 300"
start 2 -hosts a,b -n 2 sh -c "$sleeps"
kill -KILL "$(agent_of b)"
wait $pid
is "a killed agent ends the job" "$? $(cat "$tmp/err")" "1 mrrun: host b: its agent is lost: the connection ended; ending the job"
ok "and nothing is left" gone
start 2 -hosts a,b -n 2 sh -c "$sleeps"
kill -STOP "$(agent_of a)"
timeout -t "$tmp/took" 60 sh -c "while kill -0 $pid 2>/dev/null; do sleep 0.05; done" &
wait $pid
is "so does one that is silent" $? 1
like "by its name" "^mrrun: host a: its agent is lost: silent for [34]" "$tmp/err"
wait
ok "within 5 s" within 5
ok "and it does not stay" gone

# ---- hosts that cannot be used
cat >"$tmp/bad" <<'END'
#!/bin/bash
host=$1
shift
case $host in
path) exec "/no/such$1" ;;
silent) echo "no shell for you"; exit 3 ;;
forged) echo "mrrun-agent 0123456789abcdef0123456789abcdef 1"; exec sleep 1 ;;
old)
  secret=$(head -c 48 | tail -c 32)
  grep -l -- "$secret" /proc/[0-9]*/cmdline /proc/[0-9]*/environ >"$0.seen" 2>/dev/null
  echo "mrrun-agent $secret 0"
  exec sleep 60 ;;
esac
exec "$@"
END
chmod +x "$tmp/bad"
bad() { # HOST: among good ones
  timeout 60 mrrun --launcher "$tmp/bad" -hosts "a,$1" -n 2 touch "$tmp/started" >"$tmp/out" 2>"$tmp/err"
}
bad path
is "a host without mrrun at this path" $? 1
like "is told" "^mrrun: host path: its agent did not start: '$tmp/bad' ended with status 12[67]: .*No such file.*mrmpi must be there" "$tmp/err"
bad silent
like "what the launcher said last is told" "^mrrun: host silent: its agent did not start: .* ended with status 3: no shell for you\$" "$tmp/err"
bad forged
like "a line without the secret is no agent" "^mrrun: host forged: its agent did not start: .*status 0" "$tmp/err"
bad old
like "an agent of another version is told" "^mrrun: host old: its mrrun has another version: .*version 0" "$tmp/err"
is "no process has the secret in its arguments or environment" "$(cat "$tmp/bad.seen")" ""
not_ok "and no rank has been started" test -e "$tmp/started"
timeout 60 mrrun --launcher "$tmp/none" -hosts a -n 1 true 2>"$tmp/err"
is "a launcher that is not there is refused" "$? $(grep -c "cannot run '$tmp/none' to start agents" "$tmp/err")" "2 1"
timeout 60 mrrun -hosts "-oProxyCommand=true" -n 1 true 2>"$tmp/err"
is "an option is no host" "$? $(cat "$tmp/err")" "2 mrrun: '-oProxyCommand' is no name of a host"
if command -v ssh >/dev/null; then
  timeout 60 mrrun -hosts no-such-host.invalid -n 1 true 2>"$tmp/err"
  is "ssh is the launcher, and says what it does not find" "$? $(grep -cE "^mrrun: host no-such-host.invalid: its agent did not start: 'ssh' ended with status 255: .*resolve" "$tmp/err")" "1 1"
fi

# ---- what schedulers allocate
printf 'a\na\nb\n' >"$tmp/nodes"
PBS_NODEFILE=$tmp/nodes far -l -n 3 sh -c 'echo $PMIX_HOSTNAME'
is "the hosts of PBS" "$? $(sorted)" "0 [0] a;[1] a;[2] b;"
SLURM_JOB_NODELIST='n[1-2]' SLURM_TASKS_PER_NODE='1,2' SLURM_JOB_ID=7 far -l -n 4 sh -c 'echo $PMIX_HOSTNAME'
is "and of Slurm, whose slots are no bound" "$? $(sorted)" "0 [0] n1;[1] n2;[2] n2;[3] n1;"
SLURM_JOB_NODELIST='n[1-2' far -n 1 true
is "a list that is none is refused" $? 2

# the port at which an agent takes connections of its ranks
as() { # USER: whether it is listened to there: 1 the connection ends, more: it stays
  chroot --userspec="$1:$1" / bash -c 'exec 3<>/dev/tcp/127.0.0.1/$0 && read -r -t 2 -u 3' "$port"
}
if [ "$(id -u)" = 0 ] && chroot --userspec=65534:65534 / true 2>/dev/null; then
  far --hosts a,b -n 2 sh -c 'env | sed -n "s/^PMIX_SERVER_URI.*://p" | head -n 1 >"$0.new"; mv "$0.new" "$0"; sleep 20' "$tmp/port" & job=$!
  ok "an agent has a port" wait_for 20 test -s "$tmp/port"
  port=$(cat "$tmp/port")
  as 65534
  is "another user's connection ends" $? 1
  as 0
  ok "this user's stays" test $? -gt 128
  kill "$(pgrep -P "$(pgrep -P $job -x timeout)" -x mrrun)"
  wait $job
else
  ok "connections of other users # SKIP there is none to be" true
fi

# a host whose login takes long
cat >"$tmp/slow" <<END
#!/bin/sh
[ "\$1" = b ] && sleep 6
exec "$on_host" "\$@"
END
chmod +x "$tmp/slow"
timeout 60 mrrun --launcher "$tmp/slow" --hosts a,b -n 2 true >"$tmp/out" 2>"$tmp/err"
is "a host that takes long to start: the job runs" $? 0
is "the host was told" "$(cat "$tmp/err")" "mrrun: still waiting for the agents of these hosts, for 60 s at most: b"

# ---- MPI, on hosts of a simulated fabric
export on_host tmp BUILD
timeout 120 simfab run --topology "$net" -- bash -c '
  mrrun --launcher "$on_host" --stats=json:"$tmp/json" -n 4 "$BUILD/tests/mrrun/part" x >"$tmp/out" 2>"$tmp/err"
  mrrun --launcher "$on_host" --timeout 3 --grace 1 -n 4 "$BUILD/tests/mrrun/hangs" missing grid >"$tmp/hang" 2>&1 &
  for ((i = 0; i < 100; i++)); do
    mrrun --attach $! >"$tmp/attached" 2>/dev/null && grep -q MPI_Allreduce "$tmp/attached" && break
    sleep 0.1
  done
  wait' 2>/dev/null
is "MPI between agents' hosts" "$(sorted)" "x: rank 0/4 appnum 0;x: rank 1/4 appnum 0;x: rank 2/4 appnum 0;x: rank 3/4 appnum 0;"
is "the records of all ranks come" "$(grep -o '"recorded": *true' "$tmp/json" | wc -l)" 4
like "what ranks wait for is told of all hosts" "^mrrun: +ranks 1-3: MPI_Allreduce" "$tmp/hang"
like "and compared" "^mrrun: +a circle: rank 0 waits for rank 1, which waits for rank 0" "$tmp/hang"
like "--attach tells of all hosts, too" "^mrrun: +ranks 1-3: MPI_Allreduce" "$tmp/attached"
done_testing
