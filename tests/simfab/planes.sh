#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fabric of two planes is two subnets: an opensm for each, prefixes that differ, and programs that use both.
. "$(dirname "$0")/../tap.sh"
BUILD=$(cd "$BUILD" && pwd)

inside() {
  simfab opensm pid >pids
  simfab opensm pid 2 >pid2
  simfab status >status
  port=$(free_port)
  for d in 0 1; do
    simfab exec h1 -- sminfo -C mlx5_$d >sminfo$d
    simfab exec h8 -- ibv_devinfo -v -d mlx5_$d | grep -m 1 'GID\[' >gid$d
    simfab exec h1 -- ibv_rc_pingpong -p $port -n 100 -d mlx5_$d >server$d &
    for ((i = 0; i < 100; i++)); do
      simfab exec h8 -- ibv_rc_pingpong -p $port -n 100 -d mlx5_$d h1 >client$d 2>&1 && break
      sleep 0.05
    done
    wait $!
    echo $? >rc$d
  done
  simfab exec h1 -- ibnodes >nodes
  simfab exec h1 -- ibnodes -C mlx5_1 >nodes1
  mrrun --timeout 20 -n 8 "$BUILD/tests/mpi/p2p_ring" >mpi 2>&1
  echo $? >mpi_rc
  # a cable of the second plane goes, and comes back
  active() { simfab exec h8 -- ibv_devinfo -d mlx5_$1 | grep -c PORT_ACTIVE; }
  simfab exec h8 -- stdbuf -oL ibv_asyncwatch -d mlx5_0 >watch0 2>&1 &
  local watches=$!
  simfab exec h8 -- stdbuf -oL ibv_asyncwatch -d mlx5_1 >watch1 2>&1 &
  watches+=" $!"
  wait_for 60 grep -q FD watch0
  wait_for 60 grep -q FD watch1
  simfab fault link "h8 mlx5_1" down
  echo "$(active 0) $(active 1)" >down
  simfab exec h1 -- ibnodes >nodes_down
  simfab exec h1 -- ibnodes -C mlx5_1 >nodes1_down
  simfab fault link "h8 mlx5_1" up
  simfab opensm wait
  wait_for 60 eval '[ "$(active 1)" = 1 ]'
  echo "$(active 0) $(active 1)" >up
  wait_for 60 grep -q PORT_ACTIVE watch1
  kill $watches
  simfab opensm restart 2
  echo $? >restarted
  simfab opensm pid >pids_then
}
export -f inside
export BUILD
cd "$tmp" || exit 2
ok "two planes come up" simfab run --topology eight-hosts-two-planes --sm h3 --sm h5 -- bash -c inside
is "with an opensm each" "$(sort -u pids | wc -l) $(sed -n 2p pids)" "2 $(cat pid2)"
is "all 16 adapters and their switch ports are active" "$(grep -c '^[hp].* Active lid [0-9]' status) $(grep -c ' 1 Active' status)" "18 18"
like "the first on h3" 'sm guid 0x253460100000301,.*MASTER' sminfo0
like "the second on h5" 'sm guid 0x253460101000501,.*MASTER' sminfo1
like "GIDs of the first" 'fe80:0000:0000:0000:0253:4601:0000:0801' gid0
like "and of the second" 'fe80:0000:0000:0001:0253:4601:0100:0801' gid1
is "pingpong over both" "$(cat rc0) $(cat rc1)" "0 0"
is "each plane is a switch and 8 adapters" "$(wc -l <nodes) $(wc -l <nodes1)" "9 9"
is "MPI over both planes" "$(cat mpi_rc)" 0
is "a cable of the second plane goes: its port is down, the other one is not" "$(cat down)" "1 0"
is "the second plane lacks the host, the first does not" "$(wc -l <nodes_down) $(wc -l <nodes1_down)" "9 8"
is "its own manager brings it back" "$(cat up)" "1 1"
is "the adapter of that plane tells of both, the other of nothing" \
  "$(grep -c 'PORT_ERR\|PORT_ACTIVE' watch1) $(grep -c IBV_EVENT watch0)" "2 0"
is "the second restarts alone" "$(cat restarted) $(head -n 1 pids_then) $([ "$(sed -n 2p pids_then)" = "$(cat pid2)" ] && echo same)" "0 $(head -n 1 pids) "

refuses() { # TEXT ARGS: exit 2, and CMD did not run
  local text=$1; shift
  simfab run "$@" -- touch "$tmp/ran" 2>"$tmp/err"
  [ $? = 2 ] && [ ! -e "$tmp/ran" ] && grep -qF -- "$text" "$tmp/err" || { cat "$tmp/err"; return 1; }
}
ok "--sm of a host that is not there" refuses 'no host "hx"' --topology two-hosts-two-rails --sm hx
ok "--sm for more subnets than there are" refuses '--sm was given 2 times, but' --topology two-hosts-two-rails --sm h1 --sm h2
printf 'Ca 2 "A"\n[1] "B"[1]\n[2] "C"[1]\n\nCa 1 "B"\n\nCa 1 "C"\n' >direct.net
ok "--sm without a cable into its subnet" refuses '--sm B: the host has no cable into subnet 2' --topology direct.net --sm A --sm B
simfab run --topology direct.net -- simfab status >status
is "adapters back to back: a subnet for each cable" "$(grep -c Active status)" 4
for i in {1..17}; do printf 'Ca 1 "A%d"\n[1] "B%d"[1]\n\nCa 1 "B%d"\n\n' $i $i $i; done >many.net
ok "more subnets than there are opensms" refuses "17 subnets without a cable between them: at most 16" --topology many.net
ok "but without opensm they may be" simfab run --topology many.net --no-opensm -- true
done_testing
