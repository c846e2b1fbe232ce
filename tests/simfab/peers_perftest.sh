#!/usr/bin/env bash
# perftest, unmodified, between two simulated hosts: every program and every transport once. The figures that the
# programs print are compared with the model's arithmetic. perftest reads the time stamp counter (caught: tsc.sh)
# and gettimeofday; both are virtual. peers_matrix.sh has the options.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ib_send_lat >/dev/null || skip_all "perftest is not installed"
on_exit fabric_end

result() { # COLUMN FACTOR: of the last line of results
  awk -v c="$1" -v f="$2" '$1 ~ /^[0-9]+$/ && NF > 3 {v = $c * f} END {print v}' "$tmp/client"
}
# KIND BYTES CMD...: the program runs, and its figure is what the arithmetic says
check() {
  local kind=$1 bytes=$2 value low high
  shift 2
  ok "$fabric_model: $*" pair "$@"
  read -r low high < <(arith "$kind" "$bytes")
  case $kind in # perftest's MB are 2^20 bytes
    rate | both) value=$(result 4 1.048576) ;;
    atomics) value=$(result 5 1) ;;
    *) value=$(result 6 1) ;;
  esac
  ok "$fabric_model: $*: as the model's arithmetic has it" between "$value" "$low" "$high"
}

fabric "${1:-sdr-pcix}" || exit 1
how=$(counter) || skip_all "$how"
ok "the subnet of model $fabric_model is up, and the time stamp counter is $how" true
check latency 4 ib_send_lat -n 200 -s 4
check latency 4 ib_send_lat -n 200 -s 4 -c UC
check latency 4 ib_send_lat -n 200 -s 4 -c UD
check write 4 ib_write_lat -n 50 -s 4
check write 4 ib_write_lat -n 50 -s 4 -c UC
check read 4 ib_read_lat -n 200 -s 4
check atomic 8 ib_atomic_lat -n 200 -A FETCH_AND_ADD
check atomic 8 ib_atomic_lat -n 200 -A CMP_AND_SWAP
check rate 65536 ib_send_bw -n 200
check rate 65536 ib_send_bw -n 200 -c UC
check rate 2048 ib_send_bw -n 500 -c UD -s 2048
check rate 65536 ib_write_bw -n 200
check rate 65536 ib_write_bw -n 200 -c UC
check rate 65536 ib_read_bw -n 200
check atomics 8 ib_atomic_bw -n 500 -A FETCH_AND_ADD
check atomics 8 ib_atomic_bw -n 500 -A CMP_AND_SWAP
check both 65536 ib_write_bw -n 500 -b

# a connection manager needs devices of the kernel that simulated hosts do not have
ok "with -R: fails at once and says why" pair -x ib_send_lat -n 10 -R
like "naming the event channel" 'rdma_create_event_channel failed' "$tmp/client"
ok "over XRC: refused" pair -x ib_send_bw -n 10 -c XRC
ok "over DC: refused" pair -x ib_send_bw -n 10 -c DC
ok "with memory registered on demand: refused" pair -x ib_write_bw -n 10 --odp
done_testing
