#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Scheduling policies on simulated hosts with two rails: what each rail carries, small messages and large ones, and what is
# said of texts that are no policies. Order and every byte are checked by vc_probe, or by NPmpich2.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
two=$top/etc/topologies/two-hosts-two-rails.net
export MRMPI_LOG_LEVEL=0
sed -e 's/^\(\[1\](2c9000000[12]011).*\)$/\1 lid 0 1xSDR/; s/^\(\[[24]\].*mlx5_1"\)$/\1 lid 0 1xSDR/' "$two" >"$tmp/slow.net"

# Runs in the fabric; a line for each: SETTINGS as one word with ; between them, then the command. Prints what went over
# h1's second rail of all that h1 sent, in hundredths.
cat >"$tmp/measure" <<'END'
total() { simfab status --counters | awk '$1 == "h1" {s[$2] += $7} END {print s["mlx5_0"] + 0, s["mlx5_1"] + 0}'; }
before=$(total)
while read -r settings command; do
  env ${settings//;/ } $command >"$tmp/log" 2>&1 </dev/null || { cat "$tmp/log"; exit 1; }
  after=$(total)
  echo "$settings" $before $after | awk '{print int(100 * ($5 - $3) / ($5 - $3 + $4 - $2) + 0.5), $1}'
  before=$after
done
END
export tmp
np() { echo "mrrun -n 2 --hosts h1,h2 NPmpich2 -o $tmp/np -l $1 -u $1 -p 0 -n $2"; } # BYTES REPEATS
probe() { echo "mrrun -n $1 --hosts h1,h2 --ppn $2 $BUILD/tests/libmrmpi/vc_probe 300"; } # RANKS RANKS-A-HOST
# table NETLIST [OPTION...]: lines of the measured command's from standard input, with LOW HIGH before them
table() {
  local net=$1 low high rest i=0
  shift
  cat >"$tmp/lines"
  ok "policies on $(basename "$net")" run "$net" "$@"
  while read -r low high rest; do
    i=$((i + 1))
    ok "${rest%% *}: $low to $high % over the second rail" between "$(sed -n "${i}p" "$tmp/out")" "$low" "$high"
  done <"$tmp/lines"
}
run() { # NETLIST [OPTION...]
  local net=$1
  shift
  sed 's/^[0-9]* [0-9]* //' "$tmp/lines" | timeout -k 5 200 simfab run --topology "$net" "$@" -- bash "$tmp/measure" >"$tmp/out" 2>&1 && return
  grep -v ' info: ' "$tmp/out" | tail -n 20
  return 1
}
between() { test "${1%% *}" -ge "$2" -a "${1%% *}" -le "$3" || { echo "$1"; return 1; }; }
S=MRMPI_POLICY_SMALL L=MRMPI_POLICY_LARGE bound="MRMPI_POLICY_SMALL=binding:mlx5_1;MRMPI_POLICY_LARGE=binding:mlx5_1"

table "$two" <<END
48 52 $S=fair $(np 4096 480)
48 52 $S=round-robin $(np 4096 480)
48 52 $S=window:16 $(np 4096 480)
48 52 $S=window:64K $(np 4096 480)
24 26 $S=weighted-round-robin:3,1 $(np 4096 480)
78 82 $S=weighted-round-robin:mlx5_0=1,mlx5_1:1=4 $(np 4096 480)
0 0 $S=binding $(np 4096 480)
100 100 $S=binding:mlx5_1 $(np 4096 480)
48 52 $L=even $(np 262144 50)
48 52 $L=adaptive $(np 262144 50)
48 52 $L=eq3 $(np 262144 50)
48 52 $L=eq4 $(np 262144 50)
48 52 $L=fair $(np 262144 50)
48 52 $L=round-robin $(np 262144 50)
48 52 $L=window:3 $(np 262144 51)
48 52 $L=weighted-round-robin $(np 262144 50)
19 21 $L=weighted:4,1 $(np 262144 50)
99 100 $L=binding:mlx5_1 $(np 262144 50)
45 55 $S=binding;$L=binding $(probe 4 2)
99 100 MRMPI_LINKS=uc;$bound $(probe 2 1)
99 100 MRMPI_LINKS=ud;$bound $(np 262144 50)
48 52 MRMPI_LINKS=ud;$L=round-robin $(np 262144 50)
99 100 MRMPI_LINKS=rc,ud;MRMPI_RULES=eager:ud,rc;$bound $(probe 2 1)
END
# fair: what waits for each other goes over the fast rail; of a stream the slow one gets what the fast one has no room for, too
table "$tmp/slow.net" --model sdr-pcix <<END
18 22 $S=weighted-round-robin $(np 4096 480)
0 0 $S=fair $(np 4096 480)
18 32 $S=fair $(np 4096 1000) -s
48 52 $S=round-robin $(np 4096 480)
19 21 $L=weighted $(np 262144 50)
48 52 $L=even $(np 262144 50)
17 26 $L=adaptive $(np 262144 50)
17 26 $L=eq3 $(np 262144 50)
17 26 $L=eq4:0.5:64 $(np 262144 50)
END

# a bound process goes on over the other rail while its own is out
pulled() { # the fault is set when the ranks begin, so that time of the fabric passes in the job only
  timeout 100 simfab run --topology "$two" -- env ${bound//;/ } mrrun -n 2 --hosts h1,h2 bash -c \
    "[ \$PMIX_RANK != 0 ] || simfab fault link 'h1 mlx5_1' 1 down after=5ms for=10ms || exit 1
     exec $BUILD/tests/libmrmpi/vc_probe 20000" >"$tmp/pulled" 2>&1 &&
    [ "$(grep -c 'broken=1 reopened=1' "$tmp/pulled")" = 2 ] || { cat "$tmp/pulled"; return 1; }
}
ok "the bound rail's cable is pulled and put back" pulled

# locality: the first rail is at the one socket, the second at the other
two_sockets 0 1 >"$tmp/far.xml"
near="HWLOC_XMLFILE=$tmp/far.xml;HWLOC_THISSYSTEM=1;$S"
if taskset -c 1 true 2>/dev/null; then
  table "$two" <<END
0 2 $near=near taskset -c 0 $(np 4096 480)
98 100 $near=near taskset -c 1 $(np 4096 480)
98 100 $near=binding:near taskset -c 1 $(np 4096 480)
48 52 $near=near taskset -c 0,1 $(np 4096 480)
0 0 ${near%;*} taskset -c 0 $(np 8 480)
0 2 ${near%;*} taskset -c 0 $(np 4096 480)
98 100 ${near%;*} taskset -c 1 $(np 4096 480)
40 50 ${near%;*} taskset -c 0 $(np 8192 1000) -s
END
else
  echo "# one processor only: locality is not tried"
fi

# says POLICY TEXT: MPI_Init refuses it and says why
says() {
  echo "0 0 $1;MRMPI_LOG_LEVEL=1 $(np 8 1)" >"$tmp/lines"
  not_ok "$1" run "$two"
  like "says why" "$2" "$tmp/out"
}
says MRMPI_POLICY_SMALL=striped 'MRMPI_POLICY_SMALL=striped: "striped" is not one of fair soonest round-robin .*near$'
says MRMPI_POLICY_LARGE=near 'MRMPI_POLICY_LARGE=near: "near" is not one of .*eq4'
says MRMPI_POLICY_LARGE=binding:mlx5_7 'MRMPI_POLICY_LARGE=binding:mlx5_7: "binding:mlx5_7" names no rail that is used on this host \(mlx5_0:1 is the first\)'
says MRMPI_POLICY_LARGE=weighted:4,1,1 'MRMPI_POLICY_LARGE=weighted:4,1,1: it has 3 weights, but 2 rails are used on this host \(mlx5_0:1 is the first\)'
says MRMPI_POLICY_LARGE=weighted:mlx5_0=4,mlx5_7=1 'MRMPI_POLICY_LARGE=.*: mlx5_7 is no rail that is used on this host \(mlx5_0:1 is the first of 2\)'
says MRMPI_POLICY_SMALL=weighted-round-robin:mlx5_0=4,mlx5_1:2=1 'mlx5_1:2 is no rail that is used on this host'
says MRMPI_POLICY_SMALL=window:0 'MRMPI_POLICY_SMALL=window:0: it needs the length of the window'
done_testing
