#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Long work shows "n of N" on a terminal and nothing elsewhere, and leaves nothing of that on the screen: a fabric of 288
# hosts comes up, a policy is put in force there and taken back; tests, figures, demos.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v script >/dev/null || skip_all "no script(1) here (package bsdutils)"
screen() { python3 "$top/tests/terminal/screen.py" "$1" "$tmp/$2" | sed '/^Script \(started\|done\) on/d'; }
on_terminal() { # NAME COMMAND...: its output, as written to the terminal, is in $tmp/NAME
  printf -v words '%q ' "${@:2}"
  TERM=xterm script -qefc "$words" "$tmp/$1" </dev/null >/dev/null
}
signs() { LC_ALL=C tr -d -c '\r\033' <"$tmp/$1" | wc -c; } # of a line that is replaced

# ---- a fabric of 288 hosts
cat >"$tmp/inside" <<SH
on_terminal() { # NAME COMMAND...
  printf -v words '%q ' "\${@:2}"
  TERM=xterm script -qefc "\$words" "$tmp/\$1" </dev/null >/dev/null
}
export FABRICD_SOCKET=\$SIMFAB_DIR/fabricd-h001.sock
simfab exec --real-clock h001 -- fabricd -c "$top/etc/fabricd/simfab.yaml" 2>"$tmp/log" & daemon=\$!
for ((i = 0; i < 300; i++)); do fabricctl status >/dev/null 2>&1 && break; sleep 0.1; done
policy=\$SIMFAB_DIR/policy.yaml
cp "$top/etc/policies/simple.yaml" "\$policy"
on_terminal apply fabricctl policy apply "\$policy"; echo "\$?" >>"$tmp/status"
TERM=dumb script -qefc "fabricctl policy apply --dry-run \$policy" "$tmp/dumb" </dev/null >/dev/null; echo "\$?" >>"$tmp/status"
# for these shares more than 32 entries would be better, which opensm would not write: hdr's tables have 64
sed -i 's/share: 60/share: 59/' "\$policy"
fabricctl policy apply "\$policy" >"$tmp/quiet" 2>&1; echo "\$?" >>"$tmp/status"
on_terminal back fabricctl policy rollback; echo "\$?" >>"$tmp/status"
kill \$daemon
wait \$daemon
SH
simfab topology fat-tree --hosts 288 >"$tmp/net"
# a machine that is quick has the subnet up before there is anything to show
mkdir "$tmp/slow"
printf '#!/bin/sh\nsleep 1\nexec %s "$@"\n' "$(PATH=$PATH:/usr/sbin:/sbin command -v opensm)" >"$tmp/slow/opensm"
chmod +x "$tmp/slow/opensm"
PATH=$tmp/slow:$PATH on_terminal simfab simfab run --topology "$tmp/net" --model hdr -- bash "$tmp/inside"
is "policies are put in force on 288 hosts" "$(xargs <"$tmp/status")" "0 0 0 0"
screen shown simfab >"$tmp/shown"
like "simfab run tells how many ports are up" '^simfab: [0-9]+ of [0-9]{3,4} ports are up$' "$tmp/shown"
is "and leaves nothing of that" "$(screen left simfab)" ""
for order in apply back; do
  screen shown $order >"$tmp/shown"
  like "policy $order: how many ports have the tables" '^fabricctl: [0-9]+ of [0-9]{3,4} ports have the tables$' "$tmp/shown"
  ports=$(sed -n 's/^fabricctl: \([0-9]*\) of [0-9]* ports have.*/\1/p' "$tmp/shown")
  is "which become more" "$ports" "$(sort -n <<<"$ports")"
  screen left $order >"$tmp/left"
  like "what it says stands there" '^verified: [0-9]+ ports of [0-9]+ nodes have the policy.s tables, after [0-9]+ ms$' "$tmp/left"
  is "and nothing about its progress" "$(grep -E '^fabricctl: [0-9]+ ' "$tmp/left")" ""
done
like "without a terminal it says the same" '^verified: [0-9]+ ports of [0-9]+ nodes' "$tmp/quiet"
is "and no more" "$(signs quiet) $(grep -cE '^fabricctl: [0-9]+ ' "$tmp/quiet")" "0 0"
is "nor on a terminal that cannot erase" "$(LC_ALL=C tr -d -c '\033' <"$tmp/dumb" | wc -c) $(grep -cE '^fabricctl: [0-9]+ ' "$tmp/dumb")" "0 0"

# ---- tests
mkdir -p "$tmp/tree/tests/room" "$tmp/build/tests"
cp "$top/tests/run" "$tmp/tree/tests" && cp -r "$top/terminal" "$tmp/tree" && ln -s "$BUILD/tests/path" "$tmp/build/tests/path"
printf '#!/bin/bash\nsleep 1.5\necho ok 1 - slept\necho 1..1\n' >"$tmp/tree/tests/room/sleeps.sh"
on_terminal tests env BUILD="$tmp/build" "$tmp/tree/tests/run" tests/room/sleeps.sh
screen shown tests >"$tmp/shown"
like "tests/run tells what runs" '^tests/run: 0 of 1 have ended; running: room/sleeps.sh$' "$tmp/shown"
is "and leaves its results" "$(screen left tests | sed 's/ok .*//' | xargs)" "PASS tests/room/sleeps.sh 1 1 passed, 0 failed"
BUILD=$tmp/build "$tmp/tree/tests/run" tests/room/sleeps.sh >"$tmp/quiet" 2>&1
is "without a terminal nothing else" "$(signs quiet) $(grep -c running "$tmp/quiet")" "0 0"

# ---- figures
on_terminal figure "$top/bench/figures/run" --out "$tmp/figures" 000-fig8
screen shown figure >"$tmp/shown"
like "figures: how many runs have ended" '^figures: [0-9]+ of [0-9]+ runs have ended$' "$tmp/shown"
is "and nothing of that is left" "$(screen left figure | grep -c 'runs have ended')" 0
cat >"$tmp/long.py" <<PY
import sys
sys.path.insert(0, "$top/terminal")
import progress
p = progress.Progress()
p.show("1 of 2")
p.erase()
print("done")
PY
is "without a terminal there is none" "$(python3 -B "$tmp/long.py" 2>&1)" "done"

# ---- scripts: the demos have their lines from here
cat >"$tmp/long" <<SH
. "$top/terminal/progress.sh"
for i in 1 2 3; do progress "long: run \$i of 3"; done
progress_erase
echo done
SH
on_terminal script bash "$tmp/long"
is "a script" "$(screen shown script | xargs) $(screen left script | xargs)" "long: run 1 of 3 long: run 2 of 3 long: run 3 of 3 done"
is "without a terminal" "$(bash "$tmp/long" 2>&1)" "done"
TERM=xterm script -qefc "stty cols 12; bash $tmp/long" "$tmp/narrow" </dev/null >/dev/null
is "a narrow terminal gets what it has room for" "$(screen shown narrow | head -n 1)" "long: run 1"
done_testing
