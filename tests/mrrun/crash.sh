#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that dies of a signal tells its stack, and dies of the same signal; whoever has a handler keeps it.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -z "$(sanitizers)" ] || skip_all "sanitizers have handlers of their own"
crash=$BUILD/tests/mrrun/crash
export MRMPI_LOG_LEVEL=0
ulimit -S -c 0

dies() { # HOW STATUS
  timeout 60 mrrun --grace 1 -n 2 "$crash" "$1" >"$tmp/out" 2>"$tmp/err"
  is "$1: the status" $? "$2"
}
frame() { like "$1" "^mrmpi\\[1@[^]]*\\] error:   #$2\$" "$tmp/err"; }
told() { like "$1" "^mrmpi\\[1@[^]]*\\] error: $2\$" "$tmp/err"; }
not_told() { is "$1" "$(grep -c 'ends this rank at' "$tmp/err")" 0; }
at='\+ 0x[0-9a-f]+ \(.*tests/mrrun/crash \+0x[0-9a-f]+\)'

dies null 139
told "the signal and the address" 'SIGSEGV \(address \(nil\)\) ends this rank at'
frame "the function in which it died" "0 deepest $at"
frame "and its caller" "1 .*/crash \\+0x[0-9a-f]+"
is "nothing of the handler itself" "$(grep -c 'crash_\|on_fatal' "$tmp/err")" 0
is "it is told once, by this rank alone" "$(grep -c 'ends this rank at' "$tmp/err")" 1
like "mrrun names the rank and the signal" '^mrrun: rank 1 .* was killed by signal 11 ' "$tmp/err"
if command -v addr2line >/dev/null; then
  # shellcheck disable=SC2091 # the output names the command to run
  is "addr2line knows the line" "$($(sed -n 's/.* source lines: //p' "$tmp/err") | sed -n 's/ (disc.*//; 1s|.*/||p')" \
    "crash.c:$(grep -n '"null"' "$root/tests/mrrun/crash.c" | awk -F: '{ print $1 + 1 }')"
else
  ok "addr2line # SKIP not installed" true
fi

dies divide 136
told "a division" 'SIGFPE \(address 0x[0-9a-f]+\) ends this rank at'
frame "its place" "0 deepest $at"
dies abort 134
told "abort()" 'SIGABRT ends this rank at'
frame "its caller" "[0-9]+ .*/crash \\+0x[0-9a-f]+"
dies overflow 139
frame "a stack that is full" "[01] overflow $at"
told "frames that are alike once" '  and [0-9]+ times more'
dies heap 134
frame "a heap that is broken, whose lock is held" "[0-9]+ deepest $at"
dies threads 139
is "two threads at once: one tells" "$(grep -c 'ends this rank at' "$tmp/err")" 1
frame "all of it" "0 .*crash \+0x[0-9a-f]+"
dies jump 139
frame "a jump to nowhere" '0 \(nil\)'
frame "and where it came from" "1 deepest $at"

dies before 9
not_told "a handler of the program's is left alone"
dies later 9
not_told "one that comes later, too"
dies child 0
not_told "a child is not the rank"
like "and dies as without us" '^the child: signal 11$' "$tmp/out"
dies after 139
not_told "nor is a program that has ended MPI"

# sent from outside: the rank waits in a system call
timeout 60 mrrun --grace 1 -n 2 bash -c 'trap "kill -SEGV \$child" USR1; "$0" sent & child=$!; while kill -0 $child 2>/dev/null; do wait $child; s=$?; done; exit $s' "$crash" >"$tmp/out" 2>"$tmp/err"
told "a signal that is sent, and its sender" 'SIGSEGV, sent by process [0-9]+, ends this rank at'
frame "where the rank waited" "[0-9]+ deepest $at"

timeout 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- mrrun --grace 1 -n 2 "$crash" null >"$tmp/out" 2>"$tmp/err"
is "a simulated host: the status" $? 139
frame "the function" "0 deepest $at"

# a core has the instruction that faulted
if [ "$(id -u)" = 0 ] && [ "$(ulimit -H -c)" != 0 ] && [ "$(cat /proc/sys/kernel/core_pattern)" = core ] && command -v gdb >/dev/null; then
  (cd "$tmp" && ulimit -S -c unlimited && timeout 60 mrrun --grace 1 -n 2 "$crash" null >"$tmp/out" 2>"$tmp/err")
  gdb -batch -ex bt "$crash" "$tmp"/core* >"$tmp/out" 2>&1
  like "a core file begins where the rank died" '^#0 .*deepest' "$tmp/out"
else
  ok "a core file # SKIP no gdb, or cores go elsewhere" true
fi
done_testing
