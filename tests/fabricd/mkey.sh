#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A subnet whose nodes answer only datagrams with its M_Key: the host of opensm looks, compares and writes back with the
# key of opensm's configuration. A host that does not know the key changes nothing, and its daemon says what is missing.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" \
    --opensm-option "m_key 0x0123456789abcdef" --opensm-option "m_key_protection_level 2" -- bash "$here/mkey.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
sed 's/timeout: 20/timeout: 8/; s/interval: 5/interval: 1/' "$top/etc/fabricd/simfab.yaml" >fabricd.yaml
sed '/^opensm:/,/^[a-z]/{/^opensm:/d; /^ /d}' fabricd.yaml >node.yaml
conf=$tmp/fabricd.yaml

ok "the subnet is up" simfab opensm wait
not_ok "without the key a node does not answer" simfab exec h2 -- smpquery -D nodedesc 0,1
cp "$top/etc/policies/simple.yaml" "$policy"
start h1
wait_for 20 fabricctl status
ok "a policy is put in force, and verified at all ports" wait_for 40 status_has '^policy: .*generation: 1, state: verified, nodes: 5, ports: 8, differences: 0'
sed -i 's/share: 60/share: 50/' "$policy"
ok "another one" fabricctl policy apply "$policy"
not_ok "a table cannot be changed without the key" simfab exec h2 -- "$tool" vlarb 1 0x10002 0:1,1:200
for r in 0 1; do
  far() { fabricctl rail show mlx5_$r | grep -q "^far_port: .where: leaf1 port $((r + 1)), "; }
  ok "the switch port across the cable of mlx5_$r is known" wait_for 10 far
done

conf=$tmp/node.yaml
start h2
wait_for 20 on h2 status
ok "a host that does not know the key says so" wait_for 10 seen h2 'does not answer management datagrams: if the subnet has an M_Key, it must be in'
like "its jobs have the policy nevertheless" 'status=0 .* class=normal ' <("$tool" query "$SIMFAB_DIR/fabricd-h2.sock" 1)

# the ports get back what they had by datagrams that write
ok "back to before the first policy" fabricctl policy rollback 0
like "the ports too" 'the ports have the tables of before again: [1-9][0-9]* blocks written back' h1.log
done_testing
