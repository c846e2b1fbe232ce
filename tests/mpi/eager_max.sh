#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout --all: 600
# Ranks with different MRMPI_EAGER_MAX: a sender keeps to what its receiver takes, in one packet and in several.
# --all: as many sizes around each limit where nothing is counted as where something is.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

# job LIMITS...: as many ranks, each with its own, in turn on two hosts; all sizes around all limits, and around what is
# sent eagerly in several packets
job() {
  local limits="$*" sizes="$*" limit packets=${MRMPI_EAGER_PACKETS:-2}
  [ "$packets" = 1 ] || for limit; do sizes+=" $((packets * limit))"; done
  MRMPI_LOG_LEVEL=${MRMPI_LOG_LEVEL:-0} timeout -k 5 100 simfab run --topology "$topology" -- timeout -k 5 90 mrrun -n $# --ppn $(($# / 2)) --stats \
    bash -c "limits=($limits); MRMPI_EAGER_MAX=\${limits[PMIX_RANK]} exec $BUILD/tests/mpi/eager_max $sizes" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 20
  [ $rc = 0 ] && grep -q '^0 errors' "$tmp/out"
}
uncounted=20
[ "${1:-}" = --all ] || uncounted=4
export AROUND=$uncounted
ok "a sender with more than the receiver has room for" job 65536 64
ok "and the other way round" job 64 8192
export MRMPI_LOG_LEVEL=2 MRMPI_EAGER_PACKETS=1 AROUND=20
ok "limits that are no powers of two" job 5000 300
# 41 sizes around each limit in eight ways; what is not longer than 300 bytes goes eagerly: 21 of them
like "what both take goes eagerly at the one" '\[0@h1\].* eager_sent=1[67][0-9] ' "$tmp/out"
like "and at the other" '\[1@h2\].* eager_sent=1[67][0-9] ' "$tmp/out"
MRMPI_EAGER_PACKETS=4
ok "messages of up to four packets" job 5000 300
like "what both take goes eagerly: all around 300, and the half around 1,200" '\[0@h1\].* eager_sent=[45][0-9][0-9] ' "$tmp/out"
unset MRMPI_LOG_LEVEL MRMPI_EAGER_PACKETS
export AROUND=$uncounted
ok "four ranks" job 64 200 1000 3000
done_testing
