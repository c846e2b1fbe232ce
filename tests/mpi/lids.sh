#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A subnet manager that comes back with another LMC, in mid-job: ports get other LIDs, and paths are opened again there.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

cat >"$tmp/job" <<'END'
restart='echo "lmc 1" >>$SIMFAB_DIR/opensm/opensm.conf; simfab opensm restart >&2'
exec timeout -k 5 100 mrrun -n 2 --hosts h1,h2 --stats "$BUILD/tests/mpi/failover" 60 "$restart" $(printf 'true %.0s' {1..19})
END
round() { sed -n "s/^round $1: \([0-9.]*\) ms.*/\1/p" "$tmp/out"; } # how long it took
run() { MRMPI_LOG_LEVEL=2 timeout -k 5 110 simfab run --topology "$topology" -- bash "$tmp/job" >"$tmp/out" 2>&1 </dev/null; }
sed 's/"$restart"/true/' "$tmp/job" >"$tmp/quiet"
timeout -k 5 110 simfab run --topology "$topology" -- bash "$tmp/quiet" >"$tmp/out" 2>&1 </dev/null
both=$(round 59) # over both paths, when nothing happens
ok "opensm is restarted with LMC 1" run
like "nothing is lost" '^60 rounds, 0 errors' "$tmp/out"
# three of the four ports move, the fourth has more LIDs at the old place: through it the hosts find each other
for h in 0@h1 1@h2; do
  is "$h has noticed that its two ports moved" "$(grep -cE "^mrmpi\[$h\] warning: mlx5_. port 1 has LID [0-9]+ LMC 1 now" "$tmp/out")" 2
  is "and those of the other" "$(grep -cE "^mrmpi\[$h\] info: rank . on h.: mlx5_. port 1 has LID [0-9]+ LMC 1 now" "$tmp/out")" 2
  like "paths are opened again" "^mrmpi\[$h\] info: counters: .* reopened=[1-9]" "$tmp/out" # by a handshake each, or by one
done
ok "both carry as much as before" awk -v is="$(round 59)" -v was="$both" 'BEGIN {print is, was; exit !(was && is && is < 1.02 * was)}'

# a rank then computes for longer than the patience, over links whose adapters say nothing: the guards have moved, too
cat >"$tmp/job" <<'END'
restart='echo "lmc 1" >>$SIMFAB_DIR/opensm/opensm.conf; simfab opensm restart >&2'
MRMPI_PATIENCE=3 exec timeout -k 5 100 mrrun -n 2 --hosts h1,h2 --stats "$BUILD/tests/mpi/ways" 64 1 12000 computes 1000 "$restart"
END
for kind in uc ud; do
  MRMPI_LINKS=$kind run
  like "$kind: a peer that computes after that is waited for" '^longest 1[34][0-9]{3}\.' "$tmp/out"
  for h in 0@h1 1@h2; do
    is "$h has noticed that the other's two ports moved" "$(grep -cE "^mrmpi\[$h\] info: rank . on h.: mlx5_. port 1 has LID [0-9]+ LMC 1 now" "$tmp/out")" 2
  done
done
done_testing
