#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrrun --explain of pairs of hosts: what it says without a job is what a job then has.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
for v in $(compgen -e | grep '^MRMPI_'); do unset "$v"; done
topologies=$(cd "$(dirname "$0")/../../etc/topologies" && pwd)
export MRMPI_LOG_LEVEL=0
fabric() { timeout -k 5 100 simfab run --topology "$1" -- "${@:2}" >"$tmp/out" 2>"$tmp/err" </dev/null; }
pairs() { sed -n '/^Pairs of hosts/,/^Settings/p' "$tmp/out"; }
who() { pairs | sed -n 's/^  \([^ ].*\)/\1/p' | tr '\n' ';'; }
paths() { pairs | sed -n 's/^    \(mlx[^ ]* - mlx[^ ]*\) .*weight \([0-9]*\) .*/\1 \2/p' | tr '\n' ';'; }

# Three hosts: h1 has a rail on a and one on b, h2 the other way round and one on c, h3 one on a, which is slow.
port() { printf '[%s] "H-%s-%s"[1](5b00%s%s01)  # "h%s mlx5_%s" lid 0 %s\n' "$1" "$2" "$3" "$2" "$3" "$2" "$3" "$4"; } # PORT HOST RAIL RATE
{
  printf 'switchguid=0x5b000061\nSwitch 8 "S-a"  # "a" base port 0 lid 0 lmc 0\n'
  port 1 1 0 4xHDR; port 2 2 1 4xHDR; port 3 3 0 4xSDR
  printf '\nswitchguid=0x5b000062\nSwitch 8 "S-b"  # "b" base port 0 lid 0 lmc 0\n'
  port 1 1 1 4xHDR; port 2 2 0 4xHDR
  printf '\nswitchguid=0x5b000063\nSwitch 8 "S-c"  # "c" base port 0 lid 0 lmc 0\n'
  port 1 2 2 4xHDR
  for rail in 10 11 20 21 22 30; do
    printf '\ncaguid=0x5b00%s00\nCa 1 "H-%s-%s"  # "h%s mlx5_%s"\n' "$rail" "${rail:0:1}" "${rail:1}" "${rail:0:1}" "${rail:1}"
  done
} >"$tmp/net"
cat >"$tmp/job" <<SH
mrrun --explain -n 3 || exit
mrrun -n 3 --rails-trace $tmp/trace.json --stats=json:$tmp/stats.json $BUILD/tests/mpi/p2p_sizes >&2
SH
ok "hosts that are not alike" fabric "$tmp/net" bash "$tmp/job"
is "each pair by itself" "$(who)" "h1 with h2;h1 with h3;h2 with h3;"
is "rails are paired by subnet" "$(paths)" \
  "mlx5_0:1 - mlx5_1:1 1024;mlx5_1:1 - mlx5_0:1 1024;mlx5_0:1 - mlx5_0:1 1024;mlx5_1:1 - mlx5_0:1 1024;"
first_weights() { # those that the job had at first, of rank I to a later one
  python3 - "$tmp/trace.json" <<'PY'
import json, re, sys
seen = {}
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    m = re.match(r"weight to rank (\d+): (\S+ - \S+) ", e["name"])
    if m and int(m[1]) > e["pid"] and e["args"]["weight"]:
        seen.setdefault((e["pid"], int(m[1]), m[2]), e["args"]["weight"])
print(*(f"{path} {seen[a, b, path]};" for a, b, path in sorted(seen)), sep="", end="")
PY
}
is "as the job then had them" "$(first_weights)" "$(paths)"
like "the rail that leads nowhere" '^    mlx5_2:1 of h2 is not used: h1 has no rail in its subnet$' "$tmp/out"
like "rails of different rates" '^    mlx5_0:1 - mlx5_0:1  *subnet [0-9a-f]{16}, 212.5 and 10 Gb/s, P_Key 0xffff, path 0, weight 1024 \(100.0 %\)$' "$tmp/out"
ways() { pairs | sed -n 's/^    over 16K\(.*\)(.*/\1/p' | tr '\n' ';'; }
is "large messages are read where the sender is fast" "$(ways)" \
  ": the receiver reads ;, from h1 to h3: the receiver reads ;, from h3 to h1: the sender writes ;, from h2 to h3: the receiver reads ;, from h3 to h2: the sender writes ;"
by_job() { python3 -c "
import json
for r in json.load(open('$tmp/stats.json'))['rails']:
    if r['host'] == 'h3': print(r['stripes_read'] > 0, r['stripes_written'] > 0)"; }
is "and so they were" "$(by_job)" "True True"
times() { pairs | sed -n "/^  $1\$/,/service levels/s/^ *\($2 .*\)/\1/p" | tr -s ' '; } # PAIR SIZE
is "the time of a packet" "$(times 'h1 with h2' 8K)" "8K one packet 2.87"
is "of several" "$(times 'h1 with h2' 16K)" "16K 2 packets 3.52"
is "of a message over two rails, in known memory and in new" "$(times 'h1 with h2' 1M)" "1M read by the receiver 22.74 71.26 (registered first)"
is "of a copied one" "$(times 'h1 with h2' 256K)" "256K read by the receiver 7.93 24.93 (copied)"
is "of a slow rail" "$(times 'h1 with h3' 1M | head -n 1)" "1M read by the receiver 1051.58 1100.10 (registered first)"
like "without fabricd all is on level 0" '^    service levels: small 0, large 0 \(default: no fabricd answers there' "$tmp/out"

# ---- rails at two sockets
two_sockets 0 1 >"$tmp/machine.xml"
near() { pairs | sed -n 's/^      near the ranks\(.*\)/\1/p' | tr '\n' ';'; }
explain_at() { # PROCESSORS [MRRUN-OPTION...]: a rank may run on these
  fabric "$topologies/two-hosts-two-rails.net" env HWLOC_XMLFILE="$tmp/machine.xml" HWLOC_THISSYSTEM=1 \
    taskset -c "$1" mrrun --explain -n 2 "${@:2}"
}
if taskset -c 1 true 2>/dev/null; then
  ok "ranks at the first socket" explain_at 0
  is "have the first rail near" "$(near)" ": mlx5_0:1; far: mlx5_1:1;"
  ok "ranks at the second" explain_at 1 -x MRMPI_POLICY_SMALL=near
  is "the second" "$(near)" ": mlx5_1:1; far: mlx5_0:1;"
  ok "ranks that may run on both" explain_at 0,1
  is "have both near" "$(near)" ": all rails;"
  ok "a policy that does not ask" explain_at 0 -x MRMPI_POLICY_SMALL=round-robin
  is "is not told" "$(near)" ""
else
  echo "# one processor only: locality is not tried"
fi

# ---- many hosts that are alike
ok "eight hosts" fabric "$topologies/eight-hosts-two-rails.net" env MRMPI_LINKS=rc,ud MRMPI_STRIPE_MIN=2M \
  MRMPI_RULES='control: ud; eager size<=2K count>=9: rc; eager: ud; any: rc' mrrun --explain -n 8
is "are one paragraph" "$(who)" "each two of h1, h2, h3, h4, h5, h6 and 2 more (28 pairs of hosts);"
carries() { pairs | sed -n "s/^      $1  *//p" | tr '\n' ';'; }
is "what carries short messages, and why, at first and when there have been more" "$(carries 'short messages')" \
  "ud (rule 3);up to 2K rc (rule 2); longer ud (rule 3);"
is "control" "$(carries control)" "ud (rule 1);ud (rule 1);"
is "large ones by RDMA" "$(carries 'by RDMA')" "rc (rule 4);rc (rule 4);"
like "messages that are not cut" '^      one of 1M: 1M over one of them$' "$tmp/out"
ok "fewer ranks than hosts" fabric "$topologies/eight-hosts-two-rails.net" mrrun --explain -n 3 --hosts h4,h2,h7,h1
is "only the hosts in use" "$(who)" "each two of h4, h2, h7 (3 pairs of hosts);"
ok "one of them" fabric "$topologies/eight-hosts-two-rails.net" mrrun --explain -n 3 --hosts h4
is "has no pairs" "$(who)" "none: all ranks are on one host;"
ok "one rail of two, two planes" env MRMPI_RAILS_MAX=1 bash -c "timeout 60 simfab run --topology $topologies/eight-hosts-two-planes.net -- \
  mrrun --explain --hosts h1,h2 >$tmp/out"
is "is one path" "$(paths)" "mlx5_0:1 - mlx5_0:1 1024;"
ok "datagrams alone" fabric "$topologies/two-hosts-two-rails.net" env MRMPI_LINKS=ud MRMPI_DEVICES=mlx5_1 mrrun --explain
is "over the device that was asked for" "$(paths)" "mlx5_1:1 - mlx5_1:1 1024;"
like "without RDMA" '^    over 16K: as datagrams into the receiver.s memory \(MRMPI_UD_RNDV=zcopy\), since there is no RDMA' "$tmp/out"

# ---- how large messages go, whatever the kinds of links: said, and done
cat >"$tmp/both" <<SH
mrrun --explain -n 2 || exit
mrrun -n 2 --ppn 1 --stats=json:$tmp/stats.json $BUILD/tests/mpi/p2p_sizes >&2
SH
said() { pairs | sed -n 's/^    over 16K: \(the receiver reads\|the sender writes\|as datagrams\|in packets\).*/\1/p'; }
done_so() { python3 - "$tmp/stats.json" <<'PY'
import json, sys
stats = json.load(open(sys.argv[1]))
total = lambda name: sum(rank["counters"]["by_" + name] for rank in stats["ranks"])
ways = {"as datagrams": total("datagrams"), "the receiver reads": total("read"),
        "the sender writes": total("write") + total("crossing") + total("ready"), "in packets": total("packets")}
print(next((way for way in ways if ways[way]), "not at all"), end="") # some of the messages are better in packets
PY
}
carrier() { pairs | sed -n 's/^      by RDMA  *//p'; }
while read -r want kinds carrier settings; do
  rm -f "$tmp/stats.json"
  IFS='|' read -ra words <<<"$settings"
  ok "$kinds $settings" fabric "$topologies/two-hosts-two-rails.net" env MRMPI_LINKS="$kinds" "${words[@]}" bash "$tmp/both"
  is "large messages: what is said" "$(said)" "${want//_/ }"
  is "is what is done" "$(done_so)" "${want//_/ }"
  is "and over what by RDMA" "$(carrier)" "${carrier//_/ }"
done <<'EOT'
the_receiver_reads rc rc_(rule_1)
the_receiver_reads ring ring_(rule_1)
the_sender_writes ring ring_(rule_1) MRMPI_RNDV=write
in_packets ring none MRMPI_RING_DESIGN=basic
in_packets ring,ud none MRMPI_RING_DESIGN=pipelined
the_receiver_reads ring,rc rc_(rule_1) MRMPI_RING_DESIGN=piggyback
the_receiver_reads uc,ring ring_(rule_1)
the_receiver_reads rc,ring rc_(no_rule_says_otherwise) MRMPI_RULES=any: ring
the_sender_writes uc uc_(rule_1)
the_receiver_reads uc,rc rc_(no_rule_says_otherwise) MRMPI_RULES=any: uc
in_packets ud,rc ud_(rule_1):_in_packets MRMPI_RULES=any: ud,rc
as_datagrams ud none
in_packets ud none MRMPI_UD_RNDV=copy
in_packets ud none MRMPI_RULES=any: ud
EOT
rings() { sed -n 's/^  rings: //p' "$tmp/out"; }
MRMPI_LINKS=ring MRMPI_RING_SLOTS=50 MRMPI_RING_DESIGN=pipelined MRMPI_EAGER_MAX=64K mrrun --explain >"$tmp/out"
is "rings as they will be" "$(rings)" "for 8 ranks, after 64 packets; 32 slots for packets up to 16K each; design pipelined"
MRMPI_LINKS=ring,ud MRMPI_RING_DESIGN=none MRMPI_RING_AFTER=0 mrrun --explain >"$tmp/out"
is "a design that is none" "$(rings)" "for 8 ranks, when they connect; 32 slots for packets up to 8K each; design zerocopy"
MRMPI_LINKS=ring mrrun --explain >"$tmp/out"
like "and a kind of link" '^  ring  reliable connections, short packets into rings that the receiver polls: the adapter delivers, native$' "$tmp/out"

mrrun --explain --hosts h1,h2 --launcher false >"$tmp/out"
is "hosts that no launcher reaches: the rest is said" $? 0
like "and which" "^  h1, h2: could not be asked" "$tmp/out"
done_testing
