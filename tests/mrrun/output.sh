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
done_testing
