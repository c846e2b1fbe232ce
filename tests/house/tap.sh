#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What scripts get from tests/tap.sh: `like` and `wait_for` judge as grep and sleep do, without starting them.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir "$tmp/bin"
for program in grep sleep; do
  printf '#!/bin/bash\necho %s >>%q\nexec %q "$@"\n' "$program" "$tmp/started" "$(type -P "$program")" \
    >"$tmp/bin/$program"
done
chmod +x "$tmp"/bin/*
script() { # COMMAND: in a script of its own; its output in $tmp/said, the programs that it started in $tmp/started
  : >"$tmp/started"
  # tap.sh puts other folders before $tmp/bin
  bash -c ". '$top/tests/tap.sh'; PATH=$tmp/bin:\$PATH; $1" "$top/tests/house/x.sh" >"$tmp/said" 2>&1
}
started() { sort "$tmp/started" | uniq -c | xargs; }

seq 1 200 >"$tmp/lines"
printf 'a line\n\nwith (brackets) and\ttabs\n' >"$tmp/text"
script "like x '^3\$' '$tmp/lines'"
is "like finds an early line" "$(cat "$tmp/said")" "ok 1 - x"
is "without a process" "$(started)" ""
script "like x '^199\$' '$tmp/lines'"
is "it finds a late one" "$(cat "$tmp/said")" "ok 1 - x"
script "like x '^201\$' '$tmp/lines'"
like "it finds none" '^# no line matches: \^201\$$' "$tmp/said"
is "and fails" "$(head -n 1 "$tmp/said")" "not ok 1 - x"
for regex in '^$' '\(brackets\)' '[[:space:]]tabs$' '^(a|b) line$' \
  '\bline\b' 'and.tabs' '--' $'none\na line' 'l{2}' 'line$with'; do
  grep -Eq -- "$regex" "$tmp/text"
  wanted=$?
  script "like x $(printf %q "$regex") '$tmp/text'"
  is "it agrees with grep about $(printf %q "$regex")" "$(head -n 1 "$tmp/said" | grep -c '^ok')" "$((!wanted))"
done
script "like x '^7\$' <(seq 1 9)"
is "it reads pipes" "$(cat "$tmp/said")" "ok 1 - x"
script "like x . '$tmp/no-such-file'"
is "a file that is not there has no line" "$(grep -c '^not ok 1 - x$' "$tmp/said")" 1

count='n=0; try() { ((++n > 10)); }; begin=${EPOCHREALTIME//[.,]/}; wait_for 5 try'
script "$count; echo \$? \$n \$(((\${EPOCHREALTIME//[.,]/} - begin) >= 500000))"
is "wait_for tries again after 50 ms" "$(cat "$tmp/said")" "0 11 1"
is "without a process" "$(started)" ""
script "wait_for 1 false; echo \$?"
is "it ends without success" "$(cat "$tmp/said")" 1
script "bash -c '$count; echo \$? \$n'"
is "in a script's child it is there, too" "$(cat "$tmp/said")" "0 11"
script "SIM_HOST=h1; $count; echo \$? \$n"
is "so it is on a simulated host" "$(cat "$tmp/said")" "0 11"
is "by sleep, which knows real time there" "$(started)" "10 sleep"
done_testing
