#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two planes whose opensm run on two hosts: what is applied on one comes to the other by the policy's files, and there
# into the configuration of its opensm.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-planes.net" --sm h1 --sm h2 -- \
    bash "$here/planes_two.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2 h3"

ok "both subnets are up" simfab opensm wait
daemons_up
ok "each manages one" eval 'seen h1 "role: manager" && seen h2 "role: manager" && seen h3 "role: server"'
cp "$top/etc/policies/simple.yaml" policy.yaml
cp policy.yaml "$policy"
ok "the policy is applied on one" on h1 policy apply "$policy"
ok "and soon in force everywhere" wait_for 10 verified 1
ok "it is in both configurations" grep -q '^qos_vlarb_low 0:192' "$SIMFAB_DIR/opensm/opensm.conf" "$SIMFAB_DIR/opensm-2/opensm.conf"
sed 's/default: normal/default: batch/' policy.yaml >"$policy"
ok "another one, on the other" on h2 policy apply "$policy"
ok "is followed as well" wait_for 10 verified 2
is "and classes have the same levels on all" "$(for h in $hosts; do level $h; done | sort | uniq -c | xargs)" "3 batch 7"
done_testing
