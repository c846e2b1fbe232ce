#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts with more active ports than there can be rails: a job runs on the first eight, and once on each host it is said
# which ports are left out, unless the user has chosen.
. "$(dirname "$0")/../tap.sh"
probe=$BUILD/tests/libmrmpi/vc_probe

# Two hosts with an HCA of one port, mlx5_0, and five of two: 11 ports each, all on one switch
netlist() {
  local h d guid port=0 cables='' nodes=''
  for h in 1 2; do
    for d in 0 1 2 3 4 5; do
      guid=5b00${h}${d}00
      nodes+=$'\n'"caguid=0x$guid"$'\n'"Ca $((d ? 2 : 1)) \"H-$h-$d\"  # \"h$h mlx5_$d\""$'\n'
      cables+="[$((++port))] \"H-$h-$d\"[1](${guid%00}01)  # \"h$h mlx5_$d\" lid 0 4xSDR"$'\n'
      [ $d -gt 0 ] && cables+="[$((++port))] \"H-$h-$d\"[2](${guid%00}02)  # \"h$h mlx5_$d\" lid 0 4xSDR"$'\n'
    done
  done
  printf 'switchguid=0x5b000001\nSwitch 24 "S-1"  # "leaf1" base port 0 lid 0 lmc 0\n%s%s' "$cables" "$nodes"
}
netlist >"$tmp/many.net"

cat >"$tmp/jobs.sh" <<END
run() { # NAME [VARIABLE=VALUE]
  env "\${@:2}" timeout 60 mrrun -n 4 --hosts h1,h2 $probe 50 >$tmp/\$1 2>&1
  echo "exit \$?" >>$tmp/\$1
}
run plain
run beyond MRMPI_RAILS_MAX=16
run fewer MRMPI_RAILS_MAX=3
run eight MRMPI_RAILS_MAX=8
run named MRMPI_DEVICES=mlx5_0,mlx5_4:2,mlx5_5
run nine MRMPI_DEVICES=mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5:2
run silent MRMPI_LOG_LEVEL=0
run told MRMPI_LOG_LEVEL=2
END
ok "two hosts with 11 ports each" timeout 200 simfab run --topology "$tmp/many.net" --model sdr-pcix -- bash "$tmp/jobs.sh"

said() { grep -c 'not used' "$tmp/$1"; } # JOB: so many times
names='3 active port\(s\) are not used, because there can be 8 rails: mlx5_4:2,mlx5_5:1,mlx5_5:2; .*MRMPI_DEVICES'
for job in plain beyond fewer eight named nine silent told; do is "job $job runs" "$(tail -n 1 "$tmp/$job")" "exit 0"; done
is "what is left out is said once on each host" "$(said plain)" 2
like "by the first rank of one, by names that MRMPI_DEVICES takes" "^mrmpi\[0@h1\] warning: $names" "$tmp/plain"
like "and of the other" "^mrmpi\[[12]@h2\] warning: $names" "$tmp/plain"
is "so it is when more were asked for" "$(said beyond)" 2
is "not when fewer were" "$(said fewer)" 0
is "nor as many as there can be" "$(said eight)" 0
is "nor when four are named" "$(said named)" 0
like "nine that are named are one too many" 'warning: 1 active port\(s\) are not used, .*: mlx5_5:2;' "$tmp/nine"
is "nor when only errors are wanted" "$(said silent)" 0
is "eight rails are used on each host" "$(grep -cE '^mrmpi\[0@h1\] info: rail [0-7]: ' "$tmp/told")" 8
like "the last is the first port of a device whose other is left out" 'rail 7: mlx5_4 port 1' "$tmp/told"

# more paths than there can be subchannels to a peer: 8 rails of 8 LIDs each
ok "with LMC 3" timeout 100 simfab run --topology "$tmp/many.net" --model sdr-pcix --opensm-option "lmc 3" -- \
  bash -c 'MRMPI_PATHS=8 timeout 60 mrrun -n 2 --hosts h1,h2 "$0" 50 >"$1" 2>&1' "$probe" "$tmp/paths"
like "paths that are left out are said" 'rank 1 on h2: 32 paths are used, 32 more are not; MRMPI_PATHS asks for fewer' "$tmp/paths"
done_testing
