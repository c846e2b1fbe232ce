#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The demo of failover holds, and says what it is expected to say.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ -z "$(sanitizers)" ] || skip_all "the demo's figures are for plain builds; mpi/failover.sh runs in sanitized ones"
ok "the demo exits 0" timeout -t "$tmp/took" 180 bash tests/demo/failover "$tmp/plot.svg"
cp "$tmp/.tap" "$tmp/demo"
like "it says that figures are simulated" 'simulated: every figure below is virtual time' "$tmp/demo"
like "it names the packages" 'NPmpich2: package netpipe-mpich2 [0-9.]+.* libmpich\.so\.12' "$tmp/demo"
is "six cables are pulled and put back" \
  "$(grep -c 'cable pulled' "$tmp/demo") $(grep -c 'cable put back' "$tmp/demo")" "6 6"
is "each carries data again" "$(grep -c 'carries data again' "$tmp/demo")" 6
like "NPmpich2's own output is right" 'NPmpich2 ended with status 0 and says: Integrity check passed' "$tmp/demo"
like "and that of xdlu" 'xdlu ended with status 0 and says: 18 tests completed and passed' "$tmp/demo"
for r in mlx5_0 mlx5_1; do like "bytes of $r" "carried by $r: [0-9]{9}" "$tmp/demo"; done
like "the longest interruption" 'longest interruption of NPmpich2: 0\.[0-9]+ ms while a rail was left' "$tmp/demo"
like "and that of xdlu" 'longest interruption of xdlu: [0-9]\.[0-9]+ ms' "$tmp/demo"
like "it ends with the plot" "plot: $tmp/plot\\.svg" <(tail -n 1 "$tmp/demo")
like "the plot says that it is simulated" 'SIMULATED' "$tmp/plot.svg"
like "and the model" 'timing model sdr-pcix' "$tmp/plot.svg"
ok "under three minutes, on a busy machine, too" within 180
done_testing
