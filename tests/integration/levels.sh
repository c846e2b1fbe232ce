#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Small, medium and large messages of one job travel on different lanes: per virtual lane, on the simulated ports.
# timeout: 400
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/levels.yaml

sends() { # JOB SIZE [N]: the lanes that carry as much as N messages at least (1), of ten there and back
  counts mrrun -n 2 --hosts h1,h2 --job-id "$1" NPmpich2 -o "$tmp/np" -l "$2" -u "$2" -p 0 -n 10 || { cat "$tmp/cmd" >&2; echo failed; return; }
  lanes $(($2 * ${3:-1}))
}
# as the policy's plan has them: upto is the largest size
fabricctl policy plan etc/policies/levels.yaml >"$tmp/plan"
is "the plan is the one that is looked for here" "$(grep -c 'vl_small: 2.*vl_bulk: .1.* vl: 4}.* vl: 5}\|vl_small: 3.*vl_bulk: .0.* vl: 6}' "$tmp/plan")" 2
for h in h1 h2; do ok "job set on $h" ctl $h job set vip service --user "$(id -u)"; done
ctl h1 job show vip >"$tmp/show"
is "fabricctl shows the levels" "$(sed -n 's/^medium: //p' "$tmp/show")" "[{upto: 16384, sl: [2]}, {upto: 262144, sl: [3]}]"

explained() { mrrun --explain --hosts h1,h2 --job-id "$1" | sed -n '/^Class/,/^$/s/^  //p' | tr -s ' ' | tr '\n' ';'; } # JOB
is "mrrun --explain knows class and levels" "$(explained vip)" \
  "fabricd at $SIMFAB_DIR/fabricd-h1.sock: class service;messages up to 256 service level 1, and all control packets;messages up to 16K service level 2;messages up to 256K service level 3;messages over 256K service level 4;"
paired() { mrrun --explain --hosts h1,h2 --job-id "$1" | sed -n 's/^    service levels//p' | tr '\n' ';'; } # JOB
is "and has them for the pair of hosts" "$(paired vip)" \
  ": small (up to 256) 1, medium (up to 16K) 2, medium (up to 256K) 3, large 4 (fabricd: class service);"
by_datagrams() { # JOB: are they, with a rule for one class?
  MRMPI_LINKS=rc,ud MRMPI_RULES='class=service: ud; any: rc' mrrun -n 2 --hosts h1,h2 --job-id "$1" --stats "$BUILD/tests/mpi/p2p_ring" 2>&1 |
    grep -c 'acks_'
}
is "a rule for a class holds for jobs of that class" "$(by_datagrams vip) $(by_datagrams plain)" "2 0"

# Where messages are copied into packets, as of a sanitizer's allocator, small control packets add up to more than one.
some=1
[ -z "$(sanitizers)" ] || some=2
for setting in MRMPI_RNDV=read MRMPI_RNDV=write MRMPI_RAILS_MAX=1; do
  export "${setting?}"
  is "$setting: small messages" "$(sends vip 8 9)" 2
  # these go ahead within a budget, and the others with the bulk
  is "$setting: medium ones in packets" "$(sends vip 4096 4)" 1,4 # fabricd's questions about counters are some packets, too
  is "$setting: medium ones by RDMA" "$(sends vip 16384)" 1,4
  is "$setting: those of the next level" "$(sends vip 262144)" 1,5
  is "$setting: large ones" "$(sends vip 262145)" 1
  is "$setting: another class with one level between" "$(sends plain 8 9) $(sends plain 65536 "$some") $(sends plain 65537 "$some")" "3 0,6 0"
  unset "${setting%%=*}"
done
for kind in uc ud; do
  export MRMPI_LINKS=$kind
  is "MRMPI_LINKS=$kind: small messages" "$(sends vip 8 9)" 2
  is "MRMPI_LINKS=$kind: medium ones" "$(sends vip 4096 4)" 1,4
  is "MRMPI_LINKS=$kind: large ones" "$(sends vip 1048576)" 1
done
unset MRMPI_LINKS

# the ends hear different things: a level that one of them does not have goes with the next larger messages
ctl h2 job set half other --user "$(id -u)" && ctl h1 job set half service --user "$(id -u)"
like_half() { paired half | grep -Eq '^ if a connection begins at h1: .*class service\); if a connection begins at h2: .*class other\);$'; }
ok "mrrun --explain says that the ends hear different things" like_half
is "ends that differ: medium messages have a level at both" "$(sends half 8 9) $(sends half 16384) $(sends half 1048576)" "2 1,4 1"

# a job that runs: failover's messages are of 0 to 2000000 bytes
ok "a running job changes its class" exchange 24 "$(set_class other); sleep 0.1" "$keep" "$kept" true
is "and small, medium and large messages their lanes" "$(lanes 1000)" "0,3,6"
ok "and back, to more levels" exchange 24 "$(set_class service); sleep 0.1" "$keep" "$kept" true
is "all four of them" "$(lanes 1000)" "1,2,4,5"
is "nothing broke" "$(counted broken)" 0

# so many subchannels that there are not links enough for all levels of each
export MRMPI_PAIRS=all MRMPI_LINKS=rc,uc,ud
is "twelve subchannels: small messages" "$(sends vip 8 9)" 2
is "twelve subchannels: medium ones are on a lane of larger ones" "$(sends vip 16384)" 1
is "twelve subchannels: large ones" "$(sends vip 1048576)" 1
ok "a running job changes its class with so many" exchange 24 "$(set_class other); sleep 0.1" "$(set_class service)" "$(set_class other)" \
  "$(set_class service); sleep 0.1" "$keep" "$kept" true
is "and is where it should be" "$(lanes 1000)" "1,2"
is "and nothing broke" "$(counted broken)" 0
cat >"$tmp/wide.yaml" <<'YAML'
version: 1
vls: 8
classes:
  - {name: wide, share: 90, lanes: 6, medium: 64K}
  - {name: other, share: 10}
jobs: {default: other}
YAML
ok "a class of six lanes" ctl h1 policy apply --force "$tmp/wide.yaml"
stop_fabricd h2 # which has its policy from a file
start_fabricd h2 "$tmp/wide.yaml" new
ok "that h2 knows, too" wait_for 10 verified h2
ok "set on both" eval "$(set_class wide)"
wide_is_used() { # all lanes of large messages, and those of small ones, which the first links leave no room for at first
  is "$1: all lanes of it carry large messages" "$(lanes 100000 | grep -o '1,2,3,4,5,6')" 1,2,3,4,5,6
  is "$1: small ones have theirs, and the other class none" "$(lanes 1000)" 1,2,3,4,5,6,7
  is "$1: nothing broke" "$(counted broken)" 0
}
# the second change comes before the old side has drained; some rounds until it is quiet
ok "24 subchannels change their class, there and back" exchange 27 "$(set_class other)" "$(set_class wide)" "$(set_class other)" \
  "$(set_class wide); sleep 0.1" true true "$keep" "$kept" true
wide_is_used "there and back"
# it does not answer meanwhile, and finds the requests of several rounds
ok "a rank is away while its peer changes" exchange 18 "$(set_class other); sleep 3" "$(set_class wide); sleep 3" true "$keep" "$kept" true
wide_is_used "one away"
unset MRMPI_PAIRS MRMPI_LINKS

# a job that came to know its peers in a class of one lane: each of them has one rail and one of the six now
ok "a job of 16 ranks" eval "$(set_class other)"
export MOST_BYTES=300000 MRMPI_RAILS_MAX=1 MRMPI_LOG_LEVEL=1
ok "changes to the class of six lanes" eval 'ranks=16 exchange 12 "$(set_class wide); sleep 0.1" "$keep" "$kept" true'
is "and its eight pairs are on five of them" "$(lanes 100000 | tr , '\n' | grep -c '[1-6]')" 5
done_testing
