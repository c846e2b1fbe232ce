#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# Processes started by a program (spawn.c): with and without a launcher, and on simulated hosts. --all: more of them in a row.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
program=${SPAWN_PROGRAM:-$BUILD/tests/mpi/spawn} # standard/abi.sh has its own

many=60
[ "${1:-}" != --all ] || many=200

job() { # RANKS WORDS...; 0 RANKS: a process without launcher
  local n=$1
  shift
  if [ "$n" -eq 0 ]; then timeout -k 5 100 "$program" "$@" </dev/null; else timeout -k 5 100 mrrun -n "$n" "$program" "$@" </dev/null; fi
}
# none are left behind, whatever they do
leftovers() { pgrep -f "^$program" -d ' '; }

ok "a process starts one" job 1 some 1
ok "two start three" job 2 some 3
ok "without launcher" job 0 some 2
[ -n "$(sanitizers)" ] || ok "one starts 64" job 1 some 64
for n in 1 2; do
  ok "two threads of $n start jobs at once, some of which fail" job $n threads 2
done
ok "two programs without arguments" job 2 bare
ok "two programs, with their arguments, directory and path" job 2 parts
ok "infos: numbers, hosts, directories, variables, files" job 2 keys "$tmp"
universe() { timeout -k 5 100 mrrun "${@:2}" "$program" universe "$1"; }
ok "MPI_UNIVERSE_SIZE: the slots of the hosts" universe 7 --hosts localhost:7 -n 2
ok "and the ranks that a host may have" universe 3 --hosts localhost --ppn 3 -n 2
processors=$(nproc)
ok "without them the processors, or the ranks" universe $((processors > 2 ? processors : 2)) -n 2
ok "and the same without launcher" job 0 universe "$processors"
ok "children have children" job 2 tree
ok "$many in a row leave nothing behind" job 1 many $many 1
ok "nor do $((many / 5)) times 8" job 1 many $((many / 5)) 8
ok "what cannot be started is an error of all, not a hang" job 2 wrong
ok "the launcher of the parents is mrrun" job 2 launcher mrrun

# parents that end before their children: begin CASE; then $mrrun is its process, and a child is there
begin() {
  rm -rf "$tmp/life"
  mkdir "$tmp/life"
  # shellcheck disable=SC2086
  timeout -k 5 100 ${by_agents:-mrrun} -n 1 "$program" "$1" "$tmp/life" >"$tmp/words" 2>"$tmp/complaints" </dev/null &
  limited=$!
  wait_for 60 test -e "$tmp/life/child"
  mrrun=$(pgrep -P $limited -x mrrun)
  child=$(cat "$tmp/life/child")
}
lives_of_jobs() { # WHERE: in the names of rows
  local signal status
  begin outlives
  ok "MPI_Finalize does not wait for jobs that were started, $1" wait_for 60 test -e "$tmp/life/parent"
  ok "nor does mrrun end them, $1" kill -0 "$child"
  touch "$tmp/life/go"
  wait $limited
  is "and their output is not lost, $1" "$? $(sort "$tmp/words" | tr '\n' ' ')$(cat "$tmp/complaints")" "0 last words of 0 last words of 1 "
  for signal in TERM KILL; do
    begin outlives
    wait_for 60 test -e "$tmp/life/parent"
    kill -$signal "$mrrun"
    wait $limited
    status=$?
    ok "they end with the mrrun of their parent (SIG$signal), $1" process_gone "$child"
    [ $signal = TERM ] && is "whose status says why, $1" $status 143
  done
  begin outlived
  ok "and with a parent that dies, $1" process_gone "$child"
  wait $limited
  is "the status is the parent's, $1" $? 137
}
lives_of_jobs "on one host"
ok "nobody disconnects" job 2 leaves
ok "children die: an error of the parent" job 1 dies
is "nothing is left behind" "$(leftovers)" ""

# The same on hosts of agents, which are this machine
. "$(dirname "$0")/../mrrun/agents-lib.sh"
by_agents="mrrun --launcher $on_host -hosts a,b --ppn 1"
lives_of_jobs "by agents"
ok "nothing is left of these jobs" gone
by_agents=

far() { MRMPI_LINKS=$1 MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$topology" --model hdr -- timeout 150 mrrun -n 2 --ppn 1 "$program" "${@:2}" </dev/null; }
for links in auto ud; do
  ok "on two hosts ($links)" far $links some 2
  [ "${1:-}" != --all ] || ok "$((many / 5)) in a row there leave nothing behind ($links)" far $links many $((many / 5)) 1
done
is "nothing is left behind there" "$(leftovers)" ""
done_testing
