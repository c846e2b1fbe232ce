#!/usr/bin/env bash
# The laboratory itself: what is missing is named, several may run at once, a job that hangs is ended and named, a machine
# whose kernel hangs is booted again, and nothing is left behind.
# timeout: 540
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
lab=$top/tests/rxe/lab
export TMPDIR=$tmp/tmp
mkdir "$TMPDIR"
unset LAB_DIR

# ---- something is missing: all programs but QEMU; a directory without a kernel
mkdir "$tmp/bin" "$tmp/boot"
for d in /usr/local/bin /usr/bin /usr/sbin; do
  for f in "$d"/*; do ln -s "$f" "$tmp/bin/" 2>/dev/null; done
done
rm -f "$tmp"/bin/qemu-system-x86_64
LAB_PATH=$tmp/bin "$lab" 'nothing: true' >"$tmp/out" 2>&1
is "without QEMU: 77" $? 77
like "the package is named" '^lab: Debian packages that are missing here: qemu-system-x86$' "$tmp/out"
LAB_BOOT=$tmp/boot "$lab" 'nothing: true' >"$tmp/out" 2>&1
is "without a kernel: 77" $? 77
like "its package is named" '^lab: Debian packages that are missing here: linux-image-amd64$' "$tmp/out"
LAB_BOOT=$tmp/boot LAB_REQUIRED= bash "$top/tests/rxe/netpipe.sh" >"$tmp/out" 2>&1
is "a test that needs it is skipped" "$? $(cat "$tmp/out")" "0 1..0 # SKIP Debian packages that are missing here: linux-image-amd64"
LAB_BOOT=$tmp/boot LAB_REQUIRED=1 bash "$top/tests/rxe/netpipe.sh" >"$tmp/out" 2>&1
not_ok "or fails, where it is required" test $? -eq 0
like "with the reason" '^# lab: Debian packages that are missing here: linux-image-amd64$' "$tmp/out"

"$lab" 'ok: true' >/dev/null 2>"$tmp/out"
skipped=$?
[ $skipped -eq 77 ] && [ -z "${LAB_REQUIRED:-}" ] && { echo "# $(cat "$tmp/out"): the machine itself is not tried"; done_testing; }

# ---- three at once: one whose job hangs, one whose time is over, one that is killed
# shellcheck disable=SC2016
"$lab" --seconds 150 'hangs 6: mrrun -n 2 --hosts a=rxa0,b=rxb0 sh -c "echo rank \$PMIX_RANK waits; sleep 1000"' \
  'next: echo the next one' 'fails: false' >"$tmp/hang" 2>"$tmp/hang.err" &
hang=$!
"$lab" --seconds 1 'late: sleep 1000' >"$tmp/late" 2>&1
late=$?
"$lab" --seconds 150 'killed: sleep 1000' >"$tmp/killed" 2>&1 &
killed=$!
children() { ps -o pid= --ppid "$1"; }
wait_for 60 pgrep -P $killed -x qemu-system-x86
qemu=$(pgrep -P $killed -x qemu-system-x86)
ok "one has its machine running" test -n "${qemu:-}"
kill -KILL $killed
wait $killed 2>/dev/null
ok "it goes with the laboratory, even if that is killed" process_gone "${qemu:-1}"
rm -rf "$TMPDIR"/mrmpi-rxe.*/initrd* # what nobody was left to remove; the directory of the one that still runs is needed

is "a machine whose time is over: 1" $late 1
like "its job is named" 'job late: was not begun \(machine: ended after 1 s\)|job late: did not end before the machine' "$tmp/late"

wait $hang
is "a job that hangs: 1" $? 1
like "it is named" '^job hangs: not done after 6 s; ended' "$tmp/hang"
like "with the last output of one rank" 'rank 0 \(host a, pid [0-9]+\): last output [0-9.]+ s ago: rank 0 waits$' "$tmp/hang"
like "and of the other" 'rank 1 \(host b, pid [0-9]+\): last output [0-9.]+ s ago: rank 1 waits$' "$tmp/hang"
like "and its status" '^job hangs: exit 124$' "$tmp/hang"
like "the next job ran" '^the next one$' "$tmp/hang"
like "and its status is told" '^job next: exit 0$' "$tmp/hang"
like "a job that failed" '^job fails: exit 1$' "$tmp/hang"
cat "$tmp/hang.err" | sed 's/^/# /'
# a frozen process stands for one that waits in the kernel for ever
frozen='if ! test -e /lab/again; then mkdir /tmp/cg && mount -t cgroup -o freezer none /tmp/cg && mkdir /tmp/cg/x &&
  (sleep 1000 & echo $! >/tmp/cg/x/tasks; echo FROZEN >/tmp/cg/x/freezer.state; wait); fi; echo thawed'
"$lab" --seconds 300 'before: echo before' "stuck 6: ${frozen//$'\n'/ }" 'next: echo the next one' >"$tmp/stuck" 2>"$tmp/stuck.err"
is "a process that cannot be killed: the machine is booted again, and the job and the next one end" "$? $(xargs <"$tmp/stuck")" \
  "0 before job before: exit 0 thawed job stuck: exit 0 the next one job next: exit 0"
like "which is told" "^lab: the machine's kernel hangs in job stuck; booted again" "$tmp/stuck.err"
like "with the process" '^lab: +[0-9]+ D +refrigerator +sleep 1000$' "$tmp/stuck.err"
is "once" "$(grep -c '^lab: up after' "$tmp/stuck.err")" 2

# Up within 30 s, on a machine that has other work, too: what its threads waited for a processor does not count, unless
# they worked all that time. (They wait for each other, so on a crowded machine they work more: there are two more tries.)
boot() {
  sed -n 's/^lab: up after \([0-9.]*\) s (\([0-9.]*\) s of processor, \([0-9.]*\) s of waiting.*/\1 \2 \3/p' "$1" |
    awk '{ t = $1 - $3; printf "%.1f", (t > $2 ? t : $2) }'
}
in_time() { awk -v t="${1:-99}" 'BEGIN {exit !(t < 30)}'; }
took=$(boot "$tmp/hang.err")
for _ in 1 2; do
  in_time "$took" && break
  "$lab" --seconds 150 'nothing: true' >/dev/null 2>"$tmp/again.err"
  cat "$tmp/again.err" | sed 's/^/# /'
  took=$(boot "$tmp/again.err")
done
ok "the machine is up within 30 s of its own (${took:-never})" in_time "$took"
done_testing
