#!/usr/bin/env bash
# Programs of others on simulated hosts, the long way: every option of perftest that has to do with the adapter, on both
# timing models, whose part numbers make it take the old calls (sdr-pcix) and ibv_wr_* (hdr), or the old ones on both;
# and the other peers_*.sh on the models that they leave out.
# timeout: 5400
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
. "$here/peers.inc"
PAIR_SECONDS=600 # a second of HDR is six million packets
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ib_send_lat >/dev/null || skip_all "perftest is not installed"
on_exit fabric_end

whole() { # SCRIPT MODEL: all of its results are ok
  bash "$here/$1" "$2" >"$tmp/whole" 2>&1 && ! grep -B1 -A8 '^not ok' "$tmp/whole"
}
run() { ok "$fabric_model: $*" pair "$@"; }
# MB/s (10^6) of the last run, from a result line in MB of 2^20 bytes
rate() { awk '$1 ~ /^[0-9]+$/ && NF > 3 {v = $4 * 1.048576} END {print v}' "$tmp/client"; }
is_rate() { # KIND BYTES
  local low high
  read -r low high < <(arith "$1" "$2")
  ok "$fabric_model: as the model's arithmetic has it" between "$(rate)" "$low" "$high"
}
all_sizes() { # 23 sizes from 2 bytes to 8 MiB (how soon a receiver is ready for a size is perftest's and TCP's affair)
  awk '$1 ~ /^[0-9]+$/ && NF > 3 {n++; last = $1} END {if (n != 23 || last != 8388608) {print n, last; exit 1}}' "$tmp/client"
}
rising() { # latencies
  awk '$1 ~ /^[0-9]+$/ && NF > 3 {n++; if ($6 < 0.99 * last) bad = $0; last = $6} END {if (n != 23 || bad) {print n, bad; exit 1}}' "$tmp/client"
}

for model in sdr-pcix hdr; do
  fabric $model || exit 1
  how=$(counter) || skip_all "$how"
  ok "the subnet of model $model is up, and the time stamp counter is $how" true
  for t in ib_send_bw ib_write_bw ib_read_bw; do
    run $t -n 20 -a
    ok "$model: $t: all sizes" all_sizes
    run $t -n 20 -s 8388608
    is_rate rate 8388608
    run $t -n 200 -b
    is_rate both 65536
    run $t -n 200 -q 4
    is_rate rate 65536
    run $t -n 200 -m 512
    run $t -n 200 -S 1
    [ $t = ib_write_bw ] || run $t -n 200 -e
    run $t -n 200 -t 8
    run $t -n 200 -d mlx5_1
    run $t -n 200 -x 0
    run $t -n 128 -l 8
    run $t -n 200 -Q 1
    run $t -n 200 --use_old_post_send
    run $t -n 200 -u 18
    run $t -n 200 -N
  done
  for t in ib_send_lat ib_read_lat; do
    run $t -n 20 -a
    ok "$model: $t: all sizes, slower with size" rising
    run $t -n 100 -e
    run $t -n 100 -x 0
    run $t -n 100 -S 1
    run $t -n 100 --use_old_post_send
    run $t -n 100 -H
  done
  run ib_send_lat -n 100 -I 64 -s 64
  run ib_send_lat -n 100 -I 0 -s 64
  run ib_write_lat -n 20 -s 256
  run ib_send_bw -n 200 -r 16
  run ib_send_bw -n 200 --use-srq -q 2
  run ib_send_bw -n 200 -c UD -b
  run ib_send_bw -n 200 -c UC -q 4
  run ib_send_bw -n 200 -c UD -q 4
  run ib_send_bw -n 200 -c UC -x 0
  run ib_send_bw -n 200 -c UD -x 0
  run ib_send_lat -n 100 -c UD -g
  run ib_send_bw -n 100 -c UD -g
  run ib_write_bw -n 200 -c UC -b
  run ib_read_bw -n 200 -o 1
  run ib_read_bw -n 200 -o 4
  run ib_atomic_bw -n 200 -b
  run ib_atomic_bw -n 200 -q 4
  run ib_atomic_bw -n 200 -o 1
  run ib_atomic_lat -n 100 -e
  run ib_send_bw -D 1
  is_rate rate 65536
  run ib_write_bw -D 1
  is_rate rate 65536
  fabric_end
done
ok "peers_perftest.sh on model hdr" whole peers_perftest.sh hdr
ok "peers_ucx.sh on model sdr-pcix" whole peers_ucx.sh sdr-pcix
ok "peers_mpi.sh on model hdr" whole peers_mpi.sh hdr
done_testing
