#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout --all: 1800
# Whichever rank ends, wherever in MPI_Init and MPI_Finalize, the job ends, with this rank's status, and nobody else is
# blamed. STRIDE: every which step is tried (9; --all: 1).
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
export TMPDIR=$tmp
stride=${STRIDE:-$([ "${1:-}" = --all ] && echo 1 || echo 9)}
net=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
dies=$BUILD/tests/mrrun/dies client=$BUILD/tests/mrrun/test_launch_client

# one RANKS STATUS CULPRIT COMMAND...: runs it, and prints what is wrong. Sets wrong, and found: false if the rank ended
# well, since it has not so many steps. CULPRIT "any": whoever.
one() {
  local ranks=$1 want=$2 who=$3 rc blamed
  shift 3
  timeout 60 mrrun -n "$ranks" "$@" >"$tmp/one" 2>&1
  rc=$?
  found=true wrong=0
  grep -q ' steps, ' "$tmp/one" && found=false want=0
  blamed=$(grep -oE '^mrrun: rank [0-9]+' "$tmp/one" | grep -oE '[0-9]+$' | sort -u | tr '\n' ' ')
  [ "$who" = any ] && who=${blamed%% *}
  [ $rc = "$want" ] && { [ "$blamed" = "$who " ] || [ -z "$blamed" ]; } && return
  wrong=1
  echo "$*: status $rc, blamed: rank $blamed"
  tail -n 5 "$tmp/one" | cut -c1-200
}
# each FIRST STRIDE RANKS STATUS RANK CODE: at each of these steps until there are no more
each() {
  local step=$1 faults=0
  for (( ; faults < 5; step += $2)); do
    one "$3" "$4" "$5" "$dies" "$5" $step "$6"
    $found || break
    faults=$((faults + wrong))
  done
  [ $step -gt $(($1 + 2 * $2)) ] || echo "few steps were reached"
}
# times COUNT ARGS OF one...
times() {
  local i
  for ((i = 0; i < $1; i++)); do one "${@:2}"; done
}
hosts() { # the same on two simulated hosts
  export -f one each times
  export tmp dies client
  timeout -t "$tmp/took" 250 simfab run --topology "$net" -- bash -c "$*" 2>&1
}

is "rank 0 exits with code 3" "$(each 0 "$stride" 3 3 0 3)" ""
connecting() { # both ranks, at each of the steps around the connection to mrrun's PMIx server
  local step
  for step in {2..7}; do times 3 2 3 any "$dies" -1 $step 3; done
}
is "both exit while mrrun's server takes their connections" "$(connecting)" ""
is "another one is killed" "$(each 3 "$((stride + 2))" 3 137 1 -9)" ""
is "rank 0 exits right behind MPI_Init" "$(times 8 8 3 0 "$dies" 0 init 3)" ""
is "all do" "$(times 8 4 3 any "$dies" -1 init 3)" ""
is "without any MPI_Init" "$(times 2 3 3 1 "$dies" 1 absent 3)" ""
is "just before MPI_Finalize" "$(times 2 3 3 0 "$dies" 0 finalize 3)" ""
is "with code 0: status 1" "$(times 1 3 1 0 "$dies" 0 init 0)" ""
one 3 4 0 "$dies" 0 late 4 >"$tmp/late"
is "behind MPI_Finalize it is no failure, and the code is the job's" "$(cat "$tmp/late" && grep mrrun: "$tmp/one")" ""
one 3 3 0 "$dies" 0 init 3 >/dev/null
like "rank, host and code are told" "^mrrun: rank 0 \(host .*\) exited with code 3 before MPI_Finalize; ending the job$" "$tmp/one"

# Peers that notice before mrrun can, since the rank has much memory to give up, and say so first.
is "peers abort: the rank that exited is to blame" "$(times 3 4 3 2 "$client" react:2:3)" ""
is "or was killed" "$(times 2 4 137 0 "$client" react:0:-9)" ""
is "peers exit with a code: the rank that was killed is to blame" "$(times 2 4 137 2 "$client" answer:2:-9)" ""
is "ranks within a wrapper" "$(times 2 4 3 1 sh -c '"$@"; exit $?' sh "$client" react:1:3)" ""

is "on two hosts rank 0 exits" "$(hosts "each 1 $((stride * 3)) 4 3 0 3")" ""
is "the last rank is killed" "$(hosts "each 5 $((stride * 3)) 4 137 3 -9")" ""
is "rank 0 exits right behind MPI_Init" "$(hosts "times 5 4 3 0 $dies 0 init 3")" ""
is "all do" "$(hosts "times 5 4 3 any $dies -1 init 3")" ""
is "and before MPI_Finalize, where peers answer errors" "$(hosts "times 2 4 3 2 $dies 2 finalize 3 answer")" ""
done_testing
