#!/usr/bin/env bash
# osmtest, the subnet administrator's own test, on a simulated fabric: the inventory, all validations against it, service
# records, events, multicast groups, QoS tables; and that it finds what an inventory has wrong.
# (The errors in its logs are those of requests that the administrator has to refuse.)
. "$(dirname "$0")/../tap.sh"
command -v osmtest >/dev/null || skip_all "osmtest is not installed"
here=$(cd "$(dirname "$0")" && pwd)
export tmp

flows() {
  local f
  export OSM_TMP_DIR=$tmp OSM_CACHE_DIR=$tmp
  cd "$tmp" || return # osmtest leaves qos.txt where it is called
  for f in c a v s e m q; do
    simfab exec h3 -- timeout 60 osmtest -f $f -i "$tmp/inventory" -l "$tmp/log.$f" >"$tmp/out.$f" 2>&1
    echo $? >"$tmp/rc.$f"
  done
  sed '0,/^[[:space:]]*port_guid .*/s//port_guid 0x1234/; 0,/max_pkts\|mtu_cap/s/mtu_cap *[0-9x]*/mtu_cap 1/' "$tmp/inventory" >"$tmp/wrong"
  simfab exec h3 -- timeout 60 osmtest -f v -i "$tmp/wrong" -l "$tmp/log.wrong" >"$tmp/out.wrong" 2>&1
  echo $? >"$tmp/rc.wrong"
}
export -f flows
ok "the fabric comes up and goes down" \
  timeout 200 simfab run --topology "$here/four-hosts.net" --model sdr-pcix --opensm-option "qos TRUE" -- bash -c flows
while read -r f name; do
  like "-f $f: $name" 'TEST "[^"]*" PASS' "$tmp/out.$f"
  is "-f $f: exit status" "$(cat "$tmp/rc.$f")" 0
done <<'EOF'
c the inventory is made
a all validations
v the inventory holds
s services come, last and go
e events are forwarded
m groups are joined and left
q tables of QoS
EOF
is "the inventory has every node" "$(grep -c '^DEFINE_NODE' "$tmp/inventory")" 6
not_ok "a wrong inventory is noticed" grep -q '" PASS' "$tmp/out.wrong"

done_testing
