#!/usr/bin/env bash
# What a port tells programs, by ibv_get_async_event as ibv_asyncwatch prints it: each event once, on its own adapter, when what it
# tells of can already be seen.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ibv_asyncwatch >/dev/null || skip_all "ibverbs-utils is not installed"
command -v ibportstate >/dev/null || skip_all "infiniband-diags is not installed"
if [ "${1:-}" != inside ]; then
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails -- bash "$0" inside
fi
for d in 0 1; do
  simfab exec h2 -- stdbuf -oL ibv_asyncwatch -d mlx5_$d >"$tmp/$d" 2>&1 &
  eval "watch$d=$!"
done
on_exit 'kill $watch0 $watch1; wait $watch0 $watch1 2>/dev/null'
for d in 0 1; do
  wait_for 60 grep -q "async event" "$tmp/$d"
done
port() { simfab exec h2 -- ibv_devinfo -d "mlx5_${2:-0}" | awk -v k="$1:" '$1 == k {print $2}'; } # KEY [DEVICE]
# told EVENT N: mlx5_0 has told of it so often, after a while, and mlx5_1 never
told() {
  wait_for 60 eval "[ \$(grep -c 'IBV_EVENT_$1\>' $tmp/0) -ge $2 ]"
  echo "$(grep -c "IBV_EVENT_$1\>" "$tmp/0") and $(grep -c "IBV_EVENT_$1\>" "$tmp/1")"
}
lid=$(port port_lid)
is "nothing has happened yet" "$(grep -c IBV_EVENT "$tmp/0" "$tmp/1" | cut -d : -f 2 | tr '\n' ' ')" "0 0 "

ok "another LID" simfab exec h1 -- ibportstate "$lid" 1 lid 77
is "a LID change" "$(told LID_CHANGE 1)" "1 and 0"
is "the port has it" "$(port port_lid)" 77
ok "the LID that was" simfab exec h2 -- ibportstate -D 0 1 lid "$lid"
is "another LID change" "$(told LID_CHANGE 2)" "2 and 0"
is "the port has it back" "$(port port_lid)" "$lid"

ok "the same LID again" simfab exec h2 -- ibportstate -D 0 1 lid "$lid"
ok "another subnet manager's LID" simfab exec h2 -- ibportstate -D 0 1 smlid 99
is "a change of the subnet manager" "$(told SM_CHANGE 1)" "1 and 0"
is "and none of the LID" "$(told LID_CHANGE 2)" "2 and 0"
is "the port has it" "$(port sm_lid)" 99

ok "the link goes" simfab fault link "h2 mlx5_0" down
is "a port error" "$(told PORT_ERR 1)" "1 and 0"
is "the port is down" "$(port state)" PORT_DOWN
is "the other is not" "$(port state 1)" PORT_ACTIVE
ok "the link comes" simfab fault link "h2 mlx5_0" up
is "the port is active" "$(told PORT_ACTIVE 1)" "1 and 0"
is "as the port says" "$(port state)" PORT_ACTIVE

before=$(grep -c IBV_EVENT_CLIENT_REREGISTER "$tmp/0")
ok "a new subnet manager" simfab opensm restart
ok "with the subnet up" simfab opensm wait
is "asks clients to register again" "$(told CLIENT_REREGISTER $((before + 1)) | cut -d ' ' -f 1)" $((before + 1))
like "on the other adapter too" 'IBV_EVENT_CLIENT_REREGISTER' "$tmp/1"
is "there was no other event of a port" "$(cat "$tmp/0" "$tmp/1" | grep IBV_EVENT | grep -cvE 'EVENT_(LID_CHANGE|SM_CHANGE|PORT_ERR|PORT_ACTIVE|CLIENT_REREGISTER)\>')" 0
done_testing
