#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An operation tells the program of a failure before any other news (unheard.c): the window can be freed at once.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
# shellcheck disable=SC2016
printf '#!/bin/sh\nhost=$1\nshift\nexec simfab exec "$host" -- "$@"\n' >"$tmp/on"
chmod +x "$tmp/on"

unheard() { # LINKS CASE
  MRMPI_LINKS=$1 MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$topology" --model hdr -- \
    timeout 110 mrrun --launcher "$tmp/on" --hosts h1,h2 --recover --timeout 90 -n 4 \
    "$BUILD/tests/mpi/unheard" "$2" >"$tmp/out" 2>&1 </dev/null
  rc=$?
  cat "$tmp/out"
  return $rc
}
for links in auto ud; do
  for case in lock request; do
    ok "an operation tells of a failure, and the window can be freed ($links, $case)" unheard $links $case
    not_ok "no other rank is lost" grep -q "agent is lost" "$tmp/out"
    like "rank 1 has died" 'rank 1 .*was killed by signal 9 .*the job goes on without this rank' "$tmp/out"
  done
done
done_testing
