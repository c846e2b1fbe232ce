#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fortran programs with coarrays, linked with MPICH: OpenCoarrays' own tests, as Debian builds them. Images are ranks; events,
# puts and gets are operations on windows, and an image that waits for an event calls MPI_Win_sync or locks its own part, and
# nothing else of MPI. On the node, and between two simulated hosts with two rails. --all: every program, over every
# kind of link.
# timeout: 300
# timeout --all: 7200
. "$(dirname "$0")/../tap.sh"
[ -z "$(sanitizers)" ] || skip_all "a program of others does not link a sanitizer's runtime first"
programs=$(echo /usr/lib/*/open-coarrays/mpich/bin/OpenCoarrays-*-tests)
[ -d "$programs" ] || skip_all "OpenCoarrays' tests are not installed (Debian's libcoarrays-mpich-dev)"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

some="atomics co_reduce_test get_with_vector_index send_convert_nums static_event_post_issue_293 strided_sendget
  syncimages_status teams_coarray_sendget"

# But for those that fail under MPICH, too, and between hosts those that take minutes to simulate.
every() { # node|net
  local p
  for p in "$programs"/*; do
    case ${p##*/} in
      image_fail*) ;;                                               # images that fail: this build of OpenCoarrays cannot
      issue-488*) ;;                                                # reads its answers from a terminal
      issue-515* | issue-552*) ;;                                   # known faults of OpenCoarrays
      increment_my_neighbor) ;;                                     # two neighbours change the same numbers at once
      sendget_convert_nums) [ "$1" = net ] || echo "${p##*/}" ;;    # uses what MPI_Get brings before it is there
      alloc_comp_multidim_shape | get_array | send_array) [ "$1" = net ] || echo "${p##*/}" ;; # minutes of simulation
      *) echo "${p##*/}" ;;
    esac
  done
}

cat >"$tmp/each" <<'SH'
for p in "${@:2}"; do
  timeout -k 5 "$SECONDS_EACH" mrrun -n 8 "$1/$p" >"$tmp/$p.out" 2>&1 </dev/null
  echo $? >"$tmp/$p.status"
done
SH
export tmp

judge() { # WHERE PROGRAM...
  local p where=$1
  shift
  for p in "$@"; do
    # those that stop end by MPI_Abort with 0
    ok "$where: $p" eval "tail -n 20 '$tmp/$p.out'; [ \"\$(cat '$tmp/$p.status')\" = 0 ]"
    rm -f "$tmp/$p".*
  done
}
node() { # PROGRAM...
  bash "$tmp/each" "$programs" "$@"
  judge "8 images on the node" "$@"
}
net() { # KIND RAILS PROGRAM...
  local kind=$1 rails=$2
  shift 2
  MRMPI_LINKS=$kind MRMPI_RAILS_MAX=$rails simfab run --topology "$topology" --model hdr -- bash "$tmp/each" "$programs" "$@" >"$tmp/log" 2>&1
  judge "8 images on two hosts, $kind, rails: $rails" "$@"
}

if [ "${1:-}" = --all ]; then
  export SECONDS_EACH=600
  node $(every node)
  for kind in rc uc ud ring; do
    for rails in 1 2; do net $kind $rails $(every net); done
  done
else
  export SECONDS_EACH=60
  node $some
  net rc 2 $some
  net ud 1 $some
fi
done_testing
