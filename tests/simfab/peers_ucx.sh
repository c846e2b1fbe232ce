#!/usr/bin/env bash
# UCX, unmodified: what it says about simulated devices, and ucx_perftest between two simulated hosts over reliable
# connections. It reads gettimeofday (virtual, microseconds): the time stamp counter is switched off by a variable of its
# own. peers_ucx_ud.sh has datagrams. peers_ucx.sh [MODEL | --all]: without an argument fewer tests of each kind.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ucx_perftest >/dev/null || skip_all "ucx-utils is not installed"
on_exit fabric_end
export UCX_LOG_LEVEL=warn UCX_TLS=rc_v,self

result() { awk -v c="$1" '/^Final:/ {v = $c} END {print v}' "$tmp/client"; }
run() { ok "$fabric_model: ucx_perftest $*" pair ucx_perftest "$@"; }
latency() { # KIND: the last run's is by the arithmetic, with what UCX adds to a message: 8 bytes, a poll or two more
  local low high
  read -r low high < <(arith "$1" 16)
  ok "$fabric_model: by the model's arithmetic" between "$(result 5)" "$low" "$high"
}
rate() { # BYTES TIMES: MB/s (of 2^20 bytes) of the last run, TIMES what one rail carries, less 15 % for what UCX asks first
  local low high
  read -r low high < <(arith rate "$1")
  ok "$fabric_model: by the model's arithmetic" \
    between "$(awk -v v="$(result 7)" 'BEGIN {print v * 1.048576}')" "$(awk -v x="$low" -v n="$2" 'BEGIN {print 0.85 * n * x}')" "$(awk -v x="$high" -v n="$2" 'BEGIN {print n * x}')"
}

ucp=(tag_sync_lat ucp_put_lat ucp_get ucp_cswap stream_bw ucp_am_lat)
uct=(am_lat "get -D zcopy -s 1024" fadd "am_lat -E sleep")
if [ $# -gt 0 ]; then
  ucp+=(ucp_put_bw ucp_add ucp_fadd ucp_swap stream_lat ucp_am_bw)
  uct+=(am_bw put_lat put_bw add_lat cswap add_mr)
  [ "$1" != --all ] || shift
fi
for model in ${1:-hdr}; do
  ok "the subnet of model $model comes up" fabric $model
  simfab exec h1 -- ucx_info -d >"$tmp/info" 2>&1
  is "$model: ucx_info -d ends well" $? 0
  like "it finds reliable connections" 'Transport: rc_verbs' "$tmp/info"
  simfab exec h1 -- ucx_info -c >"$tmp/info" 2>&1
  is "$model: ucx_info -c ends well" $? 0
  simfab exec h1 -- ucx_info -e -u t -D net >"$tmp/info" 2>&1
  is "$model: ucx_info -e ends well" $? 0
  like "an endpoint uses both adapters" 'rc_verbs/mlx5_1:1' "$tmp/info"
  run -t tag_lat -n 500 -w 10
  latency latency
  run -t tag_bw -n 100 -w 10 -s 1048576
  rate 1048576 2
  for t in "${ucp[@]}"; do
    run -t $t -n 200 -w 10
  done
  run -t tag_lat -n 200 -w 10 -E sleep
  run -t tag_lat -n 200 -w 10 -M multi -T 2
  for t in "${uct[@]}"; do
    # shellcheck disable=SC2086
    run -d mlx5_0:1 -x rc_verbs -n 200 -w 10 -t $t
  done
  run -d mlx5_0:1 -x rc_verbs -n 200 -w 10 -t put_bw -D zcopy -s 1048576
  rate 1048576 1
  fabric_end
done
done_testing
