#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The network between two hosts goes away: collectives end with an error on every rank, those whose own port is down
# included, and none hangs; so does a receive of who has nothing to send.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

# run RANKS PROGRAM: a queue pair gives up after 50 ms, and a peer to which nothing leads is lost a second later
run() {
  MRMPI_PATIENCE=1 MRMPI_RAILS_MAX=1 MRMPI_RC_TIMEOUT=12 MRMPI_RC_RETRY=2 MRMPI_LOG_LEVEL=0 \
    timeout -k 5 120 simfab run --topology "$topology" -- timeout -k 5 90 \
    mrrun -n "$1" --ppn $(($1 / 2)) "$BUILD/tests/mpi/$2" 'simfab fault link "h2 mlx5_0" 1 down' "$tmp/met" >"$tmp/out" 2>&1 </dev/null
  sed 's/^/# /' "$tmp/out"
}
mkdir "$tmp/met"
run 4 coll_lost
like "the job ends as it should" 'aborted the job with code 7' "$tmp/out"
is "each rank has had an error from every collective" "$(grep -c '^4 errors' "$tmp/out")" 4
like "what has been lost is said" 'h1. error: rank [23] on h2 is lost: no rail has led there for 1 s' "$tmp/out"
like "on both sides" 'h2. error: rank [01] on h1 is lost' "$tmp/out"
run 2 p2p_port
ok "a rank that only waits for a message does not wait for ever, when its own port is down" grep -q '^rank 1 was told' "$tmp/out"
like "it ended as it should" 'aborted the job with code 7' "$tmp/out"
like "and says why" 'h2. error: rank 0 on h1, rail 0 .*: the port here is down' "$tmp/out"
done_testing
