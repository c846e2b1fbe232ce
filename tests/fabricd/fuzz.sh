#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzz what reads policies, settings, opensm's file and messages, for $FUZZ_SECONDS (20).

. "$(dirname "$0")/lib.sh"
command -v clang >/dev/null || skip_all "clang is not installed"

sources=()
for f in text ydoc policy compile opensm conf message; do sources+=("$top/fabricd/$f.c"); done
sources+=("$top/libmrmpi/rail/policy.c")
if ! clang -std=gnu17 -D_GNU_SOURCE -I"$top" -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  $(pkg-config --cflags yaml-0.1) -o fuzz "$top/tests/fabricd/fuzz.c" "${sources[@]}" $(pkg-config --libs yaml-0.1) >out 2>&1; then
  grep -q 'clang_rt.fuzzer' out && skip_all "clang has no libFuzzer"
  ok "the target builds" cat out -
fi
mkdir seeds
n=0
for f in "$top"/etc/policies/*.yaml "$top"/etc/fabricd/*.yaml; do
  for kind in '\x03' '\x00' '\x01'; do
    { printf "$kind"; cat "$f"; } >seeds/$((n += 1))
  done
done
ok "nothing falls over" ./fuzz -max_total_time="${FUZZ_SECONDS:-20}" -max_len=8192 -timeout=5 -rss_limit_mb=1024 \
  -artifact_prefix="$tmp/" -verbosity=0 seeds
done_testing
