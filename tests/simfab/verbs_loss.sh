#!/usr/bin/env bash
# The verbs suite's cases about losses, over a link that loses one packet in twenty: reliable connections deliver everything once
# and in order, unreliable ones whole messages, as many as arithmetic says.
. "$(dirname "$0")/../tap.sh"
if [ "${1:-}" != inside ]; then
  command -v opensm >/dev/null || skip_all "opensm is not installed"
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash "$0" inside
fi
suite=$BUILD/tests/verbs/verbs_suite
run() { # NAME TEXT: the first side's output in $tmp/NAME, the second's in $tmp/NAME.second
  local port i server rc
  port=$(free_port)
  timeout 100 simfab exec h1 -- "$suite" -v -l $port -d mlx5_0 -k "$2" >"$tmp/$1.second" 2>&1 &
  server=$!
  wait_for 60 listening "$port"
  timeout 100 simfab exec h2 -- "$suite" -v -c h1:$port -d mlx5_0 -k "$2" >"$tmp/$1" 2>&1
  rc=$?
  wait $server || rc=1
  return $rc
}
came() { sed -n 's/^# \([0-9]*\) of 300 .*/\1/p' "$tmp/$1.second"; }

run sound "loss: unreliable"
is "all unreliable messages come over a sound link" "$(came sound)" 300
ok "a lossy link" simfab fault link "h1 mlx5_0" loss=0.05
run lossy "loss: "
is "every case holds over a link that loses packets" $? 0
is "that is four cases" "$(grep -c '^ok' "$tmp/lossy")" 4
sed 's/^/# /' "$tmp/lossy" "$tmp/lossy.second"
# messages of 1, 1, 2, 2, 3, 5, 8 and 8 packets of 1024 bytes: 250 of 300 are expected, with a deviation of 6.4
n=$(came lossy)
ok "${n:-none} of 300 unreliable messages came, about 250 are expected" test "${n:-0}" -ge 225 -a "${n:-0}" -le 275
done_testing
