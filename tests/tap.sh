# shellcheck shell=bash
# Sourced by test scripts: TAP for bash.
#
#   ok "text" CMD...        one result: passes when CMD exits 0; its output is shown when it does not
#   not_ok "text" CMD...    passes when CMD exits nonzero
#   like "text" REGEX FILE  passes when a line of FILE matches the extended regular expression
#   is "text" GOT WANTED    passes when the two strings are equal
#   sanitizers              prints what the build is made with, as make's SAN: address,undefined or thread or nothing
#   counter                 how simfab catches the time stamp counter here, "trapped" or "patched"; fails where it cannot, and
#                           prints why: figures of programs that read it are worth nothing then. On a fabric
#   listening PORT          is somebody listening on this TCP port?
#   free_port [COUNT]       prints the first of COUNT (1) TCP ports in a row at which nobody listens. Hosts of a simulated fabric
#                           share the machine's: programs that are given none meet those of the test that runs beside
#   two_sockets A B         a machine of two sockets as hwloc reads it (HWLOC_XMLFILE): mlx5_0 is at NUMA node A, mlx5_1 at B
#   wait_for SECONDS CMD... until CMD succeeds: for so many seconds, and at least ten times as many tries. On a machine that has
#                           other work tries take longer, and so does what they wait for. In the end CMD's output is shown
#   process_gone PID        waits as wait_for until there is no such process
#   busy COUNT [PROCESSOR]  starts so many that do nothing but compute, on this processor; busy_end, or the test's end, ends them
#   neighbour               starts a process that computes for 10 ms, rests for 20 ms, and so on: again and again a processor
#                           is taken from others. busy_end ends it, too
#   processor_of PID        prints the first of the processors that it may run on
#   counted COUNTER [RANK]  prints a counter, of all ranks together or one, as `mrrun --stats` has written it to $tmp/out;
#   most COUNTER            the largest of any rank
#   within SECONDS          has the last `timeout -t "$tmp/took" ...` taken less than so many seconds?
#   fault LINK...           simfab fault link LINK... nowait, or the end of the test with what it says
#   done_testing            prints the plan; the exit status says whether all passed
#
# `timeout` is timeout.c here: what a command waits for a processor is none of its time.
# $tmp is a fresh directory, removed at exit. on_exit 'CMD' runs CMD at exit, last first. tap_exec CMD... becomes CMD: exec
# leaves no trap that would remove $tmp.
set -u
: "${BUILD:?set BUILD to the build directory}"
PATH=$BUILD/tests/path:$BUILD/bin:/usr/sbin:/sbin:$PATH
export TEST_ROOT=${TEST_ROOT:-$$} # for timeout.c
tap_n=0 tap_bad=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/mrmpi-test.XXXXXX")
tap_exit=() tap_busy=() tap_never=$tmp/.never
tap_cleanup() {
  local i
  busy_end
  for ((i = ${#tap_exit[@]} - 1; i >= 0; i--)); do eval "${tap_exit[i]}"; done
  rm -rf "$tmp"
}
trap tap_cleanup EXIT
trap 'exit 143' TERM INT HUP
on_exit() { tap_exit+=("$1"); }
tap_exec() { rm -rf "$tmp"; exec "$@"; }
fault() { simfab fault link "$@" nowait >"$tmp/fault" 2>&1 || { cat "$tmp/fault"; exit 1; }; }

listening() {
  awk -v p="$(printf ':%04X' "$1")" '$4 == "0A" && index($2, p) {f = 1} END {exit !f}' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}
free_port() {
  local p i
  while p=$((10000 + RANDOM % 20000)); do # below those that the kernel gives to clients: one may linger there
    for ((i = 0; i < ${1:-1}; i++)); do listening $((p + i)) && continue 2; done
    echo $p
    return
  done
}

tap_result() { # 0|1 text [file with diagnostics]
  tap_n=$((tap_n + 1))
  if [ "$1" -eq 0 ]; then
    printf 'ok %d - %s\n' $tap_n "$2"
  else
    tap_bad=$((tap_bad + 1))
    printf 'not ok %d - %s\n' $tap_n "$2"
    [ -n "${3:-}" ] && [ -s "$3" ] && tail -n 30 "$3" | sed 's/^/# /'
  fi
  return "$1"
}
ok() {
  local text=$1; shift
  "$@" >"$tmp/.tap" 2>&1
  local rc=$?
  [ $rc -eq 0 ] || echo "exit status $rc: $*" >>"$tmp/.tap"
  tap_result $((rc != 0)) "$text" "$tmp/.tap"
}
not_ok() {
  local text=$1; shift
  if "$@" >"$tmp/.tap" 2>&1; then
    echo "exit status 0, a failure was expected: $*" >>"$tmp/.tap"
    tap_result 1 "$text" "$tmp/.tap"
  else
    tap_result 0 "$text"
  fi
}
# True if one of the file's first lines matches, found without a process. False: unknown.
matches_early() { # REGEX FILE
  local lines line
  [ -f "$2" ] && [ -r "$2" ] && mapfile -t -n 40 lines <"$2" || return 1
  for line in ${lines[@]+"${lines[@]}"}; do
    [[ $line =~ $1 ]] && return 0
  done 2>/dev/null
  return 1
}
like() {
  if matches_early "$2" "$3" || grep -Eq -- "$2" "$3"; then
    tap_result 0 "$1"
  else
    { echo "no line matches: $2"; tail -n 20 "$3"; } >"$tmp/.tap" 2>&1
    tap_result 1 "$1" "$tmp/.tap"
  fi
}
is() {
  if [ "$2" = "$3" ]; then
    tap_result 0 "$1"
  else
    printf 'got:    %s\nwanted: %s\n' "$2" "$3" >"$tmp/.tap"
    tap_result 1 "$1" "$tmp/.tap"
  fi
}
sanitizers() {
  nm -D "$BUILD/lib/libmpi.so.12" | awk '
    $2 == "__asan_init" { san = san ",address" }
    $2 == "__tsan_init" { san = san ",thread" }
    $2 ~ /^__ubsan_handle/ && !u++ { san = san ",undefined" }
    END { print substr(san, 2) }'
}
wait_for() {
  local end=$((SECONDS + $1)) tries=$((10 * $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end || --tries > 0)) || { "$@"; return 1; }
    pause
  done
}
# 50 ms between two tries. From a pipe into which nobody writes, where the script has one: `sleep` is a process each time.
# On a simulated host `sleep` knows real time.
pause() {
  if [ -n "${tap_never:-}" ] && [ -z "${SIM_HOST:-}" ] && { [ -p "$tap_never" ] || mkfifo "$tap_never"; } 2>/dev/null; then
    read -r -t 0.05 <>"$tap_never"
    return 0
  fi
  sleep 0.05
}
process_gone() { wait_for 60 eval "! kill -0 $1"; }
export -f listening free_port wait_for pause process_gone
busy() {
  local i
  for ((i = 0; i < $1; i++)); do
    ${2:+taskset -c "$2"} sh -c 'while :; do :; done' &
    tap_busy+=($!)
  done
}
neighbour() {
  mkfifo "$tmp/.rest"
  # shellcheck disable=SC2016
  bash -c 'exec 9<>"$1"
    while :; do
      end=$((${EPOCHREALTIME//[.,]/} + 10000))
      while ((${EPOCHREALTIME//[.,]/} < end)); do :; done
      read -r -t 0.02 -u 9
    done' neighbour "$tmp/.rest" &
  tap_busy+=($!)
}
busy_end() {
  [ ${#tap_busy[@]} -eq 0 ] || kill "${tap_busy[@]}" 2>/dev/null
  tap_busy=()
}
processor_of() { taskset -cp "$1" | sed 's/.*: *//; s/[-,].*//'; }
counted() { grep "^mrmpi\[${2:-}" "$tmp/out" | sed -n "s/.* $1=\([0-9]*\).*/\1/p" | awk '{n += $1} END {print n + 0}'; }
most() { sed -n "s/.* $1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n | tail -n 1; }
within() { awk -v most="$1" '{took = $1; print "took " took " s"} END {exit !(took != "" && took < most)}' "$tmp/took"; }
counter() {
  local host
  host=$(simfab status --hosts | head -n 1)
  if [[ $(simfab exec "$host" -- "$BUILD/tests/simfab/tsc_reads" 2>&1) == "the counter: virtual"* ]]; then
    simfab status | awk '/^time stamp counter:/ {print $6 == 0 ? "patched" : $12 + 0 == 0 ? "trapped" : "trapped or patched"}'
    return 0
  fi
  if [ "${SIMFAB_TSC:-}" = real ]; then
    echo "SIMFAB_TSC=real leaves programs the real time stamp counter"
  else
    echo "simfab cannot catch the time stamp counter on this machine$(sed -n 's/.*time stamp counter stays real .*figures that they make of it//p' "$SIMFAB_DIR/engine.log" | head -n 1)"
  fi
  return 1
}
two_sockets() {
  local n
  echo '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology version="2.0">'
  echo '<object type="Machine" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" allowed_cpuset="0x00000003" nodeset="0x00000003" complete_nodeset="0x00000003" allowed_nodeset="0x00000003" gp_index="1">'
  for n in 0 1; do
    local set; set=$(printf 0x%08x $((1 << n)))
    echo "<object type=\"Package\" os_index=\"$n\" cpuset=\"$set\" complete_cpuset=\"$set\" nodeset=\"$set\" complete_nodeset=\"$set\" gp_index=\"$((10 + n))\">"
    echo "<object type=\"NUMANode\" os_index=\"$n\" cpuset=\"$set\" complete_cpuset=\"$set\" nodeset=\"$set\" complete_nodeset=\"$set\" gp_index=\"$((20 + n))\" local_memory=\"1073741824\"/>"
    echo "<object type=\"Core\" os_index=\"$n\" cpuset=\"$set\" complete_cpuset=\"$set\" nodeset=\"$set\" complete_nodeset=\"$set\" gp_index=\"$((30 + n))\">"
    echo "<object type=\"PU\" os_index=\"$n\" cpuset=\"$set\" complete_cpuset=\"$set\" nodeset=\"$set\" complete_nodeset=\"$set\" gp_index=\"$((40 + n))\"/></object>"
    local d
    for d in 0 1; do
      # shellcheck disable=SC2198 # one of the arguments
      [ "${@:d+1:1}" = $n ] && echo "<object type=\"OSDev\" gp_index=\"$((50 + d))\" name=\"mlx5_$d\" osdev_type=\"3\"/>"
    done
    echo '</object>'
  done
  echo '</object></topology>'
}
skip_all() { echo "1..0 # SKIP $1"; exit 0; }
done_testing() {
  echo "1..$tap_n"
  [ $tap_bad -eq 0 ]
  exit $?
}
