# shellcheck shell=bash
# Sourced inside the laboratory's machine: rails between two "hosts", A and B, that share it.
#
# Rail r is a pair of veth interfaces, ar and br, each with a soft-RoCE device (rxar, rxbr) and addresses 10.0.r.1 and
# 10.0.r.2, fd00:0:0:r::1 and ::2. Both ends are on one machine, whose kernel would keep such traffic to itself; rules of
# routing, by source and destination, send it over the wire, where its counters and faults (tc) are.

rail_addresses() { # INTERFACE RAIL END
  ip addr add "10.0.$2.$3/24" dev "$1" && ip -6 addr add "fd00:0:0:$2::$3/64" dev "$1" nodad
}
rail_routes() { # INTERFACE RAIL OWN OTHER OTHERS_MAC: from OWN to OTHER through INTERFACE
  local table=$((200 + $2 * 10 + $3))
  ip route replace "10.0.$2.$4" dev "$1" src "10.0.$2.$3" table $table
  ip neigh replace "10.0.$2.$4" lladdr "$5" dev "$1" nud permanent
  ip -6 route replace "fd00:0:0:$2::$4" dev "$1" src "fd00:0:0:$2::$3" table $table
  ip -6 neigh replace "fd00:0:0:$2::$4" lladdr "$5" dev "$1" nud permanent
}
rail_rules() { # RAIL OWN OTHER
  local table=$((200 + $1 * 10 + $2))
  ip rule add pref 10 iif lo from "10.0.$1.$2" to "10.0.$1.$3" lookup $table
  ip -6 rule add pref 10 iif lo from "fd00:0:0:$1::$2" to "fd00:0:0:$1::$3" lookup $table
}
mac() { cat "/sys/class/net/$1/address"; }
# What a link loses when it goes down, put back: its IPv6 addresses, too.
rail_restore() { # RAIL
  local i=1 end
  for end in "a$1" "b$1"; do
    ip -6 addr replace "fd00:0:0:$1::$i/64" dev "$end" nodad
    i=2
  done
  rail_routes "a$1" "$1" 1 2 "$(mac "b$1")"
  rail_routes "b$1" "$1" 2 1 "$(mac "a$1")"
}
rail_up() { # RAIL
  local r=$1 i
  ip link add "a$r" mtu 4200 type veth peer name "b$r" mtu 4200 || return 1
  for i in a$r b$r; do
    echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local"
    echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"
    ip link set "$i" up
  done
  rail_addresses "a$r" "$r" 1 && rail_addresses "b$r" "$r" 2 && rail_rules "$r" 1 2 && rail_rules "$r" 2 1 || return 1
  rail_restore "$r" || return 1
  rdma link add "rxa$r" type rxe netdev "a$r" && rdma link add "rxb$r" type rxe netdev "b$r"
}
rails_up() { # NUMBER
  local r f
  for f in all default; do
    echo 1 >/proc/sys/net/ipv4/conf/$f/accept_local
    echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter
  done
  # the machine's own addresses are looked up after our rules, not before
  for f in -4 -6; do
    ip $f rule add pref 100 lookup local && ip $f rule del pref 0 || return 1
  done
  for ((r = 0; r < $1; r++)); do rail_up $r || return 1; done
}
# Bytes sent so far by an interface.
wire_bytes() { cat "/sys/class/net/$1/statistics/tx_bytes"; }
# Both directions of a rail take so many kB (1000 bytes) per second at most; 0: as many as they can.
rail_limit() { # RAIL KB_PER_SECOND
  local i burst=$(($2 * 4 > 9000 ? $2 * 4 : 9000)) # 4 ms, or two packets
  for i in "a$1" "b$1"; do
    tc qdisc del dev "$i" root 2>/dev/null
    [ "$2" = 0 ] || tc qdisc add dev "$i" root tbf rate "$(($2 * 8))kbit" burst $burst limit 4mb || return 1
  done
}
