#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the unmodified ibnetdiscover prints of a simulated fabric is a netlist of the same fabric.
. "$(dirname "$0")/../tap.sh"
command -v ibnetdiscover >/dev/null || skip_all "ibnetdiscover is not installed"
here=$(cd "$(dirname "$0")" && pwd)
cd "$tmp" || exit 2

# LIDs are the subnet manager's, who gives them in the order of its discovery; the heading has the date
discovered() { sed '/^# Topology file/d; s/ lid [0-9]*//g' "$1"; }
twice() { # NETLIST HOST FORM...: discovered as first, and of that as second
  local net=$1 host=$2 i
  shift 2
  for i in first second; do
    simfab run --topology "$net" --sm "$host" -- simfab exec "$host" -- ibnetdiscover "$@" >$i.net || return
    net=$i.net
  done
}
round() {
  twice "$@" && discovered first.net >first.txt && discovered second.net >second.txt && [ -s first.txt ] &&
    diff first.txt second.txt
}
simfab topology fat-tree --hosts 20 --radix 8 --rails 2 --speed HDR >tree.net
simfab topology ring --hosts 6 --switches 3 --radix 8 --speed FDR --width 2 >ring.net
cp "$here/grown.net" .
for form in "" --full --grouping --max_hops; do
  ok "a fat tree of two rails${form:+, $form}" round tree.net h01 $form
  ok "a ring at 2xFDR${form:+, $form}" round ring.net h1 $form
  ok "a grown cluster${form:+, $form}" round grown.net node01 $form
done
is "hosts that have no name of their own are called by their GUIDs" \
  "$(simfab run --topology grown.net --no-opensm -- simfab status --hosts | sort | tr '\n' ' ')" \
  "H-0000000000000030 H-0000000000000040 H-0000000000000050 H-0000000000000070 H-0000000000000080 localhost node01 "

# a list of ports: in another order, and without what it does not have
ports() { sed 's/^\(..\) *[0-9]*/\1/; s/ - \(..\) *[0-9]*/ - \1/' "$1" | sort; }
same_ports() {
  twice "$@" && ports first.net >first.txt && ports second.net >second.txt && [ -s first.txt ] && diff first.txt second.txt
}
ok "the list of ports of a fat tree" same_ports tree.net h01 --ports
ok "the list of ports of a ring" same_ports ring.net h1 --ports

# FDR10, of which only the vendor's attribute tells: PortInfo says QDR
echo '{link: {speed: FDR10, width: 4}, hca: {vendor_part_id: 4099}}' >fdr10.yaml
simfab topology star --hosts 2 --radix 4 | sed 's/^Switch/vendid=0x2c9\ndevid=0xc738\n&/' >fdr10.net
cat >fdr10.sh <<'END'
simfab exec h1 -- iblinkinfo >fdr10.links
simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/rate
simfab fault link "h2 mlx5_0" 1 speed=QDR
simfab exec h1 -- iblinkinfo >qdr.links
END
ok "a fabric of FDR10" eval 'simfab run --topology fdr10.net --model fdr10.yaml -- bash fdr10.sh >fdr10.rate'
is "sysfs calls it so" "$(cat fdr10.rate)" "40 Gb/sec (4X FDR10)"
is "and iblinkinfo, at both ends of both cables" "$(grep -c '(FDR10) *Active' fdr10.links)" 4
is "one cable that runs at QDR only is seen" "$(grep -c '(FDR10) *Active' qdr.links)" 2

# a host calls its adapter by another name, which the manager must be told of
cat >describe.sh <<'END'
simfab exec h1 -- sh -c 'printf "first of %63s" two >/sys/class/infiniband/mlx5_0/node_desc; cat /sys/class/infiniband/mlx5_0/node_desc'
wait_for 60 grep -q 'Node description update' "$SIMFAB_DIR/opensm/opensm.log"
grep -o 'Node description update' "$SIMFAB_DIR/opensm/opensm.log"
wait_for 60 eval "simfab exec h2 -- saquery NR | grep 'first of'"
simfab exec h2 -- ibnetdiscover | grep -o '"first of *.' | head -1
simfab exec h1 -- sh -c 'echo 1 >/sys/class/infiniband/mlx5_0/node_guid' || echo refused
simfab fault link "h1 mlx5_0" 1 down && echo "simfab calls it as ever"
END
ok "a description is written" eval 'simfab run --topology two-hosts-two-rails -- bash describe.sh >describe.out'
is "sysfs reads it back, 64 bytes of it" "$(sed -n 1p describe.out)" "$(printf 'first of %55s' '')"
is "opensm hears that it has changed (trap 144)" "$(sed -n 2p describe.out)" "Node description update"
is "everybody sees it" "$(sed -n 3p describe.out | tr -s ' ')" '"first of "'
is "other files are not written" "$(sed -n 4p describe.out)" refused
is "commands know the adapter as ever" "$(sed -n 5p describe.out)" "simfab calls it as ever"
done_testing
