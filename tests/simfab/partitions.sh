#!/usr/bin/env bash
# Partitions made by the unmodified opensm from its partitions.conf: tables of hosts and switches, permitted pairs over
# every transport, counters, the manager's traps. Four hosts on two switches.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
here=$(cd "$(dirname "$0")" && pwd)
export keys=$BUILD/tests/simfab/test_keys tmp

#         index 0  1      2
# h1       ffff    8011         the manager's host
# h2       7fff    0011   8022
# h3       7fff    0011
# h4       7fff    8022
cat >"$tmp/partitions.conf" <<'EOF'
Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
red=0x0011 : 0x5a000101=full, 0x5a000201=limited, 0x5a000301=limited ;
blue=0x0022 : 0x5a000201=full, 0x5a000401=full ;
EOF

fabric() { # FUNCTION OPTION...
  local f=$1
  shift
  export -f "${f?}" message log
  ok "$f: the fabric comes up and goes down" timeout 100 simfab run --topology "$here/four-hosts.net" --model sdr-pcix \
    --opensm-option "partition_config_file $tmp/partitions.conf" "$@" -- bash -c "$f"
}
message() { # NAME FROM TO TYPE INDEX INDEX [QKEY QKEY]: leaves "sent: STATUS" and "got N" in NAME
  local d=$tmp/$1.d
  mkdir "$d"
  timeout 30 simfab exec "$3" -- "$keys" "$d" listen "$4" "$6" "${8:-0x11}" >"$d/out" 2>&1 &
  timeout 30 simfab exec "$2" -- "$keys" "$d" send "$4" "$5" "${7:-0x11}" >"$tmp/$1" 2>&1
  wait $!
  cat "$d/out" >>"$tmp/$1"
}
log() { cp "$SIMFAB_DIR/opensm/opensm.log" "$tmp/$1.log"; }

# ---- switches do not look: the hosts do ------------------------------------------------------------------------------------

hosts() {
  local h t
  for h in 1 2 3 4; do
    simfab exec h$h -- bash -c 'cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/{0,1,2}' | xargs >"$tmp/table.$h"
  done
  for t in rc uc ud; do
    message full.$t h1 h2 $t 1 1
    message other.$t h1 h4 $t 1 1
    message limited.$t h2 h3 $t 1 1
  done
  message default h3 h4 rc 0 0
  message blue h2 h4 rc 2 1
  message qkey h1 h2 ud 1 1 0x11 0x12
  simfab exec h1 -- smpquery PI "$(simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" >"$tmp/h3.portinfo"
  simfab exec h1 -- smpquery PI "$(simfab exec h2 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" >"$tmp/h2.portinfo"
  # datagrams of management too: h3 and h4 are limited members of the partition that both are in
  simfab exec h3 -- perfquery -t 100 "$(simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" 1 >"$tmp/perf.full" 2>&1
  simfab exec h3 -- perfquery -t 100 "$(simfab exec h4 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" 1 >"$tmp/perf.limited" 2>&1
  log hosts
}
fabric hosts --opensm-option "part_enforce off"
is "the manager's host is a full member of the default partition" "$(cat "$tmp/table.1")" "0xffff 0x8011 0x0000"
is "h2 has three keys" "$(cat "$tmp/table.2")" "0x7fff 0x0011 0x8022"
is "h4 two" "$(cat "$tmp/table.4")" "0x7fff 0x8022 0x0000"
for t in rc uc ud; do
  like "$t: a full and a limited member talk" '^got 1$' "$tmp/full.$t"
  like "$t: members of different partitions do not" '^got 0$' "$tmp/other.$t"
  like "$t: nor do limited members" '^got 0$' "$tmp/limited.$t"
done
like "RC says that nobody answers" '^sent: transport retry counter exceeded' "$tmp/limited.rc"
like "datagrams are sent all the same" '^sent: success' "$tmp/limited.ud"
like "limited members of the default partition do not talk" '^got 0$' "$tmp/default"
like "full members do" '^got 1$' "$tmp/blue"
like "a wrong Q_Key is dropped" '^got 0$' "$tmp/qkey"
like "and counted" 'QkeyViolations:\.*1$' "$tmp/h2.portinfo"
like "as are wrong P_Keys: two tries of RC, one of UC, one of UD" 'PkeyViolations:\.*4$' "$tmp/h3.portinfo"
like "the manager gets trap 257" 'num:257 .*Bad P_Key' "$tmp/hosts.log"
like "and 258" 'num:258 .*Bad Q_Key' "$tmp/hosts.log"
like "perfquery asks a full member" 'PortXmitPkts' "$tmp/perf.full"
not_ok "a limited one does not hear it" grep -q PortXmitPkts "$tmp/perf.limited"

# ---- switches enforce -----------------------------------------------------------------------------------------------------------

switches() {
  local sw1 sw2
  sw1=$(simfab exec h1 -- ibswitches | sed -n 's/.*"sw1".* lid \([0-9]*\) .*/\1/p')
  sw2=$(simfab exec h1 -- ibswitches | sed -n 's/.*"sw2".* lid \([0-9]*\) .*/\1/p')
  simfab exec h1 -- smpquery PI "$sw2" 1 >"$tmp/sw2.portinfo"
  simfab exec h1 -- smpquery PKeys "$sw2" 1 >"$tmp/sw2.pkeys"
  message enforced.full h1 h2 rc 1 1
  message enforced.limited h2 h3 ud 1 1
  message enforced.other h1 h4 ud 1 1
  simfab exec h1 -- perfquery "$sw2" 1 >"$tmp/sw2.counters"
  simfab exec h1 -- smpquery PI "$(simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" >"$tmp/h3.enforced"
  log switches
}
fabric switches
like "opensm has the switch enforce" 'PartEnfor?ceInb:\.*1$' "$tmp/sw2.portinfo"
like "with the table of the host behind the port" '0: 0x7fff 0x0011 0x0000' "$tmp/sw2.pkeys"
like "members talk" '^got 1$' "$tmp/enforced.full"
like "limited members do not" '^got 0$' "$tmp/enforced.limited"
like "nor do strangers" '^got 0$' "$tmp/enforced.other"
like "the last switch counts what it did not let out" 'PortXmitConstraintErrors:\.*1$' "$tmp/sw2.counters"
like "the host does not see it" 'PkeyViolations:\.*0$' "$tmp/h3.enforced"
like "the manager gets trap 259" 'num:259 .*Bad P_Key' "$tmp/switches.log"

done_testing
