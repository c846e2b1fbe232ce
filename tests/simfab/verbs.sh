#!/usr/bin/env bash
# Debian's verbs programs, unmodified, on the simulated hosts h1 and h2: devices, and every pingpong in polling and event mode
# with its data checked where the program can. Two runs give the same digits.
. "$(dirname "$0")/../tap.sh"

# what libibverbs exports and needs no object of ours, or only converts
real='copy_ah_attr_from_kern|copy_path_rec_from_kern|copy_path_rec_to_kern|copy_qp_attr_from_kern|event_type_str'
real+='|get_sysfs_path|node_type_str|port_state_str|rate_to_mbps|rate_to_mult|read_ibdev_sysfs_file|register_driver|wc_status_str'
missing() {
  local lib
  lib=$(ldconfig -p | awk '/libibverbs\.so\.1 /{print $NF; exit}')
  comm -23 <(exported "$lib" | grep -vE "^_?ibv_(cmd_.*|$real)$") <(exported "$BUILD/lib/libsimfab.so")
}
exported() { nm -D --defined-only "$1" | awk '{sub(/@.*/, "", $3); print $3}' | grep -E '^_?ibv_' | sort -u; }

if [ "${1:-}" != inside ]; then
  for p in ibv_devices ibv_devinfo ibv_rc_pingpong opensm; do
    command -v $p >/dev/null || skip_all "$p is not installed"
  done
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash "$0" inside
fi


# pair NAME PROGRAM ARGS: server on h1, client on h2; their outputs in $tmp/NAME.server and .client
pair() {
  local name=$1 prog=$2 port server rc_client rc_server i
  shift 2
  port=$(free_port)
  timeout 30 simfab exec h1 -- "$prog" -p "$port" "$@" >"$tmp/$name.server" 2>&1 &
  server=$!
  wait_for 60 eval "listening $port || ! kill -0 $server"
  timeout 30 simfab exec h2 -- "$prog" -p "$port" "$@" h1 >"$tmp/$name.client" 2>&1
  rc_client=$?
  wait $server
  rc_server=$?
  [ $rc_client -eq 0 ] && [ $rc_server -eq 0 ] && return 0
  echo "client: exit $rc_client"; cat "$tmp/$name.client"
  echo "server: exit $rc_server"; cat "$tmp/$name.server"
  return 1
}
figures() { grep -hE 'bytes in|iters in' "$tmp/$1.client" "$tmp/$1.server"; }
data_is_right() { ! grep -h 'invalid data' "$tmp/$1.server" "$tmp/$1.client"; }

is "every function of libibverbs that takes an object is ours" "$(missing)" ""
is "and nothing else is exported but what programs call by that name" "$(nm -D --defined-only "$BUILD/lib/libsimfab.so" | awk '{print $3}' | grep '^sfp_')" ""

simfab exec h1 -- ibv_devices >"$tmp/devices" 2>&1
like "ibv_devices lists the first HCA of h1" '^ +mlx5_0[[:space:]]+[0-9a-f]{16}$' "$tmp/devices"
like "ibv_devices lists the second HCA of h1" '^ +mlx5_1[[:space:]]+[0-9a-f]{16}$' "$tmp/devices"
simfab exec h2 -- ibv_devices >"$tmp/devices2" 2>&1
not_ok "h2 has other GUIDs" cmp -s "$tmp/devices" "$tmp/devices2"

ok "ibv_devinfo -v" eval 'simfab exec h2 -- ibv_devinfo -v >"$tmp/devinfo"'
is "both ports are active" "$(grep -c 'state:.*PORT_ACTIVE (4)' "$tmp/devinfo")" 2
is "both have a LID" "$(grep -cE 'port_lid:[[:space:]]+[1-9]' "$tmp/devinfo")" 2
like "link layer" 'link_layer:[[:space:]]+InfiniBand' "$tmp/devinfo"
like "GID 0 has the default prefix" 'GID\[ *0\]:[[:space:]]+fe80:0000:0000:0000:' "$tmp/devinfo"
is "the simulated host's name" "$(simfab exec h2 -- hostname)" h2
is "uname too" "$(simfab exec h1 -- uname -n)" h1

# name, program, arguments; with "checked" the program validates what it received
while read -r checked name prog args; do
  # shellcheck disable=SC2086
  ok "$prog $args" pair "$name" "$prog" $args
  like "$prog $args: prints its figures" '^[0-9]+ iters in [0-9.]+ seconds = [0-9.]+ usec/iter' "$tmp/$name.client"
  [ "$checked" = checked ] && ok "$prog $args: data is right" data_is_right "$name"
done <<'TABLE'
checked rc      ibv_rc_pingpong -c
checked rc_e    ibv_rc_pingpong -c -e
checked rc_big  ibv_rc_pingpong -c -s 1048576 -n 20 -m 2048
checked rc_one  ibv_rc_pingpong -c -s 1 -n 200
checked rc_new  ibv_rc_pingpong -c -N -n 200
checked rc_2    ibv_rc_pingpong -c -d mlx5_1 -n 200
checked uc      ibv_uc_pingpong -c -n 200
checked uc_e    ibv_uc_pingpong -c -e -n 200
checked ud      ibv_ud_pingpong -c -n 500
checked ud_e    ibv_ud_pingpong -c -e -n 500
checked srq     ibv_srq_pingpong -c -n 100
checked srq_e   ibv_srq_pingpong -c -e -n 100
TABLE

is "a reading of the clock at both ends is virtual: 1000 exchanges take 10 to 100 ms" \
  "$(awk '/iters in/ {print ($4 > 0.01 && $4 < 0.1) ? "yes" : "no: " $0}' "$tmp/rc.client")" yes

pair again ibv_rc_pingpong -c
is "a second run prints the same digits" "$(figures again)" "$(figures rc)"
pair again ibv_ud_pingpong -c -n 500
is "and so does UD" "$(figures again)" "$(figures ud)"
pair again ibv_rc_pingpong -c -s 1048576 -n 20 -m 2048
is "and large messages" "$(figures again)" "$(figures rc_big)"
pair again ibv_srq_pingpong -c -n 100
is "and many queue pairs over a shared receive queue" "$(figures again)" "$(figures srq)"

done_testing
