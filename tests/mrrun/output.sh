#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Output of many ranks: nothing lost, no line broken by another, labels, stderr apart, a reader that goes away.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}

# 8 ranks write 2000 lines each, in pieces that do not end where lines end.
cat >"$tmp/chatter" <<'SH'
#!/usr/bin/env python3
import os
r = os.environ["PMIX_RANK"]
text = "".join("rank %s line %05d %s\n" % (r, i, "x" * (i % 97)) for i in range(2000)).encode()
for at in range(0, len(text), 1237):
    os.write(1, text[at:at + 1237])
SH
chmod +x "$tmp/chatter"
timeout 60 mrrun -n 8 "$tmp/chatter" >"$tmp/out" 2>"$tmp/err"
is "the writers end well" $? 0
is "all lines are there" "$(wc -l <"$tmp/out")" 16000
is "all lines are whole" "$(grep -Ecv '^rank [0-7] line [0-9]{5} x*$' "$tmp/out")" 0
for r in 0 7; do
    grep "^rank $r " "$tmp/out" >"$tmp/one"
    PMIX_RANK=$r "$tmp/chatter" >"$tmp/alone"
    ok "rank $r's lines are complete and in order" cmp "$tmp/one" "$tmp/alone"
done

timeout 60 mrrun -l -n 8 "$tmp/chatter" >"$tmp/out" 2>"$tmp/err"
is "each line has its rank's label" "$(grep -Ec '^\[([0-7])\] rank \1 line' "$tmp/out")" 16000

timeout 60 mrrun -n 4 "$tmp/chatter" | (sleep 0.3; cat) >"$tmp/out"
is "a slow reader gets everything" "$(wc -l <"$tmp/out")" 8000

timeout 60 mrrun -n 2 sh -c 'echo out; echo err >&2' >"$tmp/out" 2>"$tmp/err"
is "stdout and stderr stay apart" "$(sort "$tmp/out" | tr '\n' ' ')$(sort "$tmp/err" | tr '\n' ' ')" "out out err err "
is "a last line without newline is kept" "$(timeout 60 mrrun -n 1 printf 'no newline')" "no newline"

head -c 3000000 /dev/zero | tr '\0' 'z' >"$tmp/long"
timeout 60 mrrun -n 1 cat "$tmp/long" >"$tmp/out"
ok "a line of 3 MB comes through" cmp "$tmp/long" "$tmp/out"

# The reader leaves: ranks find out as they would in a pipeline, and nothing hangs.
timeout 30 mrrun -n 2 yes 2>"$tmp/err" | head -n 1 >"$tmp/out"
is "a reader that goes away ends the job" "${PIPESTATUS[0]} $(cat "$tmp/out")" "141 y"
like "and why is told" "was killed by signal 13 \(SIGPIPE\)" "$tmp/err"
# A full disk is no reader that goes away: what is lost is told, and the job has failed.
timeout 30 mrrun -n 1 echo lost >/dev/full 2>"$tmp/err"
is "output that cannot be written is a failure" $? 1
like "and is told, with the reason" "^mrrun: cannot write to standard output: No space left on device; output is lost\$" "$tmp/err"
timeout 30 mrrun -n 1 sh -c 'echo lost; exit 7' >/dev/full 2>"$tmp/err"
is "but the code of a rank goes before it" $? 7
timeout 30 mrrun -n 2 echo nobody >&- 2>"$tmp/err"
is "standard output that is closed loses nothing that was wanted" "$? $(cat "$tmp/err")" "0 "

# At a terminal: a question without newline is shown before the answer is typed, and Ctrl-C ends the job.
cat >"$tmp/terminal" <<'PY'
#!/usr/bin/env python3
import os, pty, re, select, sys, time
script = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp("mrrun", ["mrrun", "-n", "2", "bash", "-c",
        'if [ $PMIX_RANK = 0 ]; then printf "name? "; read x; echo "hi $x"; fi; echo ready; sleep 60'])
out, quiet = b"", 0  # tenths of a second in which nothing came
steps = [(b"name\\? ", b"joe\n"), (b"hi joe(.|\n)*ready(.|\n)*", b"\x03")]
while quiet < 200:
    quiet += 1
    if select.select([fd], [], [], 0.1)[0]:
        quiet = 0
        try:
            data = os.read(fd, 1000)
        except OSError:
            break
        if not data:
            break
        out += data
    if steps and re.search(steps[0][0], out):
        os.write(fd, steps.pop(0)[1])
sys.stdout.buffer.write(out)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
chmod +x "$tmp/terminal"
"$tmp/terminal" >"$tmp/out" 2>&1
is "at a terminal, Ctrl-C ends the job" $? 130
like "the question was shown and answered" "^name\\? joe" "$tmp/out"
like "and the answer reached rank 0" "^hi joe" "$tmp/out"
done_testing
