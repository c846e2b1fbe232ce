#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fabricd does not answer, or is not there, when a job begins: the job gets its class while it runs.
# timeout: 300
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/simple.yaml

eval "$(set_class urgent)"
ok "a job that is urgent from the beginning" exchange 5 "$keep" "$kept"
lanes 1000 >"$tmp/urgent"
said() { grep -c "$1" "$tmp/out"; } # TEXT

began() { # ROUNDS COMMAND...: the job, with both daemons stopped
  signal STOP h1 h2
  FIRST=$keep exchange "$@"
}
signal() { # SIGNAL HOST...
  local h
  for h in "${@:2}"; do kill "-$1" "${fabricd[$h]}"; done
}
continued() { # HOST...: the command
  local h
  for h in "$@"; do printf 'kill -CONT %d; ' "${fabricd[$h]}"; done
}
all_urgent() { # as what the job that has just ended carried at its end
  is "$1: it ends on the lanes of its class" "$(lanes 1000)" "$(cat "$tmp/urgent")"
  ok "$1: both ends have changed ($(counted changed))" test "$(counted changed)" -ge 2
  is "$1: nothing broke, moved or was sent again" "$(counted broken) $(counted moved) $(counted resent)" "0 0 0"
  is "$1: that the daemon answers at last is told once by each rank" "$(said 'fabricd answers now')" 2
}

ok "stopped on both hosts: the job runs, on service level 0" began 5 "$kept"
is "which is said once for each host" "$(said 'fabricd at .* cannot be asked (Connection timed out)')" 2
is "and nothing else about it" "$(said fabricd)" 2
is "all of it" "$(lanes 1000)" 0
signal CONT h1 h2

# no rank is away for long: one that runs a command answers nobody who wants to connect
export PAUSE_MS=300
ok "it goes on in mid-job" began 12 true "$(continued h1 h2)" "$keep" "$kept"
all_urgent "stopped"

ok "on one host after the other" began 12 "$(continued h2)" "$(continued h1)" "$keep" "$kept"
all_urgent "one by one"

# started in mid-job where there is none: what is killed leaves its socket, at which nobody listens; then without
begin() {
  local run h
  rm -f "$tmp/begin"
  PAUSE_MS=9000 PAUSES=1 exchange 7 "touch $tmp/begin" "$keep" >"$tmp/shown" 2>&1 &
  run=$!
  wait_for 60 test -e "$tmp/begin"
  for h in h1 h2; do start_fabricd $h etc/policies/simple.yaml; done
  wait $run && eval "$kept" && return
  cat "$tmp/shown"
  return 1
}
for left in "a socket" nothing; do
  signal KILL h1 h2
  wait "${fabricd[@]}" 2>/dev/null
  [ "$left" = nothing ] && rm "$SIMFAB_DIR"/fabricd-h?.sock
  ok "the daemons, of which $left is left, are started in mid-job" begin
  all_urgent "$left"
done
done_testing
