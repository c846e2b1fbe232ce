#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The runner (tests/run): what it asks of a test's output, limits, order; and that a test more starts no other processes
# than its own: on a machine where a fork takes milliseconds, a hundred tests would take minutes more.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
tree=$tmp/tree room=$tmp/tree/tests/room
mkdir -p "$room" "$tmp/build/tests/room" "$tmp/bin"
cp "$top/tests/run" "$tree/tests" && cp -r "$top/terminal" "$tree" && ln -s "$BUILD/tests/path" "$tmp/build/tests/path"
script() { # NAME LINE...: a test of the tree
  printf '%s\n' '#!/bin/bash' "${@:2}" >"$room/$1.sh"
}
run() { # ARGUMENT...: the runner, into $tmp/run
  (unset TEST_ROOT TEST_TIMEOUT && BUILD=$tmp/build "$tree/tests/run" "$@") >"$tmp/run" 2>&1
}
judged() { # TEXT NAME REGEX [FLAG]: the line about the script's result
  run "tests/room/$2.sh${4:+:$4}"
  like "$1" "$3" "$tmp/run"
}

script good 'echo 1..3' 'echo ok 1 - a' 'echo "ok 2 - b # SKIP for a reason"' 'echo "# not ok 9"' 'echo ok'
judged "good and skipped results are counted" good '^PASS  tests/room/good.sh  .* 2 ok, 1 skipped .* \(1 of 1\)$'
is "and summed" "$(tail -n 1 "$tmp/run")" "2 passed, 0 failed, 1 skipped"
script bad 'echo ok 1 - a' 'echo not ok 2 - b' 'echo "# the reason"' 'echo 1..2' 'exit 1'
judged "a bad one is a failure" bad '^FAIL  tests/room/bad.sh  .* 1 ok, 1 failed '
like "with its reason" '^ +# the reason$' "$tmp/run"
is "the sum says so" "$(tail -n 1 "$tmp/run")" "1 passed, 1 failed"
run tests/room/bad.sh tests/room/good.sh
is "so does the exit status" $? 1
script fewer 'echo ok 1 - a' 'echo 1..2'
judged "results are missing" fewer '1 failed: planned 2 results, gave 1 \(exit 0\)'
script none 'echo ok 1 - a'
judged "there is no plan" none '1 failed: printed no plan \(exit 0\)'
script status 'echo ok 1 - a' 'echo 1..1' 'exit 7'
judged "the exit status is bad, the results are good" status '1 failed: exit status 7 though every result is ok'
script all 'echo "1..0 # SKIP nothing here"'
judged "everything is skipped" all '^PASS  .* 0 ok, 1 skipped'
# shellcheck disable=SC2016
script computes 'while times >"$0.times"; read -r user _ <"$0.times"; [[ $user == 0m[01].* ]]; do' \
  'for i in {1..20000}; do :; done; done' \
  'echo ok' 'echo 1..1'
judged "processor time is told" computes '^PASS  .* cpu [2-9] s '

script late '# timeout: 1' '# timeout --all: 2' 'sleep 600'
judged "a script that asks for a limit has it" late 'failed: ran past 1 s'
judged "with the flag another one" late 'failed: ran past 2 s' --all
judged "with another flag the first" late 'failed: ran past 1 s' --some

# the order of their starts
order() { printf 'echo %s >>%s; echo ok; echo 1..1' "$1" "$tmp/order"; }
script long '# timeout: 900' "$(order long)"
script short '# timeout: 200' "$(order short)"
script alone '# alone' '# timeout: 1000' "$(order alone)"
printf '%s\n' '#!/bin/bash' "$(order program)" >"$tmp/build/tests/room/test_program"
chmod +x "$tmp/build/tests/room/test_program"
run -j 1 tests/room/test_program tests/room/alone.sh tests/room/short.sh tests/room/long.sh
is "long scripts are first, then short ones and programs; one that is to be alone is last" "$(xargs <"$tmp/order")" \
  "long short program alone"

# programs that the runner starts, by name
for program in awk cat grep head mktemp mv rm sed sort tail tr wc; do
  printf '#!/bin/bash\necho %s >>%q\nexec %q "$@"\n' "$program" "$tmp/started" "$(type -P "$program")" \
    >"$tmp/bin/$program"
done
# the runner puts the folder of the interpreter first
printf '#!/bin/bash\necho %q\n' "$tmp/bin/python3" >"$tmp/bin/python3"
chmod +x "$tmp"/bin/*
started() { # TEST...: how many
  : >"$tmp/started"
  PATH=$tmp/bin:$PATH run "$@"
  wc -l <"$tmp/started"
}
for i in 1 2 3 4 5 6 7 8; do script "quick$i" 'echo ok 1 - a' 'echo 1..1'; done
two=$(started tests/room/quick{1,2}.sh)
ok "the runner starts programs of its own ($two)" test "$two" -gt 0
is "but none for a test: with eight of them as many as with two" "$(started tests/room/quick{1..8}.sh)" "$two"
is "eight have run" "$(tail -n 1 "$tmp/run")" "8 passed, 0 failed"
done_testing
