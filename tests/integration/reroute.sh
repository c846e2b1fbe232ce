#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The subnet manager changes the forwarding under a running job: a cable of a spine is pulled, and comes back. fabricd
# notices, and the job's large messages follow. Two pairs of hosts share a cable on path 0: on the disjoint paths after
# the change they carry as much more than on path 0 as before. Two leaves of two hosts, three spines, two LIDs a host.
# timeout: 240
hosts="h1 h2 h3 h4" topology=${TMPDIR:-/tmp}/mrmpi-reroute-$PPID.net
[ -n "${SIMFAB_DIR:-}" ] || python3 - >"$topology" <<'PYTHON' || exit 2
def switch(kind, i, name, cables):
    guid = f"253460{kind}00000{i}00"
    print(f'switchguid=0x{guid}({guid})\nSwitch\t5 "S-0{guid}"\t# "{name}{i}" base port 0')
    for port, (far, far_port, far_name) in enumerate(cables, 1):
        print(f'[{port}]\t"{far}"{far_port}\t# "{far_name}"')
    print()
def host(h): return (f"H-0253460100000{h}00", f"[1](253460100000{h}01)", f"h{h} mlx5_0")
for l in 1, 2:
    switch(2, l, "leaf", [host(2 * l - 1), host(2 * l)] + [(f"S-0253460300000{s}00", f"[{l}]", f"spine{s}") for s in (1, 2, 3)])
for s in 1, 2, 3:
    switch(3, s, "spine", [(f"S-0253460200000{l}00", f"[{s + 2}]", f"leaf{l}") for l in (1, 2)])
for h in 1, 2, 3, 4:
    l, port = (h + 1) // 2, 2 - h % 2
    print(f'caguid=0x253460100000{h}00\nCa\t1 "H-0253460100000{h}00"\t# "h{h} mlx5_0"')
    print(f'[1](253460100000{h}01)\t"S-0253460200000{l}00"[{port}]\t# "leaf{l}"\n')
PYTHON
. "$(dirname "$0")/lib.sh"
fabricds_with_paths

# ---- the paths of two pairs, and cables to pull
# "A B D": the leaf's ports of path 0 and path 1, and the number of disjoint paths
ways() { # FROM TO
  ctl h1 paths "$1" "$2" >"$tmp/paths" 2>&1
  echo "$(sed -n 's/.*there: .{switch: leaf1, port: \([0-9]*\)}.*/\1/p' "$tmp/paths" | xargs) $(sed -n 's/^disjoint: //p' "$tmp/paths")"
}
all_ways() { for pair in "h1 h3" "h2 h4" "h1 h4" "h2 h3"; do ways $pair; done | tr '\n' ,; }
# Waits until the ways are the same in three looks.
settle() {
  local same=0 was=
  for _ in {1..100}; do
    seen=$(all_ways)
    [ "$seen" = "$was" ] && [[ $seen != *" ,"* ]] && same=$((same + 1)) || same=0
    [ $same = 2 ] && return
    was=$seen
    sleep 0.3
  done
}
# Until the ways have changed, and settled.
cut_ways() { # SPINE
  simfab fault link "spine$1" 1 down
  for _ in {1..60}; do settle; [ "$seen" != "$whole" ] && break; done
}
back() { simfab fault clear; for _ in {1..60}; do settle; [ "$seen" = "$whole" ] && break; done; }
settle
whole=$seen
echo "# ways h1-h3, h2-h4, h1-h4, h2-h3: $whole"
for spine in 1 2 3; do
  cut_ways $spine
  cut[$spine]=$seen
  echo "# without spine$spine: $seen"
  back
done
# The pairs of hosts, a spine without which both pairs share path 0's cable and have disjoint paths, and one without which
# a pair has none
read -r four shared single lone < <(python3 - "$whole" "${cut[@]}" <<'PYTHON'
import sys
whole, *cut = [[p.split() for p in text.rstrip(",").split(",")] for text in sys.argv[1:]]
two = lambda pair: len(pair) == 3 and pair[2] == "2"
for i, hosts in (0, "h1,h2,h3,h4"), (2, "h1,h2,h4,h3"):
    pairs = [l[i:i + 2] for l in [whole] + cut]
    shared = [s for s in (1, 2, 3) if all(map(two, pairs[s])) and pairs[s][0][0] == pairs[s][1][0]]
    single = [s for s in (1, 2, 3) if pairs[s][0][2:] == ["1"] or pairs[s][1][2:] == ["1"]]
    if all(map(two, pairs[0])) and shared and single:
        lone = 0 if pairs[single[0]][0][2:] == ["1"] else 1
        print(hosts, shared[0], single[0], ",".join(hosts.split(",")[lone::2]))
        break
PYTHON
)
echo "# $four, shared without spine$shared, none disjoint for $lone without spine$single"
ok "there are pairs of hosts with such paths" test -n "$lone"

# ---- what path 0 alone carries where it is shared
run() { # JOB WANTED WINDOWS COMMAND...
  local job=$1 rc tries
  shift
  for tries in {1..5}; do
    MRMPI_LOG_LEVEL=3 ENDED=$tmp/ended.$tries timeout -k 5 200 mrrun -n 4 --hosts "$four" --job-id "$job" --stats \
      "$BUILD/tests/mpi/paths" "$@" </dev/null >"$tmp/out" 2>&1
    rc=$?
    one_class "$tmp/out" && break
    simfab fault clear
  done
  grep -E '^opened|status [0-9]|large messages use|error|warning' "$tmp/out" >"$tmp/said"
  return $rc
}
field() { sed -n "s/^$1.*$2 \([0-9.]*\).*/\1/p" "$tmp/out"; } # LINE NAME
at_least() { awk -v a="$1" -v b="$2" -v least="$3" 'BEGIN {print b ? a / b : 0; exit !(b && a >= least * b)}'; }
at_most() { awk -v a="$1" -v most="$2" 'BEGIN {exit !(a != "" && a <= most)}'; }
cut_ways "$shared"
ok "a class of one path runs where it is shared" run limited 0 40
one=$(field opened rate)
sed 's/^/# /' "$tmp/said"
back

# ---- the running job follows: each command changes the fabric, and ends when the daemons of the job have noticed
cat >"$tmp/change" <<'SH'
# CHANGE...: waits until all hosts whose processes depend on paths have seen a change
seen() {
  for h in h1 h2 h3 h4; do fabricctl --socket "$SIMFAB_DIR/fabricd-$h.sock" status |
    sed -n "s/^lid_paths: .processes: [1-9][0-9]*, reroutes: \([0-9]*\).*/$h \1/p"; done
}
before=$(seen)
"$@" || exit 1
for i in $(seq 100); do
  sleep 0.2
  seen | (while read -r h n; do case "$before" in *"$h $n"*) exit 1 ;; esac; done) && exit 0
done
seen >&2
exit 1
SH
change="sh $tmp/change simfab fault"
ok "a job runs on while the forwarding changes four times" \
  run free 1 1500 "$change link spine$shared 1 down" "$change clear" "$change link spine$single 1 down" "$change clear "
sed 's/^/# /' "$tmp/said"
is "with both paths from the beginning" "$(field "" opened)" 1
follows() { # CHANGE NAME: a window of 8 MiB takes 2.2 ms where the hosts share a cable
  is "$2: fabricd notices" "$(field ".*fault $1: " status)" 0
  is "no message is wrong" "$(field ".*fault $1: " wrong)" 0
  ok "and no window takes 20 ms more" at_most "$(field ".*fault $1: " longest)" 22.2
}
follows "link spine$shared 1 down" "path 0 is shared after a change"
ok "two paths carry 1.8 times as much then" at_least "$(field ".*fault link spine$shared 1 down: " rate)" "$one" 1.8
follows clear "the cable is back"
follows "link spine$single 1 down" "a pair of hosts loses its second path"
ok "its large messages leave that path" grep -q 'large messages use paths 0 now' "$tmp/said"
follows "clear " "that cable is back, too"
ok "and they use both again" test "$(grep 'large messages use' "$tmp/said" | tail -n 1 | grep -c 'paths 0, 1 now')" = 1
ok "as fast as at first" at_least "$(field ".*fault clear : " rate)" "$(field opened rate)" 0.98

# ---- without a job running, mrrun --explain says the same
explain() { mrrun --explain -n 2 --hosts "$lone" --job-id free 2>&1 | grep "^    ${lone%,*} to "; }
explains() { explain | grep -q "$1"; }
ok "two paths" wait_for 5 explains ': paths 0, 1 share no cable'
cut_ways "$single"
ok "one path" wait_for 5 explains ': path 0; no other is allowed and shares no cable'
back
ok "two paths again" wait_for 5 explains ': paths 0, 1 share no cable'
done_testing
