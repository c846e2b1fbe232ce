#!/usr/bin/env bash
# qperf, unmodified, between two simulated hosts: every test of RC and UC, and the latency of UD, against the model's arithmetic.
# It measures for whole seconds, of virtual time, so the models are such that little happens in one: latencies over cables of
# 40 km, rates over links of one lane. It waits for completion events, but where a test is named after polling.
# timeout: 1200
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v qperf >/dev/null || skip_all "qperf is not installed"
on_exit fabric_end
models=$(cd "$(dirname "$0")/../../etc/models" && pwd)
base=sdr-pcix far=200000 # propagation in ns

changed() { # NAME KEY VALUE: the model with another value
  sed -e "s/^name:.*/name: $1/" -e "s/^  $2:.*/  $2: $3/" "$models/$base.yaml" >"$tmp/$1.yaml"
}
up() { # MODEL-FILE: a subnet, and a server on h1
  ok "the subnet of model $(basename "$1" .yaml) comes up" fabric "$1"
  port=$(free_port)
  timeout 1000 simfab exec h1 -- qperf -lp "$port" >"$tmp/server" 2>&1 &
  server=$!
  until_listening "$port" $server
}
down() {
  ok "the server ends" simfab exec h2 -- qperf -lp "$port" localhost quit
  wait $server
  is "and had nothing to say" "$(grep -v '^quit:' "$tmp/server")" ""
  fabric_end
}
# measure TEST: ends well; its figures in $tmp/client
measure() { ok "qperf $1" client "$1"; }
client() {
  timeout 170 simfab exec h2 -- qperf -lp "$port" -t 1 -e 7 -v -uu localhost "$1" >"$tmp/client" 2>&1
  local rc=$?
  cat "$tmp/client"
  return $rc
}
figure() { awk -v k="$1" '$1 == k && $2 == "=" {gsub(",", "", $3); print $3; exit}' "$tmp/client"; }
# less TIMES: the latency in us without the cables, which are crossed so many times two, as long as the base model's
less() { awk -v v="$(figure latency)" -v n="$1" -v far=$far -v near="$near" 'BEGIN {print v / 1000 - 2 * n * (far - near) / 1000}'; }
value() { awk -v k="$1:" '$1 == k {print $2 / 1000}' "$models/$base.yaml"; } # KEY: us
by() { # TIMES KIND EVENTS: between the base model's bounds for KIND and one byte, and what completion events cost
  local low high
  read -r low high < <(fabric_model=$base; arith "$2" 1)
  ok "by the model's arithmetic" between "$(less "$1")" "$(awk -v x="$low" -v e="$3" -v n="$(value event_ns)" 'BEGIN {print x + e * n}')" \
    "$(awk -v x="$high" -v e="$3" -v n="$(value event_ns)" 'BEGIN {print x + e * n}')"
}
# Four atomics, as many as the adapter can, go there and back together; the next ones are in its queue, so that the program's
# part, the doorbell and the completion cost nothing.
atomics() {
  local low high cables
  read -r low high < <(fabric_model=$base; arith atomic 8)
  cables=$(awk -v far=$far -v near="$near" 'BEGIN {print 4 * (far - near) / 1000}')
  ok "four at a time, by the model's arithmetic" between "$(figure msg_rate)" "$(awk -v x="$high" -v c="$cables" 'BEGIN {print 4e6 / (c + x) - 4}')" \
    "$(awk -v x="$low" -v c="$cables" -v own="$(value post_ns) $(value doorbell_ns) $(value poll_ns) $(value cqe_ns)" \
      'BEGIN {split(own, o, " "); print 4e6 / (c + x - o[1] - o[2] - o[3] - o[4]) + 4}')"
}
rate() { # FIGURE KIND: MB/s of 64 KiB messages
  local low high
  read -r low high < <(arith "$2" 65536)
  ok "by the model's arithmetic" between "$(awk -v v="$(figure "$1")" 'BEGIN {print v / 1e6}')" "$low" "$high"
}
near=$(awk '$1 == "propagation_ns:" {print $2}' "$models/$base.yaml")

changed far propagation_ns $far
up "$tmp/far.yaml"
for t in rc_lat uc_lat ud_lat rc_rdma_write_lat uc_rdma_write_lat; do
  measure $t
  by 1 event 0 # writes have immediate data, else nobody would be told
done
measure uc_rdma_write_poll_lat
by 1 write 0
measure rc_rdma_read_lat
by 2 read 1
for t in rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add; do
  measure $t
  atomics
done
down

# Between spinning on memory it polls for acknowledges, so that a spinner cannot be told soon from a thread at work: each turn takes
# 50 ms of processor time. 1000 km make few turns of a second.
changed farther propagation_ns 5000000
up "$tmp/farther.yaml"
measure rc_rdma_write_poll_lat
ok "a hundred ways in a second" between "$(figure msg_rate)" 99 101
down

changed narrow width 1
up "$tmp/narrow.yaml"
for t in rc_bw rc_rdma_write_bw rc_rdma_read_bw; do
  measure $t
  rate bw rate
done
for t in uc_bw uc_rdma_write_bw; do
  measure $t
  rate recv_bw rate
done
measure rc_bi_bw
rate bw both
measure uc_bi_bw
rate recv_bw both
down
done_testing
