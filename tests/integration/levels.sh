#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Small, medium and large messages of one job travel on different lanes: per virtual lane, on the simulated ports.
# timeout: 400
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/levels.yaml

sends() { # JOB SIZE [N]: the lanes that carry as much as N messages at least (1), of ten there and back
  simfab status --counters >"$tmp/c0"
  mrrun -n 2 --hosts h1,h2 --job-id "$1" NPmpich2 -o "$tmp/np" -l "$2" -u "$2" -p 0 -n 10 >"$tmp/cmd" 2>&1 || { cat "$tmp/cmd" >&2; echo failed; return; }
  simfab status --counters >"$tmp/c1"
  lanes $(($2 * ${3:-1}))
}
# as the policy's plan has them: upto is the largest size
fabricctl policy plan etc/policies/levels.yaml >"$tmp/plan"
is "the plan is the one that is looked for here" "$(grep -c 'vl_small: 2.*vl_bulk: .1.* vl: 4}.* vl: 5}\|vl_small: 3.*vl_bulk: .0.* vl: 6}' "$tmp/plan")" 2
for h in h1 h2; do ok "job set on $h" ctl $h job set vip service; done
ctl h1 job show vip >"$tmp/show"
is "fabricctl shows the levels" "$(sed -n 's/^medium: //p' "$tmp/show")" "[{upto: 16384, sl: [4]}, {upto: 262144, sl: [5]}]"

explained() { mrrun --explain --hosts h1,h2 --job-id "$1" | sed -n '/^Class/,/^$/s/^  //p' | tr -s ' ' | tr '\n' ';'; } # JOB
is "mrrun --explain knows class and levels" "$(explained vip)" \
  "fabricd at $SIMFAB_DIR/fabricd-h1.sock: class service;messages up to 256 service level 2, and all control packets;messages up to 16K service level 4;messages up to 256K service level 5;messages over 256K service level 1;"
paired() { mrrun --explain --hosts h1,h2 --job-id "$1" | sed -n 's/^    service levels//p' | tr '\n' ';'; } # JOB
is "and has them for the pair of hosts" "$(paired vip)" \
  ": small (up to 256) 2, medium (up to 16K) 4, medium (up to 256K) 5, large 1 (fabricd: class service);"
by_datagrams() { # JOB: are they, with a rule for one class?
  MRMPI_LINKS=rc,ud MRMPI_RULES='class=service: ud; any: rc' mrrun -n 2 --hosts h1,h2 --job-id "$1" --stats "$BUILD/tests/mpi/p2p_ring" 2>&1 |
    grep -c 'acks_'
}
is "a rule for a class holds for jobs of that class" "$(by_datagrams vip) $(by_datagrams plain)" "2 0"

for setting in MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_RAILS_MAX=1; do
  export "${setting?}"
  is "$setting: small messages" "$(sends vip 8 9)" 2
  # these go ahead within a budget, and the others with the bulk
  is "$setting: medium ones in packets" "$(sends vip 4096)" 1,4
  is "$setting: medium ones by RDMA" "$(sends vip 16384)" 1,4
  is "$setting: those of the next level" "$(sends vip 262144)" 1,5
  is "$setting: large ones" "$(sends vip 262145)" 1
  is "$setting: another class with one level between" "$(sends plain 8 9) $(sends plain 65536) $(sends plain 65537)" "3 0,6 0"
  unset "${setting%%=*}"
done
for kind in uc ud; do
  export MRMPI_LINKS=$kind
  is "MRMPI_LINKS=$kind: small messages" "$(sends vip 8 9)" 2
  is "MRMPI_LINKS=$kind: medium ones" "$(sends vip 4096)" 1,4
  is "MRMPI_LINKS=$kind: large ones" "$(sends vip 1048576)" 1
done
unset MRMPI_LINKS

# the ends hear different things: a level that one of them does not have goes with the next larger messages
ctl h2 job set half other && ctl h1 job set half service
like_half() { paired half | grep -Eq '^ if a connection begins at h1: .*class service\); if a connection begins at h2: .*class other\);$'; }
ok "mrrun --explain says that the ends hear different things" like_half
is "ends that differ: medium messages have a level at both" "$(sends half 8 9) $(sends half 16384) $(sends half 1048576)" "2 1,4 1"

# a job that runs: failover's messages are of 0 to 2000000 bytes
run() { # COMMAND...: of which the last two keep counters
  rm -f "$tmp/c0" "$tmp/c1"
  MRMPI_LOG_LEVEL=2 timeout -k 5 100 mrrun -n 2 --hosts h1,h2 --job-id vip --stats "$BUILD/tests/mpi/failover" 24 "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 8
  [ $rc = 0 ] && grep -q "^24 rounds, 0 errors" "$tmp/out"
}
broken() { sed -n "s/.* broken=\([0-9]*\).*/\1/p" "$tmp/out" | awk '{n += $1} END {print n + 0}'; }
set_class() { echo "fabricctl --socket $SIMFAB_DIR/fabricd-h1.sock job set vip $1 && fabricctl --socket $SIMFAB_DIR/fabricd-h2.sock job set vip $1"; }
keep="simfab status --counters >$tmp/c0"
ok "a running job changes its class" run "$(set_class other); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
is "and small, medium and large messages their lanes" "$(lanes 1000)" "0,3,6"
ok "and back, to more levels" run "$(set_class service); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
is "all four of them" "$(lanes 1000)" "1,2,4,5"
is "nothing broke" "$(broken)" 0

# so many subchannels that there are not links enough for all levels of each
export MRMPI_PAIRS=all MRMPI_LINKS=rc,uc,ud
is "twelve subchannels: small messages" "$(sends vip 8 9)" 2
is "twelve subchannels: medium ones are on a lane of larger ones" "$(sends vip 16384)" 1
is "twelve subchannels: large ones" "$(sends vip 1048576)" 1
ok "a running job changes its class with so many" run "$(set_class other); sleep 0.1" "$(set_class service)" "$(set_class other)" \
  "$(set_class service); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
is "and is where it should be" "$(lanes 1000)" "1,2"
is "and nothing broke" "$(broken)" 0
cat >"$tmp/wide.yaml" <<'YAML'
version: 1
vls: 8
classes:
  - {name: wide, share: 90, lanes: 6, medium: 64K}
  - {name: other, share: 10}
jobs: {default: other}
YAML
ok "a class of six lanes" ctl h1 policy apply "$tmp/wide.yaml"
kill $last_fabricd # that of h2 has its policy from a file
wait $last_fabricd 2>/dev/null
printf 'policy: %s\nstate: %s\nsocket: %s\n' "$tmp/wide.yaml" "$tmp/state-new" "$SIMFAB_DIR/fabricd-h2.sock" >"$tmp/h2.yaml"
simfab exec --real-clock h2 -- fabricd --config "$tmp/h2.yaml" >"$tmp/h2.log" 2>&1 &
last=$!
on_exit "kill $last 2>/dev/null; wait $last 2>/dev/null"
for _ in $(seq 100); do ctl h2 status 2>/dev/null | grep -q 'state: verified' && break; sleep 0.1; done
ok "set on h1" ctl h1 job set vip wide
ok "set on h2" ctl h2 job set vip wide
ok "24 subchannels change their class, there and back" run "$(set_class other)" "$(set_class wide)" "$(set_class other)" \
  "$(set_class wide); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true
is "and are on all lanes of it" "$(lanes 100000 | grep -o '1,2,3,4,5,6')" 1,2,3,4,5,6
not_ok "and on none of the other" grep -q '^0' <(lanes 1000)
is "and nothing broke" "$(broken)" 0
unset MRMPI_PAIRS MRMPI_LINKS

# a job that came to know its peers in a class of one lane: each of them has one rail and one of the six now
moving() { # PAIRS: ranks on either host, each with one on the other
  MOST_BYTES=300000 MRMPI_RAILS_MAX=1 MRMPI_LOG_LEVEL=1 timeout -k 5 100 mrrun -n $((2 * $1)) --hosts h1,h2 --job-id vip \
    "$BUILD/tests/mpi/failover" 12 "$(set_class wide); sleep 0.1" "$keep" "simfab status --counters >$tmp/c1" true >"$tmp/out" 2>&1 </dev/null && grep -q "^12 rounds, 0 errors" "$tmp/out"
}
ok "a job of 16 ranks" eval "$(set_class other)"
ok "changes to the class of six lanes" moving 8
is "and its eight pairs are on five of them" "$(lanes 100000 | tr , '\n' | grep -c '[1-6]')" 5
done_testing
