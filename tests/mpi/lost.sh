#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The network between two hosts goes away: collectives end with an error on every rank, including ranks with their own
# port down, and none hangs; so does a receive of a rank with nothing to send, with its own ports up or down.
. "$(dirname "$0")/../tap.sh"
topologies=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies
topology=$topologies/two-hosts-two-rails.net

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
like "and says why" 'h2. error: rank 0 on h1, mlx5_0 port 1 to mlx5_0 port 1, path 0: the port here is down' "$tmp/out"

# silent HOW WHAT DIRECTORY COMMAND: rank 0, whose ports are up, only waits
silent() {
  MRMPI_PATIENCE=${PATIENCE:-1} MRMPI_RC_TIMEOUT=12 MRMPI_RC_RETRY=2 timeout -k 5 60 simfab run --topology "$topology" -- \
    timeout -k 5 50 mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/silent" "$@" >"$tmp/out" 2>&1 </dev/null
  sed 's/^/# /' "$tmp/out"
}
die='simfab fault node "h2 mlx5_0" die; simfab fault node "h2 mlx5_1" die'
for how in recv any probe coll; do
  MRMPI_LOG_LEVEL=0 silent $how computes "$tmp" "$die"
  ok "a rank that only waits ($how) learns that its peer is gone" grep -q '^rank 0 was told' "$tmp/out"
done
like "and says why" 'h1. error: rank 1 on h2 is lost: no rail has led there for 1 s' "$tmp/out"
for how in win_lock win_start win_fence win_put win_put_long win_get win_get_long win_add win_add_long; do
  MRMPI_LOG_LEVEL=0 silent $how computes "$tmp" "$die"
  ok "so does one that uses a window ($how)" grep -q '^rank 0 was told' "$tmp/out"
done
MRMPI_LOG_LEVEL=0 silent recv_fatal computes "$tmp" "$die"
like "with the default error handler the job ends with a message" 'rank 0 .*MPI_Recv: a process of the job has failed' "$tmp/out"
MRMPI_LOG_LEVEL=0 silent recv computes "$tmp" 'simfab fault host h2 die'
like "so it does when the whole host dies" 'rank 1 .*was killed by signal 9.*ending the job' "$tmp/out"

mkdir "$tmp/told"
told() { is "$1: both ranks learn it, though neither sends" "$(grep -c '^rank [01] was told' "$tmp/out")" 2; }
MRMPI_LOG_LEVEL=0 silent recv waits "$tmp/told" 'simfab fault link "h2 *" down'
told "all cables of a host are pulled"
rm "$tmp"/told/*
topology=$topologies/two-switches-two-paths.net
MRMPI_LOG_LEVEL=0 silent recv waits "$tmp/told" 'simfab fault link leaf1 3 down; simfab fault link leaf1 5 down'
told "cables between switches are cut, all ports are up"
topology=$topologies/two-hosts-two-rails.net

# a rank computes for longer than the patience, while everything that led to it was gone for a moment
for cut in "'h1 *' 1 down for=500ms" "'h2 *' 1 down for=8s"; do
  PATIENCE=2 MRMPI_LOG_LEVEL=1 silent recv lives 20 "simfab fault link $cut"
  like "all cables of ${cut:1:2} are out for a moment: a peer that computes on is waited for" '^it came after 20 s' "$tmp/out"
  like "they were opened again" '0@h1. .*counters: .*broken=[12] reopened=[1-9]' "$tmp/out"
done
topology=$topologies/two-switches-two-paths.net
PATIENCE=2 MRMPI_LOG_LEVEL=1 silent recv lives 20 'simfab fault link leaf1 3 down for=3500ms; simfab fault link leaf1 5 down for=3500ms'
like "so it is when cables between switches were, with all ports up" '^it came after 20 s' "$tmp/out"
like "which broke the paths to it" '0@h1. .*counters: .*broken=[1-9]' "$tmp/out"
topology=$topologies/two-hosts-two-rails.net

# a peer that lives is not disturbed, and a short job asks nobody
MRMPI_LOG_LEVEL=1 silent recv lives 3600 true
like "a peer that computes for an hour is waited for" '^it came after 3600 s' "$tmp/out"
like "while its adapters are asked" '0@h1. .*counters: .*keepalives=[0-9]{2}' "$tmp/out"
not_ok "and nothing breaks" grep -q 'broken=' "$tmp/out"
MRMPI_LOG_LEVEL=1 silent recv lives 0 true
like "a short job goes on" '^it came after 0 s' "$tmp/out"
not_ok "without keepalives" grep -q 'keepalives=' "$tmp/out"
done_testing
