#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The hosts that a class's partition has: into opensm's partition file and the ports' tables of P_Keys, and out of them
# again; what others have in that file stays. A process in another partition does not reach a queue pair in this one.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-rails.net" -- bash "$here/members.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2 h3"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
file=$SIMFAB_DIR/opensm/partitions.conf
state=$SIMFAB_DIR/fabricd-h1
shipped 's/timeout: 20/timeout: 6/; s/interval: 5/interval: 1/'
all_keys() { for h in h1 h2 h3 h4; do echo "$h $(keys $h)"; done; }
simple() { # LINES: after the name of class urgent
  sed "s/^  - name: urgent/&\n$1/; s/^version: 1/&\nrepair_pause: 1/" "$top/etc/policies/simple.yaml"
}
none="2 0xffff" member="2 0x8011 2 0xffff"

ok "the subnet is up" simfab opensm wait
simple "" >plain.yaml
simple '    pkey: 0x0011\n    members: [h1, "h[24]"]' >members.yaml
cp plain.yaml "$policy"
daemons_up
ok "a policy without members" fabricctl policy apply "$policy"
not_ok "writes no partition file" test -e "$file"
cp members.yaml "$policy"
ok "a dry run" fabricctl policy apply "$policy" --dry-run
like "tells of the file" "^would write $file$" <(fabricctl policy apply "$policy" --dry-run)
not_ok "and does not write it" test -e "$file"
ok "one with members" fabricctl policy apply "$policy"
is "they are members, and in the default partition as before; others are not" "$(all_keys)" \
  "h1 $member
h2 $member
h3 $none
h4 $member"
ok "which hosts verify" wait_for 10 verified 2
ok "the generation has the file" cmp "$file" "$state/current/partitions-1.conf"
like "a class has its members in status" 'name: urgent, .*pkey: "0x0011", members: \[h1, ".*24.*"\]' <(fabricctl status)

# a queue pair in the partition, and processes that are not
reach h2 listen 0x8011 >heard 2>err &
listener=$!
started
wait_for 10 test -s heard
read -r lid qpn <heard
ok "a process of the class" reach h1 send $lid $qpn 0x8011 1
ok "reaches it" wait_for 10 grep -qx 1 heard
ok "a process of another class on a member host" reach h1 send $lid $qpn 0xffff 2
ok "a process on a host that is no member" reach h3 send $lid $qpn 0xffff 3
ok "which cannot choose the partition" exits 3 reach h3 send $lid $qpn 0x8011 4
ok "another process of the class" reach h4 send $lid $qpn 0x8011 5
ok "reaches it" wait_for 10 grep -qx 5 heard
is "the others do not" "$(sed 1d heard | xargs)" "1 5"
stop $listener

# what ports or the file have lost
ok "a port that is put into the partition behind opensm's back" simfab exec h3 -- "$BUILD/tests/simfab/set_pkeys" mlx5_0 0xffff 0x8011
ok "is put out again" wait_for 20 eval '[ "$(keys h3)" = "$none" ]'
grep -v mlx5_1 "$file" >lacks
cp lacks "$file"
ok "members that somebody has taken out of the file" wait_for 20 eval 'cmp -s "$file" "$state/current/partitions-1.conf"'
ok "are in it again, and verified" wait_for 10 verified 2

# out of it again
cp plain.yaml "$policy"
ok "a policy without members" fabricctl policy apply "$policy"
not_ok "removes the file that was there for it alone" test -e "$file"
is "and nobody is a member" "$(all_keys)" "$(for h in h1 h2 h3 h4; do echo "$h $none"; done)"

# the administrator's partitions
printf '# ours\nDefault=0x7fff, ipoib : ALL=full ;\nred=0x0022 :\n  ALL=full ; # everybody\n' >"$file"
cp "$file" ours
simple '    pkey: 0x0022\n    members: h1' >"$policy"
ok "one with the key of a class is refused" exits 2 fabricctl policy apply "$policy"
fabricctl policy apply "$policy" >q 2>&1
like "and named with its line" "^$file:3: partition 'red' has the P_Key 0x0022 of class 'urgent', which the policy gives members: remove it" q
ok "nothing is written" cmp ours "$file"
cp members.yaml "$policy"
ok "others" fabricctl policy apply "$policy"
ok "which all hosts have taken over, before the file is another" wait_for 10 verified 4
is "stay" "$(head -n 4 "$file")" "$(cat ours)"
is "beside the policy's" "$(keys h3) $(keys h4)" "2 0x8022 2 0xffff 2 0x8011 2 0x8022 2 0xffff"

# a change that is not taken: the file and the ports are as before
cp "$file" before
simple '    pkey: 0x0011\n    members: h3' >"$policy"
sm=$(simfab opensm pid)
kill -STOP "$sm"
fabricctl policy apply "$policy" >q 2>&1 &
apply=$!
ok "while opensm does not take it" wait_for 10 grep -q "^wrote $file" q
kill -9 "${daemon_of[1]}" # and fabricd is killed
wait "${daemon_of[1]}" $apply 2>/dev/null
kill -CONT "$sm"
start h1
ok "the policy of before is in force after a restart" wait_for 20 verified 4
ok "with its file" cmp before "$file"
is "and its members" "$(keys h3) $(keys h4)" "2 0x8022 2 0xffff 2 0x8011 2 0x8022 2 0xffff"
ok "back to before the first policy" fabricctl policy rollback 0
ok "the file is the administrator's" cmp ours "$file"
ok "and so are the ports" wait_for 10 eval '[ "$(keys h4)" = "2 0x8022 2 0xffff" ]'

# what cannot be
simple '    members: h1' >bad.yaml
not_ok "members of no partition" fabricctl policy check bad.yaml
like "are refused" "error: class 'urgent' has members and no pkey" <(fabricctl policy check bad.yaml 2>&1)
simple '    pkey: 0xffff\n    members: h1' >bad.yaml
like "so are those of the default one" "error: pkey is the default partition, and class 'urgent' has members" <(fabricctl policy check bad.yaml 2>&1)
done_testing
