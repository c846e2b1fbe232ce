#!/usr/bin/env bash
# Every diagnostic of infiniband-diags over a fabric of four hosts on two switches and over a fat tree: what each should
# exit with, and not a word of warning. Then ports taken down, up, and told to train otherwise.
. "$(dirname "$0")/../tap.sh"
for p in opensm ibnetdiscover saquery ibsysstat; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done
here=$(cd "$(dirname "$0")" && pwd)
export tmp here

# ---- the commands: exit status, then what to run; $h1, $hn, $sw are LIDs of the first and last host and a switch --------
clean() {
  cat <<'EOF'
0 ibnetdiscover
0 ibnetdiscover -p
0 ibnetdiscover -f
0 ibnetdiscover -H
0 iblinkinfo
0 iblinkinfo -l
0 ibhosts
0 ibswitches
0 ibnodes
0 ibrouters
0 ibqueryerrors
0 ibqueryerrors -r --details
0 ibqueryerrors -k -K
0 ibqueryerrors --data
0 ibroute $sw
0 ibroute -M $sw
0 dump_lfts
0 dump_mfts
0 dump_fts
0 dump_fts -M
0 ibidsverify
0 sminfo
0 smpquery NI $h1
0 smpquery NI $sw
0 smpquery -D NI 0,1
0 smpquery ND $h1
0 smpquery ND $sw
0 smpquery PI $h1 1
0 smpquery PI $sw 0
0 smpquery PI $sw 1
0 smpquery SI $sw
0 smpquery PKeys $h1
0 smpquery PKeys $sw 1
0 smpquery SL2VL $h1 1
0 smpquery SL2VL $sw 1
0 smpquery VLArb $h1 1
0 smpquery VLArb $sw 1
0 smpquery GI $h1
0 smpquery GI $sw
0 smpquery MEPI $h1 1
0 smpdump $h1 0x11
0 smpdump -D 0,1 0x15 1
0 saquery CPI
0 saquery NR
0 saquery PIR
0 saquery SL2VL
0 saquery PKTR --smkey 1
0 saquery VLAR
0 saquery LFTR
0 saquery MFTR
0 saquery IIR
0 saquery SR
0 saquery PR
0 saquery MCMR
0 saquery LR
0 saquery SMIR
0 saquery GIR
0 saquery SWIR
0 saquery -g
0 saquery -m
0 saquery -s
0 saquery -D
0 saquery -L "h1 mlx5_0"
0 saquery -G "h1 mlx5_0"
0 saquery --src-to-dst "h1 mlx5_0:h2 mlx5_0"
0 perfquery
0 perfquery -x $sw 1
0 perfquery -a $sw
0 perfquery -l $sw
0 perfquery -a $h1
0 perfquery -R $sw 1
0 perfquery -R -a $sw
0 perfquery -R -x $h1 1
0 perfquery --xmtsl $h1 1
0 perfquery --rcvsl $sw 1
0 perfquery --xmtdisc $sw 1
0 perfquery --rcverr $h1 1
0 ibportstate $sw 1 query
0 ibportstate $h1 1 query
0 ibportstate -D 0 1 query
0 ibaddr
0 ibaddr -g $h1
0 ibstat
0 ibstat -l
0 ibstat -p
0 ibstatus
EOF
}

sweep() {
  local n=0 status command rc end
  h1=$(simfab exec h1 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)
  hn=$(simfab exec "$last" -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)
  sw=$(simfab exec h1 -- ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p' | head -1)
  h1=$((h1)) hn=$((hn))
  export h1 hn sw
  while read -r status command; do
    n=$((n + 1))
    simfab exec h2 -- timeout 20 bash -c "$command" >"$out/$n.out" 2>"$out/$n.err" </dev/null
    rc=$?
    # no complaints about the fabric: what a newer name has replaced; ports without cable, of which opensm keeps the state only
    sed -i '/^$/d; /this command has been replaced/d; /mad_dump_linkwidth: bad width 0/d' "$out/$n.err"
    { [ $rc -eq "$status" ] && [ ! -s "$out/$n.err" ]; } || {
      echo "$command: exit status $rc instead of $status"
      head -3 "$out/$n.err"
    } >>"$out/bad"
  done < <(clean)
  echo $n >"$out/number"

  # requests of classes and attributes that nobody here has end at once, not by a time-out
  SECONDS=0
  for command in "perfquery --extended_speeds $h1 1" "vendstat -N $sw" \
    "ibccquery CongestionInfo $sw" "perfquery --xmitcc $h1 1"; do
    simfab exec h2 -- timeout 20 $command >"$out/refused" 2>&1 && echo "$command: accepted" >>"$out/bad"
    grep -q 'timed out' "$out/refused" && echo "$command: timed out" >>"$out/bad"
  done

  # every pair of hosts
  mapfile -t lids < <(simfab exec h1 -- saquery NR |
    awk '/\tlid\./ {sub(/.*\./, ""); l = $0} /node_type.*Channel/ {print l}' | sort -nu)
  for a in "${lids[@]}"; do
    for b in "${lids[@]}"; do echo "$a $b"; done
  done >"$out/pairs"
  simfab exec h1 -- bash -c 'while read -r a b; do ibtracert $a $b >/dev/null 2>>'"$out"'/traces || echo "$a $b"; done <'"$out/pairs" >>"$out/traces" 2>&1

  # what is cached can be edited, loaded and compared
  simfab exec h2 -- bash -c "cd '$out' && ibnetdiscover --cache c1 >before && ibnetdiscover --load-cache c1 >after &&
    ibnetdiscover --diff c1 >diff && ibcacheedit --switchguid \$(sed -n 's/^switchguid=\(0x[0-9a-f]*\).*/\1/p' before | head -1):0x77 c1 c2 &&
    ibnetdiscover --load-cache c2 >edited" >>"$out/cache" 2>&1 || echo "caches: exit status $?" >>"$out/bad"
  cat "$out/cache" >>"$out/bad"
  cmp <(grep -v '^#' "$out/before") <(grep -v '^#' "$out/after") >>"$out/bad" 2>&1
  grep -qi 'switchguid=0x77' "$out/edited" || echo "the edited cache is the old one" >>"$out/bad"
  simfab exec h1 -- dump_lfts 2>/dev/null >"$out/lfts"
  simfab exec h1 -- bash -c "check_lft_balance -l '$out/lfts' -i '$out/before'" >"$out/balance" 2>&1 ||
    echo "check_lft_balance: exit status $?" >>"$out/bad"

  # agents of other hosts: one that is not there yet is refused at once, so an answer that comes late is no loss
  simfab exec h1 -- ibsysstat -S >/dev/null 2>&1 & local sys=$!
  simfab exec h1 -- ibping -S >/dev/null 2>&1 & local ping=$!
  local i
  for ((i = 0; i < 100; i++)); do
    simfab exec "$last" -- ibsysstat -t 20000 "$h1" >"$out/sysstat" 2>&1 &&
      simfab exec "$last" -- ibping -t 20000 -c 3 "$h1" >"$out/ping" 2>&1 && grep -q ' 0% packet loss' "$out/ping" && break
    sleep 0.05
  done
  kill $sys $ping
  wait $sys $ping 2>/dev/null
  return 0
}

fabric() { # NAME TOPOLOGY LAST OPTION...
  local name=$1 topology=$2
  export out=$tmp/$1 last=$3
  shift 3
  mkdir "$out"
  export -f sweep clean
  ok "$name: comes up and goes down" timeout 200 simfab run --topology "$topology" "$@" -- bash -c sweep
  touch "$out/bad" "$out/traces"
  ok "$name: $(cat "$out/number") commands exit as they should, without a warning" bash -c "cat '$out/bad'; test ! -s '$out/bad'"
  ok "$name: every one of $(wc -l <"$out/pairs") pairs of hosts has a path" bash -c "cat '$out/traces'; test ! -s '$out/traces' -a -s '$out/pairs'"
  like "$name: ibsysstat hears another host" 'sysstat ping succeeded' "$out/sysstat"
  like "$name: ibping loses nothing" ' 0% packet loss' "$out/ping"
}

fabric four-hosts "$here/four-hosts.net" h4 --model sdr-pcix --opensm-option "qos TRUE"
simfab topology fat-tree --hosts 8 --radix 4 >"$tmp/fat-tree.net"
fabric fat-tree "$tmp/fat-tree.net" h8 --model hdr --opensm-option "routing_engine ftree" --opensm-option "qos TRUE"

# ---- ports --------------------------------------------------------------------------------------------------------------

ports() {
  local sw
  sw=$(simfab exec h1 -- ibswitches | sed -n 's/.*"sw2".* lid \([0-9]*\) .*/\1/p')
  state() { # NAME FIELD VALUE: wait until the port says so
    local i
    for ((i = 0; i < 200; i++)); do
      simfab exec h1 -- smpquery PI "$sw" 1 >"$tmp/$1" 2>&1
      grep -Eq "^$2:\.*$3" "$tmp/$1" && return
      sleep 0.05
    done
    echo "$1: never $2 $3" >>"$tmp/ports.bad"
  }
  change() { simfab exec h1 -- ibportstate "$sw" 1 "$@" >>"$tmp/ports.log" 2>&1 || echo "ibportstate $*: $?" >>"$tmp/ports.bad"; }
  touch "$tmp/ports.bad"
  change disable
  state disabled PhysLinkState Disabled
  simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/{state,phys_state} >"$tmp/h3.down"
  change enable
  state enabled LinkState Active
  change reset
  state reset LinkState Active
  change width 1
  change reset
  state narrow LinkWidthActive 1X
  state narrow LinkState Active
  simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/rate >"$tmp/h3.narrow"
  change width 255
  change speed 1
  change espeed 30
  change reset
  state slow LinkWidthActive 4X
  state slow LinkState Active
  simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/rate >"$tmp/h3.slow"
  change speed 15
  change espeed 31
  change reset
  state fast LinkState Active
  simfab exec h3 -- cat /sys/class/infiniband/mlx5_0/ports/1/rate >"$tmp/h3.fast"
}
export -f ports
sed 's/ 4xSDR//' "$here/four-hosts.net" >"$tmp/hdr.net"
ok "ports: comes up and goes down" timeout 100 simfab run --topology "$tmp/hdr.net" --model hdr -- bash -c ports
ok "a port is disabled, enabled, reset, narrowed and slowed" bash -c "cat '$tmp/ports.bad'; test ! -s '$tmp/ports.bad'"
is "the host behind it sees its link go down" "$(xargs <"$tmp/h3.down")" "1: DOWN 2: Polling"
is "come up with one lane" "$(cat "$tmp/h3.narrow")" "50 Gb/sec (1X HDR)"
is "at the lowest speed" "$(cat "$tmp/h3.slow")" "10 Gb/sec (4X)"
is "and at the highest" "$(cat "$tmp/h3.fast")" "200 Gb/sec (4X HDR)"

done_testing
