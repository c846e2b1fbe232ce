#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# MPI programs while ranks may keep next to nothing of each other (MRMPI_UNEXPECTED_MAX) and have next to nothing
# waiting (MRMPI_UNSENT_MAX): what goes eagerly else is offered or held, in order, and nothing hangs. Then which of it happened.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

cat >"$tmp/shm.lines" <<'EOT'
0 1 2 p2p_order
0 1 2 p2p_sizes
0 64 2 p2p_modes
0 1 2 cancel
0 1 3 part
0 64 3 nbc
9000 1 4 coll
9000 2 4 threads
9000 1 2 p2p_many
0 1 3 coll_errors
EOT
cat >"$tmp/net.lines" <<'EOT'
0 1 2 p2p_order
0 64 2 p2p_modes
0 1 2 cancel
0 1 3 part
9000 1 3 nbc
EOT
cat >"$tmp/each" <<'EOT'
where=$1 dir=$2
while read -r keep unsent ranks line; do
  place=()
  [ "$where" = net ] && place=(--ppn $(((ranks + 1) / 2)))
  MRMPI_UNEXPECTED_MAX=$keep MRMPI_UNSENT_MAX=$unsent MRMPI_LOG_LEVEL=0 timeout -k 5 100 \
    mrrun -n "$ranks" "${place[@]}" "$BUILD/tests/mpi/"$line >"$dir/out" 2>&1 </dev/null
  echo "$keep $unsent $ranks $line: $? $(head -c 500 "$dir/out" | tr '\n' ' ')"
done <"$dir/$where.lines" >"$dir/results"
EOT
check() { # WHERE CMD...: each line must end well and say nothing
  local where=$1
  shift
  timeout -k 5 500 "$@" bash "$tmp/each" "$where" "$tmp" >"$tmp/fabric" 2>&1 </dev/null
  while read -r line; do
    like "$where: $line" "^$line: 0 $" "$tmp/results"
  done <"$tmp/$where.lines"
  rm -f "$tmp/results"
}
check shm env
check net simfab run --topology "$topology" --

counters() { # WHERE PROGRAM CMD...: of each rank, in $tmp/WHERE.PROGRAM
  local place=()
  [ "$1" = net ] && place=(--ppn 1)
  MRMPI_STATS=1 timeout -k 5 100 "${@:3}" mrrun -n 2 "${place[@]}" "$BUILD/tests/mpi/$2" >"$tmp/$1.$2" 2>&1 </dev/null
}
counts() { # WHERE PROGRAM RANK COUNTER
  like "$2, $1: rank $3 counts $4" "^mrmpi\[$3@.* counters:.* $4=[1-9]" "$tmp/$1.$2"
}
counters shm p2p_memory env
counters net p2p_memory simfab run --topology "$topology" --
counters shm p2p_flood env
counters net p2p_flood simfab run --topology "$topology" --
for where in shm net; do
  counts $where p2p_memory 1 no_credit
  counts $where p2p_memory 1 sends_held
  counts $where p2p_memory 0 credits_sent
  counts $where p2p_flood 1 sends_stalled
done
done_testing
