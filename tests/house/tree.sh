#!/usr/bin/env bash
# The source tree keeps its own rules: headers compile alone, settings are read in one place, rooms have a map.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2

# A header whose include comes before all code of a source that the build has compiled, compiled alone there. Prints "SOURCE
# HEADER" for each such source.
first_includes() {
  find libmrmpi fabricd simfab mrrun terminal tests -name '*.c' -exec awk '
    FNR == 1 { comment = 0 }
    comment { if (!sub(/^.*\*\//, "")) next; comment = 0 }
    { while (sub(/\/\*([^*]|\*+[^*\/])*\*+\//, "")); comment = sub(/\/\*.*/, ""); sub(/\/\/.*/, "") }
    NF == 0 { next }
    /^#include "/ { split($0, part, "\""); print FILENAME, part[2] }
    { nextfile }' {} +
}
headers_alone() {
  local c h flags shell rc=0
  local -A compiled=()
  while read -r c h; do
    [ "$BUILD/obj/${c%.c}.o" -nt "$h" ] && compiled[$h]=1
  done < <(first_includes)
  flags="-std=gnu17 -D_GNU_SOURCE -I. -Ilibmrmpi/include -Wall -Wextra -Wno-unused-parameter -Werror -Wno-error=unused-function
    $(pkg-config --cflags libibverbs pmix)"
  while read -r h; do
    [ -z "${compiled[$h]:-}" ] || continue
    [[ $h == */abi_standard.h ]] && shell='-DMRMPI_ABI_STANDARD -Ilibmrmpi/include/standard' || shell=
    gcc $shell $flags -fsyntax-only -x c "$h" -Wno-pragma-once-outside-header || { echo "$h does not compile alone"; rc=1; }
  done < <(find libmrmpi fabricd simfab mrrun terminal -name '*.h')
  return $rc
}
ok "every header compiles alone" headers_alone

getenv_places() {
  local found
  found=$(grep -rnE '\bgetenv *\(' libmrmpi --include='*.[ch]' | grep -v '^libmrmpi/base/config.c:')
  echo "$found"
  [ -z "$found" ]
}
ok "libmrmpi reads the environment in base/config.c only" getenv_places

# The library ends the process in one function only: the launcher's abort, which MPI_Abort and fatal errors use.
exit_places() {
  local found
  found=$(grep -rnE '(^|[^_a-zA-Z.])(_?exit|abort|_Exit) *\(' libmrmpi --include='*.c' | grep -v '^libmrmpi/launch/')
  echo "$found"
  [ -z "$found" ]
}
ok "libmrmpi ends the process in launch/ only" exit_places

maps() {
  local d rc=0
  for d in libmrmpi libmrmpi/*/ libmrmpi/*/*/ fabricd fabricd/*/ simfab simfab/*/ simfab/engine/*/ mrrun terminal etc etc/*/ tests bench packaging man; do
    [ -d "$d" ] || continue
    case $d in libmrmpi/include/*) continue ;; esac
    [ -f "${d%/}/README.md" ] || { echo "$d has no README.md"; rc=1; }
  done
  return $rc
}
ok "every folder has its map" maps

words_of() { # PATTERN MAP...: "FOLDER/ WORD" for each word of the maps that matches
  grep -oHE "$@" | awk -F: '{ sub(/[^\/]*$/, "", $1); if (!seen[$1 $2]++) print $1, $2 }'
}
map_entries() { # each source is in its folder's map (X_large.c is X.c a second time), and what a map names exists
  local d f name rc=0 folders=() pages=()
  local -A known=() there=([mpif.h]=1) # which is made in the build tree
  while read -r name; do there[${name##*/}]=1; done < <(find . -path ./build -prune -o -name '*.[ch]' -print)
  for d in libmrmpi/*/ libmrmpi/*/*/ simfab/engine/*/ simfab/preload/ simfab/tsc/ simfab/cmd/ fabricd/ fabricd/*/ mrrun/ terminal/; do
    [ -f "$d/README.md" ] && folders+=("$d") pages+=("$d"*.md)
  done
  while read -r d name; do known[$d$name]=1; done < <(words_of '\w+' "${pages[@]}")
  for d in "${folders[@]}"; do
    for f in "$d"*.[ch]; do
      name=${f##*/} name=${name%.*}
      [ -n "${known[$d${name%_large}]:-}" ] || { echo "$f is not in the map of $d"; rc=1; }
    done
  done
  while read -r d name; do
    [ -n "${there[$name]:-}" ] || { echo "the map of $d names $name"; rc=1; }
  done < <(words_of '\b[a-z_0-9]+\.[ch]\b' "${pages[@]}")
  return $rc
}
ok "maps name all sources, and none that is not there" map_entries

spdx() {
  local found
  found=$(git ls-files '*.c' '*.h' 2>/dev/null || find . -name '*.[ch]' -not -path './build/*')
  found=$(xargs awk 'FNR <= 2 && /SPDX-License-Identifier: BSD-3-Clause/ { has[FILENAME] }
    END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in has)) print ARGV[i] }' <<<"$found")
  echo "$found"
  [ -z "$found" ]
}
ok "every source file names its licence" spdx

# calls_down TREE "FOLDERS FOR ALL" <table: each folder includes headers of those behind it in its row only, and the public
# header of the folder that it is in (net/bulk: net/net.h), of which it defines a part
calls_down() {
  awk -v tree="$1" -v all="$2" '
    FNR == NR { room = $1; below[room] = " " $0 " " all " "; next }
    { split($0, part, ":"); file = part[1]; room = file; sub(/\/[^\/]*$/, "", room); room = substr(room, length(tree) + 2) }
    !(room in below) { next }
    { split($0, part, "\""); header = part[2]; sub(/.*\//, "", header)
      inc = substr(part[2], length(tree) + 2, length(part[2]) - length(tree) - length(header) - 2)
      if (index(below[room], " " inc " ") || (index(room, inc "/") == 1 && header == inc ".h")) next
      print file " includes " tree "/" inc "/" header; bad = 1 }
    END { exit bad }' - <(grep -rE "^#include \"$1/.*/[^/]*\.h\"" "$1" --include='*.[ch]')
}
calls_down_library() {
  calls_down libmrmpi "base launch" <<'ROOMS'
api api/init io rma coll p2p core channel net conn include verbs
fortran include
api/init io rma coll p2p core channel net conn
io rma coll core
rma rma/winlock rma/winmem coll p2p core channel net
rma/winlock p2p channel net
rma/winmem coll core p2p
coll/comm coll coll/schedule core p2p
coll coll/schedule coll/node core p2p
coll/schedule core p2p
coll/node core p2p channel
p2p/derived p2p core
p2p p2p/fault p2p/rndv p2p/payload p2p/request p2p/progress p2p/choice p2p/match core channel net
p2p/fault p2p/request core channel net
p2p/rndv p2p/payload p2p/request p2p/choice core channel net
p2p/payload p2p/request p2p/choice core channel net
p2p/request p2p/progress p2p/choice p2p/match core channel
p2p/progress channel
p2p/choice
p2p/match core
core/pieces core
core
net net/bulk net/stripe net/view conn channel verbs
net/bulk net/zcopy net/stripe net/view conn channel verbs
net/zcopy net/stripe net/view conn channel verbs
net/stripe net/view conn channel verbs
net/view conn verbs
conn conn/peer conn/cm conn/route conn/fabric conn/reliable channel verbs
conn/peer conn/cm conn/route conn/fabric conn/reliable channel verbs
conn/cm
conn/route conn/cm verbs
conn/fabric
conn/reliable
channel
verbs/link verbs verbs/memory
verbs/memory verbs
verbs
launch
base
ROOMS
}
ok "folders of libmrmpi call down only" calls_down_library

calls_down_engine() {
  calls_down simfab/engine "" <<'ROOMS'
client fault mgmt hca wire clock fabric base
fault mgmt hca wire clock fabric base
mgmt wire clock fabric base
hca wire clock fabric base
wire clock fabric base
clock fabric base
fabric base
base
ROOMS
}
ok "folders of simfab/engine call down only" calls_down_engine

calls_down_fabricd() { # the daemon itself, above, and jobs/ call each other
  calls_down fabricd "base proto" <<'ROOMS'
ctl jobs fabric policy
dbus jobs apply
slurm ctl
apply fabric policy
fabric policy
jobs policy
policy
proto
base
ROOMS
}
ok "folders of fabricd call down only" calls_down_fabricd

own_headers() { # what a folder's files keep to themselves
  local found
  found=$(grep -rnE '#include "libmrmpi/([a-z0-9/]+)/internal.h"' libmrmpi --include='*.[ch]' |
    sed -nE 's|^(libmrmpi/([a-z0-9/]+)/[^/:]*):.*libmrmpi/([a-z0-9/]+)/internal.h.*|\2 \3 \1|p' | awk '$1 != $2 { print $3, "includes internal.h of", $2 }')
  echo "$found"
  [ -z "$found" ]
}
ok "what a folder keeps to itself is included nowhere else" own_headers

# Each subsystem of the library has one public header, SUB/SUB.h: a file of another subsystem includes that only, and it
# includes no other header of its subsystem but these:
public_parts() {
  cat <<'PARTS'
channel/channel.h channel/reorder.h        embedded in struct mr_vc
channel/channel.h channel/shm_claim.h      inline, on the path of messages that both ranks move; pure
conn/conn.h conn/cm/conn.h                 embedded in struct mr_peer; net/rely.c tells handshakes of traffic; pure
conn/conn.h conn/fabric/client.h           net/ asks for levels, budgets and paces, inline on the path of each packet
conn/conn.h conn/fabric/names.h            api/ publishes and looks up names of services
conn/conn.h conn/reliable/ack.h            embedded in struct mr_net_peer; inline, on the path of each packet; pure
conn/conn.h conn/reliable/loss.h           the part of send windows for lossy links, which net/rely.c drives; pure
conn/conn.h conn/route/address.h           net/ names a peer's host and ports; pure
conn/conn.h conn/route/ahead.h             embedded in struct mr_peers and net/; inline, on the path of each packet; pure
conn/conn.h conn/route/health.h            health in words on the wire, written and read by net/health.c; pure
conn/conn.h conn/route/pace.h              embedded in struct mr_peers and net/; inline, on the path of each packet; pure
conn/conn.h conn/route/quota.h             net/rings.c gives rings by the same rule as connections; pure
conn/conn.h conn/route/rules.h             embedded in struct mr_peers; the use of a packet for net/post.c; pure
conn/conn.h conn/route/sched.h             embedded in struct mr_peer; inline, on the path of each packet; pure
core/core.h core/basic.h                   a table of which types, names and reductions are generated
io/io.h io/datarep.h                       the shell registers representations and asks for sizes
io/io.h io/tiling.h                        embedded in struct mr_file
net/net.h net/stripe/writer.h              inline, on the path of short writes
p2p/p2p.h p2p/match/match.h                embedded in struct mr_request; pure
verbs/verbs.h verbs/link/kinds.def        a row for each kind of link
PARTS
}
# one_header TREE: its subsystems below api/, and without base/, which has a header for each idiom
one_header() {
  local tree=$1 rc=0 f inc sub header part
  local -A parts=()
  while read -r header part _; do parts[$header $part]=1; done < <(public_parts)
  while IFS=: read -r f inc; do
    sub=${inc%%/*}
    case $f in
      "$tree/$sub/$sub.h")
        [ -n "${parts[$sub/$sub.h $inc]:-}" ] || { echo "$f includes $inc: not one of public_parts"; rc=1; }
        ;;
      "$tree/$sub"/*) ;;
      *) [ "$inc" = "$sub/$sub.h" ] || { echo "$f includes $inc: not $sub/$sub.h"; rc=1; } ;;
    esac
  done < <(grep -rE '^#include "libmrmpi/(io|rma|coll|p2p|core|channel|net|conn|verbs|launch)/' "$tree" --include='*.[ch]' |
    sed -nE 's|^([^:]*):#include "libmrmpi/([^"]*)".*|\1:\2|p' | sort -u)
  return $rc
}
ok "subsystems of libmrmpi include of each other the public header only" one_header libmrmpi
unused_parts() { # one that has been cured leaves the list
  local headers
  mapfile -t headers < <(public_parts | sed 's|^\([^ ]*\) .*|libmrmpi/\1|' | sort -u)
  awk 'FNR == NR { part[$1 " " $2]; next }
    /^#include "libmrmpi\// { split($0, quoted, "\""); delete part[substr(FILENAME, 10) " " substr(quoted[2], 10)] }
    END { for (one in part) print one }' <(public_parts) "${headers[@]}"
}
is "all of these parts are included" "$(unused_parts)" ""
mkdir -p "$tmp/tree/"{p2p,net}
printf '#include "libmrmpi/p2p/match/match.h"\n#include "libmrmpi/net/turn.h"\n' >"$tmp/tree/p2p/p2p.h"
printf '#include "libmrmpi/p2p/p2p.h"\n#include "libmrmpi/p2p/match/match.h"\n' >"$tmp/tree/net/poll.c"
printf '#include "libmrmpi/p2p/p2p.h"\n#include "libmrmpi/net/turn.h"\n' >"$tmp/tree/net/net.h"
is "faults of that kind are found" "$(one_header "$tmp/tree" | sed "s|.*/tree/||")" "\
net/net.h includes net/turn.h: not one of public_parts
net/poll.c includes p2p/match/match.h: not p2p/p2p.h
p2p/p2p.h includes net/turn.h: not net/net.h"

# A new kind of link is a row of kinds.def: what others ask for is its traits.
kinds_by_traits() {
  local names found
  names=$(sed -n 's/^MR_KIND(\([A-Z]*\),.*/\1/p' libmrmpi/verbs/link/kinds.def | paste -sd'|')
  [ -n "$names" ] || { echo "no kinds in libmrmpi/verbs/link/kinds.def"; return 1; }
  found=$(grep -rnwE "MR_LINK_($names)|mr_link_(${names,,})" libmrmpi mrrun --include='*.[ch]' | grep -v '^libmrmpi/verbs/link/')
  echo "$found"
  [ -z "$found" ]
}
ok "kinds of links are named in libmrmpi/verbs/link only" kinds_by_traits

# Files that call each other in a circle are one file with many names.
no_circles() { # NAME DIRECTORIES OF OBJECTS...
  local circles rc
  circles=$(python3 tests/house/cycles.py "${@:2}" 2>"$tmp/cycles.err")
  rc=$?
  [ -s "$tmp/cycles.err" ] && cat "$tmp/cycles.err"
  echo "$circles"
  ok "modules in cycles: $(wc -w <<<"$circles") for $1" test "$rc $circles" = "0 "
}
no_circles "libmrmpi and fabricd (and mrrun)" "$BUILD"/obj/{fabricd,mrrun}/ "$BUILD"/obj/fabricd/*/ "$BUILD"/obj/libmrmpi/*/ "$BUILD"/obj/libmrmpi/*/*/
no_circles "simfab's engine" "$BUILD"/obj/simfab/engine/*/
no_circles "simfab's preloaded library" "$BUILD"/obj/simfab/preload/
no_circles "the simfab command" "$BUILD"/obj/simfab/cmd/

# Bounds. The exceptions are what was over them when they were made: no new one comes, and one that has been cured leaves.
within() { # within "what" EXCEPTIONS: "file figures" lines are refused, unless the file is an exception
  local what=$1 except=$2 f rest rc=0
  while read -r f rest; do
    grep -qxF -- "$f" <<<"$except" || { echo "$f $what $rest"; rc=1; }
  done
  return $rc
}
sources_narrow() { # but mpi.h, in which each function has its line: pages and tests are made of these
  find libmrmpi fabricd simfab mrrun terminal tests -name '*.[ch]' ! -path 'libmrmpi/include/*mpi.h' -exec awk 'length > 120 { print FILENAME }' {} + | sort -u |
    within "has lines of more than 120 columns" ""
}
ok "no C file of the product or its tests has lines of more than 120 columns" sources_narrow

readmes_narrow() {
  find . -path ./build -prune -o -name README.md ! -path ./README.md -exec wc -L {} + | sort -k2 |
    awk '$1 > 100 && $2 != "total" { print substr($2, 3), $1, "columns" }' | within "has more than 100 columns:" ""
}
ok "maps have at most 100 columns" readmes_narrow

page_names() { # files, settings and functions that pages name are in the tree
  local found
  found=$(python3 tests/house/docs.py names README.md ARCHITECTURE.md docs/*.md docs/design/*.md)
  echo "$found"
  [ -z "$found" ]
}
ok "pages name files, settings and functions of the tree" page_names

plain_english() { # pages and comments keep to nouns, subjects and objects: prose.py counts the words behind which these hide
  local found
  found=$(python3 tests/house/prose.py check)
  echo "$found"
  [ -z "$found" ]
}
ok "pages and comments keep to plain English" plain_english

done_testing
