#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail loses packets in a cable between switches, where no host's fabricd sees errors. The first job of a user finds the
# losses and tells fabricd; the user's next job is spared the discovery.
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${SIMFAB_DIR:-}" ]; then
  PATH=$BUILD/bin:/usr/sbin:$PATH
  exec simfab run --topology <(simfab topology line --switches 2 --hosts 2 --planes 2) -- bash "$here/hints.sh"
fi
hosts="h1 h2"
. "$here/lib.sh"
. tests/integration/rails-lib.sh
told() { grep -hc "says of rail mlx5_1 port 1" "$tmp"/h?.log | awk '{n += $1} END {print n}'; }
run() { # a job, with its longest operation in $longest
  begin 65536 4
  phase 1 1
  phase 2 0
  ok "the $1 job ends well" end
  longest=$(awk '$1 == "phase" && $3 == "windows" {for (i = 4; i < NF; i++) if ($i == "longest" && $(i + 1) > m) m = $(i + 1)} END {print m}' "$tmp/out")
}

fabricds
ok "fabricd answers" wait_for 20 ctl h2 status
simfab fault link p2-switch1 3 loss=0.05
run first
first=$longest
ok "the first job finds the losses ($first us)" at_least "$first" 1000
ok "and tells fabricd" wait_for 5 eval '[ "$(told)" -ge 1 ]'
is "which sees nothing itself" "$(health h1 mlx5_1) $(health h2 mlx5_1)" "healthy healthy"
run next
ok "the next job is spared ($longest us)" at_most "$longest" 500
is "nothing of it broke or was sent again" "$(counted broken) $(counted resent)" "0 0"
for h in $hosts; do ctl $h rail undrain mlx5_1 || true; done
run third
ok "a job without the hint is not ($longest us)" at_least "$longest" 1000
done_testing
