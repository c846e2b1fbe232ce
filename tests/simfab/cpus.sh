#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks are held on the engine's processor while they hand over to it and back, and do not see it: whichever way they ask, hand on or
# set where they may run.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ "$(nproc)" -gt 1 ] || skip_all "there is one processor only"

simfab run --topology two-hosts-two-rails -- mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/cpus" >"$tmp/out" 2>"$tmp/err"
is "the program ends well" $? 0
for way in sched_getaffinity pthread_getaffinity_np syscall "a thread" fork "a program" sched_setaffinity; do
  like "held, and asked by $way: as before" "^$way: the same$" "$tmp/out"
done
done_testing
