#!/usr/bin/env bash
# Everyday programs on the simulated sysfs: what they list, copy, search and read is what is there.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
export tmp

look() {
  simfab exec h1 -- ls -lR /sys/class/infiniband /sys/class/infiniband_mad /dev/infiniband >"$tmp/ls"
  echo $? >"$tmp/ls.rc"
  simfab exec h1 -- find /sys/class/infiniband -type f -path '*mlx5_0*' >"$tmp/found"
  simfab exec h1 -- cp -r /sys/class/infiniband/mlx5_0 "$tmp/copy"
  echo $? >"$tmp/cp.rc"
  simfab exec h1 -- bash -c 'while read -r f; do echo "$f $(cat "$f" 2>&1)"; done' <"$tmp/found" >"$tmp/cat"
  while read -r f; do echo "$f $(cat "$tmp/copy/${f#/sys/class/infiniband/mlx5_0/}" 2>&1)"; done <"$tmp/found" >"$tmp/copied"
  simfab exec h1 -- grep -r . /sys/class/infiniband/mlx5_0/ports/1/counters >"$tmp/grep"
  simfab exec h1 -- wc -c /sys/class/infiniband/mlx5_0/ports/1/state >"$tmp/wc"
  simfab exec h1 -- dd if=/sys/class/infiniband/mlx5_0/ports/1/state bs=1 count=4 2>/dev/null >"$tmp/dd"
  simfab exec h1 -- tar cf "$tmp/tar" -C /sys/class/infiniband mlx5_0 >"$tmp/tar.out" 2>&1
  echo $? >"$tmp/tar.rc"
  simfab exec h1 -- bash -c 'stat -c "%h %i" /sys/class/infiniband/mlx5_0/ports/1/{pkeys/*,state,rate}' >"$tmp/inodes"
  simfab exec h1 -- cmp -s /sys/class/infiniband/mlx5_0/ports/1/pkeys/{0,1}
  echo $? >"$tmp/cmp.rc"
  # a counter follows the packets, and perfquery -R clears it here as well
  simfab exec h1 -- ibv_rc_pingpong -p "$port" -n 10 >"$tmp/pp" 2>&1 &
  local pp=$!
  until listening $port; do sleep 0.05; done
  simfab exec h2 -- ibv_rc_pingpong -p "$port" -n 10 localhost >>"$tmp/pp" 2>&1
  wait $pp
  simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/counters/{port_xmit_packets,unicast_rcv_packets} >"$tmp/before"
  simfab exec h1 -- perfquery -x >"$tmp/perfquery"
  simfab exec h1 -- perfquery -R -x
  simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets >"$tmp/after"
}
export -f look
for ((port = 23500; port < 23600; port++)); do
  listening $port || break
done
export port
ok "the fabric comes up and goes down" \
  timeout 100 simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash -c look
is "ls -lR works" "$(cat "$tmp/ls.rc")" 0
ok "find finds files" test "$(wc -l <"$tmp/found")" -gt 50
is "cp -r works" "$(cat "$tmp/cp.rc")" 0
not_ok "every file can be read" grep -Eq ': (No such file|Input/output error|Permission)' "$tmp/cat"
ok "what cp copied is what cat says" cmp "$tmp/cat" "$tmp/copied"
is "grep -r reads counters" "$(wc -l <"$tmp/grep")" 21
is "wc counts the bytes that are there" "$(cut -d' ' -f1 "$tmp/wc")" 10
# dd asks for memory in a way that the address sanitizer ends a program for
[ -n "$(sanitizers)" ] || is "dd reads them one by one" "$(cat "$tmp/dd")" "4: A"
is "tar takes all" "$(cat "$tmp/tar.rc") $(tar tf "$tmp/tar" | grep -c '/counters/.')" "0 21"
is "each is a file of its own, with one name" "$(sort -u "$tmp/inodes" | grep -c '^1 ') of $(wc -l <"$tmp/inodes")" "66 of 66"
is "cmp sees that two differ" "$(cat "$tmp/cmp.rc")" 1
ok "counters count" test "$(head -1 "$tmp/before")" -gt 0
is "sysfs and perfquery agree" "$(head -1 "$tmp/before")" "$(sed -n 's/^PortXmitPkts:\.*//p' "$tmp/perfquery")"
is "what is cleared is cleared in both" "$(cat "$tmp/after")" 0
link_of() { # MODEL: what the adapter's PCI Express link is
  timeout 100 simfab run --topology two-hosts-two-rails --model "$1" -- simfab exec h1 -- \
    sh -c 'cd /sys/class/infiniband/mlx5_1/device && cat current_link_speed current_link_width max_link_speed max_link_width' | tr '\n' ,
}
is "PCI-X is no PCI Express" "$(link_of sdr-pcix)" "Unknown,0,Unknown,0,"
is "a bus of 1650 MB/s is eight lanes of the first generation" "$(link_of ddr-connectx)" "2.5 GT/s PCIe,8,2.5 GT/s PCIe,8,"
is "27.5 GB/s are sixteen of the fourth" "$(link_of hdr)" "16.0 GT/s PCIe,16,16.0 GT/s PCIe,16,"
done_testing
