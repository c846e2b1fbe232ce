#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The end of a process takes no virtual time: time waits until the process has ended, and until its parent has passed the
# news on.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

soon() {
  head -c 64 /dev/zero >"$tmp/shared"
  simfab run --topology two-hosts-two-rails -- "$BUILD/tests/simfab/ends" "$tmp/shared" >"$tmp/out" 2>&1 </dev/null || { cat "$tmp/out"; return 1; }
  local ms
  ms=$(sed -n 's/^\([0-9]*\) ms$/\1/p' "$tmp/out")
  [ -n "$ms" ] && [ "$ms" -le 5 ] && return
  cat "$tmp/out"
  return 1
}
for i in 1 2 3; do ok "a process dies: another knows within 5 ms of virtual time ($i)" soon; done
done_testing
