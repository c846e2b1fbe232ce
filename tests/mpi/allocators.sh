#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout --all: 1800
# Programs keep the allocator that they have, however they come by it, and messages from its memory are right: over shared
# memory and on two simulated hosts, where registrations are kept if the allocator's unmapping is seen.
# --all: every allocator in every way.
. "$(dirname "$0")/../tap.sh"
all=${1:-}
here=$(cd "$(dirname "$0")" && pwd)
topology=$here/../../etc/topologies/two-hosts-two-rails.net
src=$here/allocators
[ -z "$(sanitizers)" ] || skip_all "a sanitizer's allocator is in front of all others"
command -v mpif90.mpich mpicxx.mpich mpicc.mpich g++ >/dev/null || skip_all "MPICH's wrappers are not installed"
export MRMPI_LOG_LEVEL=0

library() { ldconfig -p | awk -v l="$1" '$1 == l {print $NF; exit}'; }
jemalloc=$(library libjemalloc.so.2) tcmalloc=$(library libtcmalloc_minimal.so.4) mimalloc=$(library libmimalloc.so.2)
tbb=$(library libtbbmalloc_proxy.so.2)
for l in "$jemalloc" "$tcmalloc" "$mimalloc" "$tbb"; do
  [ -e "$l" ] || { ok "all allocators are installed (packaging/install-deps)" false; done_testing; exit; }
done

cd "$tmp" || exit 2
build() { # NAME COMPILER ARGUMENT...
  local name=$1
  shift
  "$@" -g -O1 -D_GNU_SOURCE -o "$name" >"$tmp/out" 2>&1 && return
  sed 's/^/# /' "$tmp/out"
  ok "$name is built" false
}
rows=()
row() { rows+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"${4:-}"); } # NAME kept|not_kept COMMAND [PRELOADED LIBRARY]

c=(mrcc "$src/messages.c" -pthread)
build plain "${c[@]}"
row jemalloc-preloaded kept ./plain "$jemalloc"
row tcmalloc-preloaded kept ./plain "$tcmalloc"
build mimalloc-linked "${c[@]}" -Wl,--no-as-needed "$mimalloc"
row mimalloc-linked kept ./mimalloc-linked
build jemalloc-static "${c[@]}" "${jemalloc%.so*}.a" -ldl -lm
row jemalloc-static kept ./jemalloc-static
build few "${c[@]}" -DFEW "$src/own.c"
row own-malloc kept ./few
build raw "${c[@]}" -DRAW "$src/own.c"
row own-system-calls not_kept ./raw
build asan "${c[@]}" -DROUNDS=8 -fsanitize=address,undefined
row address-sanitizer not_kept ./asan
build tsan "${c[@]}" -DROUNDS=1 -fsanitize=thread
build fortran mpif90.mpich "$src/messages.f90" -w -Wl,--no-as-needed "$jemalloc"
row fortran-jemalloc - ./fortran
build cxx mpicxx.mpich "$src/messages.cc" "$tcmalloc"
row c++-tcmalloc - ./cxx

# Loaded late. Objects of RTLD_DEEPBIND pass preloaded libraries by, and so would the simulator's.
build host cc "$src/host.c" -pthread
build deep.so mrcc -L"$BUILD/lib" -Wl,--no-as-needed -lsimfab "$src/messages.c" -DPLUGIN -fPIC -shared -pthread
row loaded-late-deep kept "./host deep ./deep.so"
build blocks.so cc "$src/blocks.c" -fPIC -shared -Wl,--no-as-needed "$mimalloc"
build beside "${c[@]}" -DDEEP
row two-allocators kept ./beside

if [ -n "$all" ]; then
  row glibc kept ./plain
  row tbb-preloaded kept ./plain "$tbb"
  row thread-sanitizer not_kept ./tsan
  build asan-mpich mpicc.mpich "$src/messages.c" -DROUNDS=8 -pthread -fsanitize=address
  row address-sanitizer-mpich not_kept ./asan-mpich
  row mimalloc-preloaded kept ./plain "$mimalloc"
  build jemalloc-linked "${c[@]}" -Wl,--no-as-needed "$jemalloc"
  row jemalloc-linked kept ./jemalloc-linked
  build jemalloc-first mrcc -Wl,--no-as-needed "$jemalloc" -L"$BUILD/lib" -lmpi "$src/messages.c" -pthread
  row jemalloc-linked-first kept ./jemalloc-first
  build tcmalloc-linked "${c[@]}" -Wl,--no-as-needed "$tcmalloc"
  row tcmalloc-linked kept ./tcmalloc-linked
  build tbb-linked "${c[@]}" -Wl,--no-as-needed "$tbb"
  row tbb-linked kept ./tbb-linked
  build tcmalloc-static "${c[@]}" "${tcmalloc%.so*}.a" -lstdc++ -lm
  row tcmalloc-static kept ./tcmalloc-static
  build own "${c[@]}" "$src/own.c"
  row own-malloc-all kept ./own
  build host-own cc "$src/host.c" "$src/own.c" -pthread
  build plugin.so "${c[@]}" -DPLUGIN -fPIC -shared
  row loaded-late kept "./host local ./plugin.so"
  row loaded-late-global kept "./host global ./plugin.so"
  row own-malloc-loaded-late kept "./host-own local ./plugin.so"
  row jemalloc-loaded-late kept "./host local ./plugin.so" "$jemalloc"
  row two-allocators-jemalloc kept ./beside "$jemalloc"
  row fortran-mimalloc - ./fortran "$mimalloc"
  row c++-jemalloc - ./cxx "$jemalloc"
  build ubsan "${c[@]}" -fsanitize=undefined
  row undefined-sanitizer kept ./ubsan
fi
printf '%s\n' "${rows[@]}" >rows

# MODE ARGUMENT...: each row, which leaves its output and its end
run_rows() {
  local mode=$1 name kept command preload
  shift
  while IFS=$'\t' read -r name kept command preload; do
    # shellcheck disable=SC2086
    timeout -k 5 120 mrrun -n 2 "$@" ${preload:+-x LD_PRELOAD="$preload"} $command tell >"$mode.$name" 2>&1 </dev/null
    echo $? >"$mode.$name.end"
  done <rows
}
export -f run_rows timeout 2>/dev/null
run_rows shm
simfab run --topology "$topology" --model hdr -- bash -c 'run_rows net --ppn 1' >simfab.out 2>&1
ended_well() { # MODE NAME WORDS
  cat "$1.$2"
  [ "$(cat "$1.$2.end")" = 0 ] && { [ -z "$3" ] || grep -qx "$3" "$1.$2"; }
}
while IFS=$'\t' read -r name kept command preload; do
  ok "$name, shared memory" ended_well shm "$name" ""
  [ "$kept" = - ] && kept= text= || kept=${kept/_/ } text=": registrations are ${kept/_/ }"
  ok "$name, between hosts$text" ended_well net "$name" "$kept"
done <rows

ok "thread-sanitizer, without the suppressions of make check: users have none" \
  env -u TSAN_OPTIONS timeout -k 5 120 mrrun -n 2 ./tsan

explained() { mrrun -n 2 --explain "$@" 2>&1 | sed -n 's/^  memory kept registered: //p; s/^  allocator: //p' | tr '\n' '|'; }
is "mrrun explains: the C library's" "$(explained ./plain)" "4G|that of libc.so.6, the C library|"
is "one that is preloaded" "$(explained -x LD_PRELOAD="$jemalloc" ./plain)" "4G|that of libjemalloc.so.2|"
is "one in the program" "$(explained ./jemalloc-static)" "4G|that of the program|"
is "one that is not seen" "$(explained ./raw)" \
  "none, since the allocator of the program unmaps memory by system calls of its own|that of the program|"
like "a sanitizer's" '^none, since the allocator of libasan' <(explained ./asan)
like "a program that tells nothing" 'is not known here' <(explained "$src/../run-mpi.sh")
done_testing
