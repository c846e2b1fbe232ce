#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Messages that go eagerly else, in windows, while a processor copies less than the rails carry (figures are simulated):
# where the same buffers are used again they are read, which is faster but for the shortest, and whatever the program does
# it is not slower than with MRMPI_RNDV=write, which has them all sent eagerly, from the program's memory if that is known.
# --all: four lengths and windows, else two.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
case $(sanitizers) in *address* | *thread*) skip_all "copies take no time" ;; esac
sed '/^  copy_mbytes_per_s:/d; s/^program:/&\n  copy_mbytes_per_s: 12000/' "$root/etc/models/hdr.yaml" >"$tmp/model.yaml"

simfab topology star --hosts 2 --rails 1 --speed HDR >"$tmp/net"

cases=(4096:32 16384:4)
[ "${1:-}" != --all ] || cases=(4096:32 8192:16 16384:4 16384:16)
what=()
for kind in new apart again new-here new-there again; do
  for case in "${cases[@]}"; do what+=("$kind:$case"); done
done
took() { # RNDV: "KIND BYTES WINDOW NS"
  MRMPI_RNDV=$1 MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$tmp/net" --model "$tmp/model.yaml" -- \
    mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/bursts" "${what[@]}" </dev/null
}
took auto >"$tmp/auto"
took write >"$tmp/write"
ok "all of them were measured" test "$(wc -l <"$tmp/auto") $(wc -l <"$tmp/write")" = "${#what[@]} ${#what[@]}"
paste -d ' ' "$tmp/auto" "$tmp/write" >"$tmp/both"
# the fewest of most windows are still learning what the buffers are worth
while read -r kind bytes window ns _ _ _ eager; do
  most=108
  [ "$kind" != again ] || ((bytes < 8192 || bytes * window < 131072)) || most=80
  ok "$kind, $window messages of $bytes bytes: $ns ns for one, eagerly $eager (at most $most %)" [ $((ns * 100)) -le $((eager * most)) ]
done <"$tmp/both"
done_testing
