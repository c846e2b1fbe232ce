#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rail that is degraded: messages that are too short to be cut are as fast as without the rail, whether the rail goes on
# losing packets or not. Figures are simulated, but when fabricd looks is a matter of real time.
# timeout: 120
[ -n "${SIMFAB_DIR:-}" ] || {
  . "$(dirname "$0")/../tap.sh"
  tap_exec simfab run --topology two-hosts-two-rails --model hdr -- bash "$0"
}
. "$(dirname "$0")/lib.sh"
. tests/integration/rails-lib.sh
fabricds
weighs_little() { ctl h2 rail list | grep -Eq 'device: mlx5_1,.* health: degraded, weight: 0\.[123]'; }

for size in 32768 65536; do
  begin $size 4
  phase 1 0
  simfab fault link "h2 mlx5_1" loss=0.0004
  ok "$size: fabricd leaves the rail less than half of its weight" wait_for 60 weighs_little
  simfab fault clear
  phase 2 0.3
  phase 3 0.5
  phase 4 0
  ok "$size: an administrator drains the other end" ctl h1 rail drain mlx5_1
  phase 5 0.3
  phase 6 0.5
  phase 7 0
  is "$size: the rail was degraded until then" "$(health h2 mlx5_1)" degraded
  ok "$size: the job ends well" end
  ok "$size: with the degraded rail $(figure 3 rate) MB/s, without $(figure 6 rate)" at_least "$(figure 3 rate)" "$(times "$(figure 6 rate)" 0.99)"
  ctl h1 rail undrain mlx5_1 && ctl h2 rail undrain mlx5_1
  wait_for 10 is_now h2 mlx5_1 healthy
done

one=$(figure 6 rate)
begin 65536 4
phase 1 0
simfab fault link "h2 mlx5_1" loss=0.001
ok "fabricd sees that a rail loses one packet in a thousand" wait_for 60 not_healthy h2 mlx5_1
sleep 2
phase 3 1.5
phase 4 0
ok "the job ends well" end
ok "the rail costs nothing: $(figure 3 rate) of $one MB/s" at_least "$(figure 3 rate)" "$(times "$one" 0.97)"
done_testing
