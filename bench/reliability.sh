#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Reliability by hardware and by software: RC, UC and UD, each native and with acknowledgements of our own (MRMPI_LINKS,
# MRMPI_RELIABLE), as Koop, Kumar and Panda compared them (ICS 2008), beside what the text of that paper says. All
# figures of ours are simulated, on the model ddr-connectx: the paper's own adapter, MT25208, has no model; this is the nearest.
#   figure   latency, bandwidth one way and both ways, message rate, between two hosts (Figure 4)
#   tables   the counters of a process under traffic like that of NAMD and LAMMPS (Tables 2 and 3)
#   peers    many ranks on each adapter, more connections than it holds contexts for
#   loss     the same on a cable that loses packets
# RELIABILITY_PARTS: some of them. RELIABILITY_LONG=1: more sizes, more ranks, more time (half an hour instead of minutes).
set -u
: "${BUILD:?set BUILD to the build directory}" "${RELIABILITY_PARTS:=figure tables peers loss}" "${RELIABILITY_LONG:=}"
export RELIABILITY_LONG PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
combinations="rc.no rc.yes uc.no uc.yes ud.no ud.yes"

# COMBINATION SECONDS RANKS MRRUN_OPTION... -- ARGUMENTS: what bench/reliability.c prints
job() {
  local options=(--timeout "$2" -n "$3") links=${1%.*} reliable=${1#*.}
  shift 3
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  MRMPI_LINKS=$links MRMPI_RELIABLE=$reliable MRMPI_RAILS_MAX=1 MRMPI_LOG_LEVEL=0 \
    mrrun "${options[@]}" "$RELIABILITY" "${@:2}" 2>"$tmp/err" </dev/null
}
failed() { # WHAT: why the last job has no figures
  echo "($1: $(grep -v '^$' "$tmp/err" | head -n 1))"
}

# ---- Figure 4 -------------------------------------------------------------------------------------------------------

# HEADING KIND FIELD FORMAT SIZES: a row of each size, native and reliable of each kind, and their ratio
grid() {
  printf '\n%-22s' "$1"
  for links in RC UC UD; do printf ' %10s %10s %6s' "$links native" reliable ratio; done
  echo
  local bytes c line
  for bytes in $5; do
    line=$bytes
    for c in $combinations; do
      line+=" $(awk -v k="$2" -v b="$bytes" -v f="$3" '$1 == k && $2 == b {v = $f} END {print v == "" ? "-" : v}' "$tmp/$c")"
    done
    awk -v l="$line" -v f="$4" 'BEGIN {
      split(l, v); printf "%-22d", v[1]
      for (i = 2; i < 8; i += 2) {
        for (j = i; j < i + 2; j++) printf " %10s", v[j] == "-" ? "-" : sprintf(f, v[j])
        printf " %6s", v[i] + 0 && v[i + 1] + 0 ? sprintf("%.3f", v[i + 1] / v[i]) : "" }
      print "" }'
  done
}
figure() {
  local small="8 64 512 1024 2048 4096" large="8192 16384 65536 1048576" b c what=()
  [ -n "$RELIABILITY_LONG" ] && small="8 16 32 64 128 256 512 1024 2048 4096" large="8192 16384 32768 65536 131072 262144 524288 1048576"
  for b in $small; do what+=(latency:$b:180 one:$b:18 both:$b:18); done
  for b in $large; do what+=(one:$b:$((b > 65536 ? 3 : 6)) both:$b:$((b > 65536 ? 3 : 6))); done
  for c in $combinations; do
    job $c 100 2 --hosts h1=mlx5_0,h2=mlx5_0 -- pair "${what[@]}" >"$tmp/$c" || failed "$c"
  done
  grid "latency, bytes; us" latency 3 %.2f "$small"
  echo "paper: nearly the same for all; below 64 bytes UD native the least (values only as a plot)"
  grid "one way, bytes; MB/s" one 3 %.1f "$small $large"
  echo "paper: UC and RC native differ little; reliable 50 MB/s less from 8 to 32 KiB; UD less beyond the MTU (values only as a plot)"
  grid "both ways; MB/s" both 3 %.1f "$small $large"
  echo "paper: not measured"
  grid "one way; messages/s" one 4 %.0f "$small"
  awk 'FNR == 1 {n++} $1 == "one" && $2 == 8 {v[n] = $4} END {
    if (v[1]) printf "against RC native at 8 bytes: UC native %.3f, UD native %.3f (paper: nearly 1.1 both); UC reliable %.3f, UD reliable %.3f (paper: more than 1)\n", v[3] / v[1], v[5] / v[1], v[4] / v[1], v[6] / v[1]}' \
    "$tmp"/rc.no "$tmp"/rc.yes "$tmp"/uc.no "$tmp"/uc.yes "$tmp"/ud.no "$tmp"/ud.yes
}

# ---- Tables 2 and 3 -------------------------------------------------------------------------------------------------

# name, messages a second, MB/s, peers in the paper; here: peers (0: all of other hosts, drawn anew), messages of a step, away from
# MPI or probing in between, bytes of small and of large messages, per cent of large ones
datasets="
jac2000 6979.33 15.89 504 0 8 poll 2277 2277 0
rhodo 4849.74 13.2 90 9 9 away 2722 2722 0
chain 372.34 9.33 15 9 9 away 1024 61109 40
eam 332.73 7.14 8 8 8 away 1024 26568 80"
datasets_long="
apoa1 1579.14 6.27 504 0 8 poll 3970 3970 0
er-gre 1958.28 13.43 504 0 8 poll 6858 6858 0
flatpase 2338.16 9.16 504 0 8 poll 3918 3918 0"
# the paper's: explicit acknowledgements, MB, longest queue, of RC, UC and UD reliable
paper="
apoa1 43106.37 0.68 124.01 43149.78 0.64 144.06 41897.84 0.22 33.19
er-gre 16786.32 0.44 71.34 16830.40 0.47 69.00 16649.10 0.11 14.82
flatpase 118445.53 0.82 170.45 118914.76 0.79 158.22 114419.89 0.41 38.42
jac2000 56299.19 0.33 65.08 57981.19 0.35 61.85 57428.87 0.12 20.20
chain 1817.20 0.08 16.83 1814.69 0.08 16.73 1983.67 0.07 8.82
eam 9310.43 0.04 7.67 8992.67 0.04 7.84 10443.20 0.07 7.61
rhodo 28696.25 0.13 65.09 28670.16 0.13 65.30 29322.30 0.12 8.47"

get() { awk -v n="$2" -v f="${3:-2}" '$1 == n {print $f}' "$1"; } # FILE NAME [FIELD]

tables() {
  local sets=$datasets seconds=0.05 name rate mb peers here each how small large percent c steps p
  [ -n "$RELIABILITY_LONG" ] && sets+=$datasets_long seconds=0.5
  printf '\n%-10s %-4s %9s %8s %6s %9s %9s %7s %7s %7s %7s %7s %9s %9s   %s\n' "per process" "" messages/s MB/s peers acks/s carried/s \
    acks/m. resent doubles queue KiB "acks:RC" "wait us" "paper: messages/s MB/s peers, queue, KiB, acks:RC"
  while read -r name rate mb peers here each how small large percent; do
    [ -n "$name" ] || continue
    steps=$(awk -v r="$rate" -v e="$each" -v s="$seconds" 'BEGIN {n = int(r * s / e); print n < 8 ? 8 : n}')
    for c in rc.yes uc.yes ud.yes; do
      job $c 100 16 -- steps 4 "$here" "$each" "$rate" "$steps" "$how" "$small" "$large" "$percent" >"$tmp/$c" || { failed "$name $c"; continue; }
      p=$(awk -v n="$name" -v k="${c%.*}" '$1 == n {i = k == "rc" ? 2 : k == "uc" ? 5 : 8; print $(i + 2), $(i + 1) * 1000, $i / $2}' <<<"$paper")
      awk -v n="$name" -v k="${c%.*}" -v h="$here" -v all=12 -v paper="$rate $mb $peers $p" -v rc="$(get "$tmp/rc.yes" acks_sent)" '
        {v[$1] = $2; most[$1] = $3}
        END {
          s = v["seconds"]; split(paper, q)
          printf "%-10s %-4s %9.0f %8.2f %6d %9.0f %9.0f %7.3f %7.0f %7.0f %7.0f %7.0f %9.3f %9.1f", n, toupper(k), v["rate"], v["mbytes"], h ? h : all,
            v["acks_sent"] / s, v["acks_carried"] / s, v["acks_sent"] / (v["rate"] * s), v["resent"], v["duplicates"],
            v["unconfirmed_most"], v["unconfirmed_bytes_most"] / 1024, (rc > 0 ? v["acks_sent"] / rc : 0), v["wait"]
          printf "   %.0f %.2f %d, %.0f, %.0f, %.3f\n", q[1], q[2], q[3], q[4], q[5], q[6]
        }' "$tmp/$c"
    done
  done <<<"$sets"
  echo "(16 ranks on 4 hosts. queue, KiB: the most to one peer; the paper's are sums over peers. acks:RC: explicit ones against RC"
  echo "reliable; the paper's numbers of them are of whole runs whose length it does not say. Sizes: two that give its MB/s)"
}

# ---- more connections than an adapter holds contexts for --------------------------------------------------------------

# Eight processes on each adapter, as in the paper, but fewer hosts; so fewer contexts fit, in proportion (see below). The
# paper has the distribution of sizes only as a plot; the text gives the mean, 2277 bytes (15.89 MB in 6979 messages). So:
# short ones, all of the mean, and a mixture of short and longer ones that has the mean.
peers() {
  local ranks=$((peers_hosts * 8)) sizes what c rate
  printf '\n%-44s %10s %8s %10s %8s %14s\n' "$((ranks - 8)) peers, $(((ranks - 8) * 8)) connections an adapter, $contexts held" \
    messages/s ": RC" "in MPI us" ": RC" acks/message
  for sizes in "64 64 0" "2277 2277 0" "64 8000 28"; do
    what=$(awk '{print ($3 ? $1 "/" $2 : $1) " bytes"}' <<<"$sizes")
    for c in rc.no uc.yes ud.yes; do
      # shellcheck disable=SC2086  # three words
      job $c 100 $ranks -- steps 8 0 8 0,7000 "$([ -n "$RELIABILITY_LONG" ] && echo 200 || echo 30)" away $sizes >"$tmp/$c" || failed "$what $c"
    done
    for rate in 0 7000; do
      for c in rc.no uc.yes ud.yes; do
        awk -v w="$what, $([ $rate = 0 ] && echo "as fast as it goes" || echo "7000 a second"), ${c%.*} $([ "${c#*.}" = no ] && echo native || echo reliable)" -v rate=$rate '
          FNR == 1 {n++} $1 == "run" {run = $2} run == rate {v[n, $1] = $2}
          END {
            if (!v[2, "rate"]) { printf "%-44s %10s\n", w, "-"; exit }
            r = v[1, "rate"] + 0; t = v[1, "wait"] + 0
            printf "%-44s %10.0f %8s %10.1f %8s %14.3f\n", w, v[2, "rate"], r ? sprintf("%.3f", v[2, "rate"] / r) : "-", v[2, "wait"],
              t ? sprintf("%.3f", v[2, "wait"] / t) : "-", v[2, "acks_sent"] / (v[2, "rate"] * v[2, "seconds"]) }' "$tmp/rc.no" "$tmp/$c"
      done
    done
  done
  echo "(64/8000: 28 % of the messages are the long ones, mean 2286. in MPI: of a step, which is 8 messages; at 7000 a second 1143 us)"
  echo "paper (NAMD jac2000, 504 peers, 7000 messages a second): time of the whole program 25 % less by UC reliable than by RC native, by UD still less"
}

# ---- a cable that loses packets ---------------------------------------------------------------------------------------

loss() {
  local p c kind field bytes what
  for p in 0 0.001 0.01 0.1; do
    simfab fault link "h2 mlx5_0" loss=$p >/dev/null || exit 1
    for c in rc.no rc.yes uc.yes ud.yes; do
      what=(one:8:18 one:65536:9)
      [ $p = 0.1 ] && what=(one:8:3 one:65536:1)
      job $c "${RELIABILITY_LONG:+1}20" 2 --hosts h1=mlx5_0,h2=mlx5_0 -- pair "${what[@]}" >"$tmp/loss.$p.$c"
    done
    simfab fault link "h2 mlx5_0" loss=0 >/dev/null
  done
  printf '\n%-28s %12s %12s %12s %12s\n' "one way, loss of packets" "RC native" "RC reliable" "UC reliable" "UD reliable"
  for kind in "8 4 messages/s,_8_bytes" "65536 3 MB/s,_64_KiB"; do
    read -r bytes field what <<<"$kind"
    for p in 0 0.001 0.01 0.1; do
      printf '%-28s' "${what//_/ }, $(awk -v p=$p 'BEGIN {print 100 * p}') %"
      for c in rc.no rc.yes uc.yes ud.yes; do
        awk -v b=$bytes -v f=$field '$2 == b {v = $f} END {printf " %12s", v == "" ? "-" : v}' "$tmp/loss.$p.$c"
      done
      echo
    done
  done
  echo "(RC: the adapter's time-out, 4.096 us << MRMPI_RC_TIMEOUT, is 1.07 s: a window of 64 messages that meets one or two takes that long)"
  echo "(-: not done within ${RELIABILITY_LONG:+1}20 s real; two cables between the hosts, one of them loses so many packets in each direction)"
}

if [ -n "${RELIABILITY:-}" ]; then # on the simulated hosts
  tmp=$(mktemp -d) || exit 1
  trap 'rm -rf "$tmp"' EXIT
  "$1"
  exit
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export RELIABILITY=$work/reliability peers_hosts=3 contexts
[ -n "$RELIABILITY_LONG" ] && peers_hosts=4
mrcc -O2 -Wall -o "$RELIABILITY" bench/reliability.c || exit 1
# the paper's 8 * 504 connections of an adapter are to the model's 128 contexts as ours to $contexts
contexts=$(((peers_hosts - 1) * 64 * 128 / (8 * 504)))
sed "s/qp_cache_entries: .*/qp_cache_entries: $contexts/" etc/models/ddr-connectx.yaml >"$work/peers.yaml"
simfab topology star --hosts 4 >"$work/tables.net"
simfab topology star --hosts $peers_hosts >"$work/peers.net"
echo "simulated, ddr-connectx"
for part in $RELIABILITY_PARTS; do
  net=$work/$part.net model=ddr-connectx
  [ -e "$net" ] || net=two-hosts-two-rails
  [ -e "$work/$part.yaml" ] && model=$work/$part.yaml
  simfab run --topology "$net" --model "$model" -- bash bench/reliability.sh "$part" || exit 1
done
