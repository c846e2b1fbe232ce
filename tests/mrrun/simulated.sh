#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrrun inside a simulated fabric: ranks live on its hosts, and are told so.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
client=$BUILD/tests/mrrun/test_launch_client
net=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
fabric() { timeout 60 simfab run --topology "$net" --no-opensm -- "$@"; }

fabric mrrun -n 4 "$client" >"$tmp/out" 2>"$tmp/err"
is "ranks on simulated hosts find each other" $? 0
is "and know who shares their host" "$(sort "$tmp/out" | sed 's/ job.* map/ map/')" \
    "rank 0/4 local 0/2 nodes 2 node h1 map 0,0,1,1 peers 0,1
rank 1/4 local 1/2 nodes 2 node h1 map 0,0,1,1 peers 0,1
rank 2/4 local 0/2 nodes 2 node h2 map 0,0,1,1 peers 2,3
rank 3/4 local 1/2 nodes 2 node h2 map 0,0,1,1 peers 2,3"
is "programs see their host's name" "$(fabric mrrun -l -n 2 hostname | sort | tr '\n' ' ')" "[0] h1 [1] h2 "
is "--hosts picks and orders" "$(fabric mrrun -l -n 2 --hosts h2,h1 hostname | sort | tr '\n' ' ')" "[0] h2 [1] h1 "
fabric mrrun -n 4 "$client" kill:3:6 >"$tmp/out" 2>"$tmp/err"
is "a rank killed on a simulated host: 128 + signal" $? 134
like "rank and simulated host are told" "^mrrun: rank 3 \(host h2, pid [0-9]+\) was killed by signal 6" "$tmp/err"
fabric mrrun -n 2 --hosts h1,h9 true 2>"$tmp/err"
is "an unknown host is refused" $? 2
like "and named" "the fabric has no host 'h9'" "$tmp/err"
fabric mrrun -n 64 "$client" >"$tmp/out" 2>"$tmp/err"
is "64 ranks on two simulated hosts" "$? $(grep -c '^rank [0-9]*/64 local [0-9]*/32 nodes 2' "$tmp/out")" "0 64"
SIMFAB_DIR=$tmp/none mrrun -n 1 true 2>"$tmp/err"
is "a fabric that is not there is refused" $? 2
like "and why is told" "the fabric at SIMFAB_DIR=$tmp/none does not answer" "$tmp/err"

# The fabric is killed, and with it whoever would clear up behind mrrun.
mkdir "$tmp/dir"
TMPDIR=$tmp/dir simfab run --topology "$net" --no-opensm -- \
    mrrun -n 2 bash -c "echo >>$tmp/ready; sleep 300" >"$tmp/out" 2>&1 &
pid=$!
wait_for 60 eval '[ "$(wc -l <"$tmp/ready")" = 2 ]'
is "a job runs in a fabric" "$(wc -l <"$tmp/ready")" 2
kill -9 $pid
wait $pid 2>/dev/null
wait_for 60 eval '[ -z "$(ls -A "$tmp/dir")" ]'
is "kill -9 of simfab run leaves nothing of mrrun's" "$(ls -A "$tmp/dir")" ""
done_testing
