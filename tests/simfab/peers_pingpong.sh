#!/usr/bin/env bash
# The examples of libibverbs and its tools, unmodified, between two simulated hosts: every option, what is refused
# included; latencies by the model's arithmetic. They read gettimeofday, which is virtual.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ibv_rc_pingpong >/dev/null || skip_all "the examples of libibverbs are not installed"
on_exit fabric_end

half_trip() { awk '/usec\/iter/ {print $(NF - 1) / 2}' "$tmp/client"; }
run() { ok "$fabric_model: $*" pair "$@"; }
refused() { # TEXT CMD...
  local text=$1
  shift
  ok "$fabric_model: $*: refused" pair -x "$@"
  like "$*: the program says why" "$text" "$tmp/client"
}

for model in ${1:-sdr-pcix hdr}; do
  ok "the subnet of model $model comes up" fabric $model
  for t in rc uc ud; do
    run ibv_${t}_pingpong -s 4 -n 500
    read -r low high < <(arith latency 4 0) # from memory
    ok "$model: ibv_${t}_pingpong, 4 bytes: as the model's arithmetic has it" between "$(half_trip)" "$low" "$high"
    run ibv_${t}_pingpong -s 4 -n 200 -e
    read -r low high < <(arith event 4 0)
    ok "$model: the same with events: longer by the interrupt" between "$(half_trip)" "$low" "$high"
    run ibv_${t}_pingpong -n 100 -g 0
    run ibv_${t}_pingpong -n 100 -c
  done
  run ibv_rc_pingpong -n 200 -m 512 -s 10000
  run ibv_rc_pingpong -n 200 -r 10 -l 1
  run ibv_rc_pingpong -n 200 -N
  run ibv_uc_pingpong -n 200 -m 256 -r 8
  run ibv_srq_pingpong -n 500
  run ibv_srq_pingpong -n 500 -e
  run ibv_srq_pingpong -n 500 -q 4 -c
  run ibv_srq_pingpong -n 500 -g 0
  refused "isn't ODP capable" ibv_rc_pingpong -n 10 -o
  refused "isn't ODP capable" ibv_srq_pingpong -n 10 -o
  refused "[Dd]oesn't support dm" ibv_rc_pingpong -n 10 -j
  refused "XRC Domain" ibv_xsrq_pingpong -n 10
  if [ $model = sdr-pcix ]; then
    simfab exec h1 -- ibv_devices >"$tmp/devices" 2>&1
    is "ibv_devices ends well" $? 0
    like "it lists the second adapter" 'mlx5_1' "$tmp/devices"
    simfab exec h1 -- ibv_devinfo -v >"$tmp/devinfo" 2>&1
    is "ibv_devinfo -v ends well" $? 0
    like "the port is active" 'state:[[:space:]]+PORT_ACTIVE' "$tmp/devinfo"
    like "its rate is the model's" 'active_speed:[[:space:]]+2.5 Gbps' "$tmp/devinfo"
    simfab exec h1 -- timeout 60 ibv_asyncwatch -d mlx5_0 >"$tmp/async" 2>&1 &
    wait_for 60 grep -q 'async event FD' "$tmp/async"
    like "ibv_asyncwatch knows the device" 'async event FD' "$tmp/async"
    sleep 0.5
    kill %%
    wait %%
    is "and waits until it is ended" $? 143
  fi
  fabric_end
done
done_testing
