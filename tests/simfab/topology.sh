#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Generated netlists: opensm's engines bring them up, ibsim reads them too, and every host has a path to every other.
. "$(dirname "$0")/../tap.sh"

engine_of() { # NETLIST ENGINE: the engine that opensm says it used in the end
  simfab run --topology "$1" --opensm-option "routing_engine $2" -- sh -c \
    'sed -n "s/.*osm_ucast_mgr_process: \([a-z]*\) tables.*/\1/p" "$SIMFAB_DIR/opensm/opensm.log" | tail -n 1'
}

simfab topology fat-tree --hosts 512 >"$tmp/512.net"
simfab topology fat-tree --hosts 512 >"$tmp/again.net"
ok "two runs write the same" cmp "$tmp/512.net" "$tmp/again.net"
like "the heading has the numbers" '^# 512 hosts, 1 adapter each, 47 switches, 1034 cables$' "$tmp/512.net"
is "512 hosts by ftree" "$(engine_of "$tmp/512.net" ftree)" ftree

simfab topology fat-tree --hosts 30 --radix 8 >"$tmp/three.net"
simfab topology fat-tree --hosts 24 --radix 12 --oversubscription 2:1 --rails 2 --speed HDR >"$tmp/rails.net"
for e in ftree updn minhop; do
  is "three levels by $e" "$(engine_of "$tmp/three.net" $e)" $e
  is "two rails at 2:1 by $e" "$(engine_of "$tmp/rails.net" $e)" $e
done

all_pairs() { # ibtracert follows the tables of the switches
  simfab run --topology "$tmp/three.net" --opensm-option "routing_engine ftree" -- bash -c '
    lids=$(simfab status | sed -n "s/^h.* Active lid \([0-9]*\) .*/\1/p")
    [ "$(echo $lids | wc -w)" = 30 ] || { echo "LIDs: $lids"; exit 1; }
    for b in $lids; do
      for a in $(echo "$lids" | head -n 4); do
        [ $a = $b ] || simfab exec h01 -- ibtracert $a $b >/dev/null || { echo "no path from $a to $b"; exit 1; }
      done
    done'
}
ok "a path from the first four hosts to each of 30" all_pairs

ok "programs of different pods talk" simfab run --topology "$tmp/three.net" --model hdr -- bash -c '
  port=$(free_port)
  simfab exec h01 -- ibv_rc_pingpong -p $port -n 20 >/dev/null &
  until listening $port || ! kill -0 $!; do sleep 0.05; done
  simfab exec h30 -- ibv_rc_pingpong -p $port -n 20 h01; rc=$?; wait $! && exit $rc'

# ---- answers longer than a message (64 KiB)
simfab topology fat-tree --hosts 2000 >"$tmp/2000.net"
ask() {
  (cd "$tmp" && simfab run --topology 2000.net --no-opensm -- bash -c '
    simfab status >all; simfab status --hosts >hosts; simfab exec h9999 -- true 2>unknown
    simfab exec --real-clock h0002 -- sh -c "echo \$SIMFAB_CLOCK \$SIM_HOST" >real')
}
ok "2000 hosts are asked" ask
is "every adapter is in the status" "$(grep -c '^h[0-9]* mlx5_0 1 ' "$tmp/all")" 2000
is "and in the list of hosts" "$(tail -n 1 "$tmp/hosts") $(wc -l <"$tmp/hosts")" "h2000 2000"
like "a wrong host: some of those there are" 'no host "h9999".* h0020 \.\.\. 2000 in all$' "$tmp/unknown"
is "exec --real-clock" "$(cat "$tmp/real")" "real h0002"

# ---- ibsim, which knows nothing of us
PRELOAD=$(ls /usr/lib/*/umad2sim/libumad2sim.so /usr/lib/umad2sim/libumad2sim.so 2>/dev/null | head -1)
in_ibsim() { # NETLIST: opensm's fat tree on ibsim
  local pid rc
  export IBSIM_SOCKNAME="topology-test-$$" OSM_CACHE_DIR=$tmp OSM_TMP_DIR=$tmp SIM_HOST=
  (cd "$tmp" && exec ibsim -s -n "$1") >"$tmp/ibsim.log" 2>&1 &
  pid=$!
  wait_for 60 grep -q 'simulator ready' "$tmp/ibsim.log"
  (cd "$tmp" && SIM_HOST=$(sed -n 's/^Ca.*"\(H-[0-9a-f]*\)".*/\1/p' "$1" | head -n 1) LD_PRELOAD=$PRELOAD \
    timeout 20 opensm -o -R ftree -f "$tmp/ibsim-opensm.log") >"$tmp/opensm.out" 2>&1
  rc=$?
  kill $pid
  wait $pid 2>/dev/null
  return $rc
}
if command -v ibsim >/dev/null && [ -n "$PRELOAD" ] && [ -z "$(sanitizers)" ]; then
  ok "ibsim reads 512 hosts, and opensm configures them there" in_ibsim "$tmp/512.net"
  like "as a fat tree, too" 'ftree tables configured on all switches' "$tmp/ibsim-opensm.log"
  like "without complaint of ibsim" 'simulator ready|Network simulator' "$tmp/ibsim.log"
else
  for i in 1 2 3; do echo "ok $((++tap_n)) - ibsim # SKIP no ibsim, or a sanitized build"; done
fi

# ---- mistakes
refuses() { # TEXT ARGS...: exits 2 and says why
  local text=$1; shift
  simfab topology "$@" >"$tmp/out" 2>"$tmp/err"
  [ $? = 2 ] && [ ! -s "$tmp/out" ] && grep -qF -- "$text" "$tmp/err" || { cat "$tmp/out" "$tmp/err"; return 1; }
}
ok "too many hosts: what would do" refuses "use --levels 3 (at most 11664) or --radix 38" fat-tree --hosts 700 --levels 2
ok "no shape" refuses "one shape is wanted" --hosts 4
ok "an unknown shape" refuses "one shape is wanted" torus --hosts 4
ok "no hosts" refuses "--hosts N is required" star
ok "hosts: not a number" refuses "--hosts x: a number from 1 to 49151" star --hosts x
ok "a ratio that is none" refuses "--oversubscription 2: two numbers" fat-tree --hosts 8 --oversubscription 2
ok "an unknown speed" refuses "--speed fast: one of SDR" star --hosts 8 --speed fast
ok "a width alone" refuses "--width wants --speed" star --hosts 8 --width 4
ok "an option of another shape" refuses "--switches is for line and ring" star --hosts 8 --switches 2
ok "a full disk is noticed" bash -c 'simfab topology star --hosts 8 >/dev/full 2>/dev/null; [ $? = 1 ]'
done_testing
