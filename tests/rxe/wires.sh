# shellcheck shell=bash
# Sourced inside the laboratory's machine, after tap.sh and rails.sh: what goes over the wires while a command runs.
#
#   wires_of CMD...        runs it, its output in $tmp/job; sets sent[INTERFACE], bytes, for a0 b0 a1 b1 lo, and prints them
#   wires_sort INTERFACE   from now on count what it sends by traffic class: IPv4 and IPv6 with class selector 0 to 7
#   wires_class INTERFACE 4|6 N   bytes of class selector N since then;  wires_unsort INTERFACE   end of that
#   wires_shape MBPS...    rates in MB/s of rail 0, 1, ...; none: as fast as they can
#   hosts RAILS            the two hosts for mrrun --hosts
wires=(a0 b0 a1 b1 lo)
wires_count() { local i; for i in "${wires[@]}"; do wire_bytes "$i"; done; }
wires_of() {
  local i rc before after
  mapfile -t before < <(wires_count)
  "$@" >"$tmp/job" 2>&1
  rc=$?
  mapfile -t after < <(wires_count)
  declare -gA sent
  for i in "${!wires[@]}"; do sent[${wires[i]}]=$((after[i] - before[i])); done
  echo "# sent:$(for i in "${wires[@]}"; do echo -n " $i ${sent[$i]}"; done)"
  return $rc
}
wires_sort() { # a queue for each class; what is no IP goes to the sixteenth
  local n
  tc qdisc del dev "$1" root 2>/dev/null
  tc qdisc add dev "$1" root handle 1: prio bands 16 priomap 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 15 || return 1
  for n in 0 1 2 3 4 5 6 7; do
    tc filter add dev "$1" parent 1: pref 4 protocol ip u32 match ip dsfield $((n * 32)) 0xff flowid "1:$(printf %x $((n + 1)))" || return 1
  done
  for n in 0 1 2 3 4 5 6; do # there is no seventeenth band: class 7 of IPv6 is not looked for
    tc filter add dev "$1" parent 1: pref 6 protocol ipv6 u32 match ip6 priority $((n * 32)) 0xff flowid "1:$(printf %x $((n + 9)))" || return 1
  done
}
wires_class() {
  local band=$(($3 + 1 + ($2 == 6) * 8))
  tc -s class show dev "$1" | awk -v id="1:$(printf %x $band)" '$1 == "class" { here = $3 == id } here && $1 == "Sent" { print $2 }'
}
wires_unsort() { tc qdisc del dev "$1" root; }
wires_shape() {
  local end r=0 rate
  for end in a0 b0 a1 b1; do tc qdisc del dev $end root 2>/dev/null; done
  for rate; do
    for end in a$r b$r; do tc qdisc add dev $end root tbf rate "${rate}mbps" burst 64k limit 4m || return 1; done
    r=$((r + 1))
  done
}
hosts() { # RAILS
  local r a= b=
  for ((r = 0; r < $1; r++)); do a+=+rxa$r b+=+rxb$r; done
  echo "a=${a#+},b=${b#+}"
}
