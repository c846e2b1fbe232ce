#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Large messages between hosts that the receiver reads (MRMPI_RNDV): over one rail and over two, and when it does so by itself.
# --all: more rounds.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
topology=$root/etc/topologies/two-hosts-two-rails.net

# in_fabric MODEL: runs the lines of stdin, "HOW RAILS RANKS PROGRAM ARGS...", each of which must end well and say nothing
in_fabric() {
  cat >"$tmp/lines"
  cat >"$tmp/each" <<'EOF'
while read -r how rails ranks line; do
  MRMPI_RNDV=$how MRMPI_RAILS_MAX=$rails MRMPI_LOG_LEVEL=0 timeout -k 5 100 \
    mrrun -n "$ranks" --ppn $(((ranks + 1) / 2)) "$BUILD/tests/mpi/"$line >"$1/out" 2>&1 </dev/null
  echo "$how $rails $ranks $line: $? $(head -c 500 "$1/out" | tr '\n' ' ')"
done <"$1/lines" >"$1/results"
EOF
  timeout -k 5 400 simfab run --topology "$topology" --model "$1" -- bash "$tmp/each" "$tmp" >"$tmp/fabric" 2>&1 </dev/null
  while read -r line; do
    like "$1: $line" "^$line: 0 $" "$tmp/results"
  done <"$tmp/lines"
  rm -f "$tmp/results"
}

in_fabric hdr <<'EOF'
auto 2 2 p2p_read
read 1 2 p2p_read
read 2 2 p2p_read
write 2 2 p2p_read write
read 2 3 p2p_sizes
read 2 2 p2p_truncate
auto 1 2 p2p_batches
auto 2 2 p2p_batches 600000
auto 1 2 p2p_batches 16380
auto 2 4 p2p_batches 9000
write 2 2 p2p_batches 9000
read 2 4 p2p_many
read 2 2 cancel
EOF
in_fabric sdr-pcix <<'EOF'
auto 2 2 p2p_read write
read 2 2 p2p_read
EOF

# uncopied LINKS LOSS [TIMES]: from the program's memory, since copies take time, while each of its connections may break with
# packets of that under way
sed '/^  copy_mbytes_per_s:/d; s/^program:/&\n  copy_mbytes_per_s: 12000/' "$root/etc/models/hdr.yaml" >"$tmp/model.yaml"
uncopied() {
  MRMPI_LINKS=$1 MRMPI_RC_TIMEOUT=8 MRMPI_RC_RETRY=1 MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$topology" --model "$tmp/model.yaml" -- bash -c \
    "simfab fault link 'h2 mlx5_0' 1 loss=$2; exec mrrun -n 4 --ppn 2 --stats $BUILD/tests/mpi/p2p_zcopy ${3:-}" >"$tmp/out" 2>&1 </dev/null
  is "$1, loss $2: p2p_zcopy" "$? $(grep 'not so' "$tmp/out")" "0 "
}
least() { sed -n "s/.*counters: .*$1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n | head -n 1; }
# messages of a collective that could come eagerly are announced where copies take time, and many come at a time
crowd() { # MODEL
  simfab topology star --hosts 4 >"$tmp/four.net" &&
    MRMPI_LOG_LEVEL=0 timeout -k 5 200 simfab run --topology "$tmp/four.net" --model "$1" -- \
      mrrun -n 4 --ppn 1 --stats "$BUILD/tests/mpi/coll_ready" 12000 >"$tmp/out" 2>&1 </dev/null
  is "$1: coll_ready 12000" "$? $(grep -c wrong "$tmp/out")" "0 0"
}
sum() { sed -n "s/.*counters: .*$1=\([0-9]*\).*/\1/p" "$tmp/out" | awk '{ n += $1 } END { print n + 0 }'; }
crowd "$tmp/model.yaml"
ok "they were written to where receivers were ready ($(sum ready_sent))" test "$(sum ready_sent)" -gt 100
crowd hdr
is "copies that take no time are made" "$(sum ready_sent)" 0
uncopied rc 0.1
ok "sends came from the program's memory ($(least packets_zcopy)), while links broke ($(least broken))" \
  test "$(least packets_zcopy)" -gt 10000 -a "$(least broken)" -gt 0
uncopied uc 0 $([ "${1:-}" = --all ] || echo 20)
is "where adapters confirm nothing they are copied" "$(least packets_zcopy)" ""
done_testing
