#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzz what decodes messages between mrrun and its agents, for $FUZZ_SECONDS (20).
# timeout: 7200
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v clang >/dev/null || skip_all "clang is not installed"
cd "$top" || exit 1
if ! clang -std=gnu17 -D_GNU_SOURCE -I"$top" -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  -o "$tmp/fuzz" tests/mrrun/fuzz.c mrrun/wire.c mrrun/allocation.c >"$tmp/out" 2>&1; then
  grep -q 'clang_rt.fuzzer' "$tmp/out" && skip_all "clang has no libFuzzer"
  ok "the target builds" eval "cat '$tmp/out'; false"
  done_testing
  exit 1
fi
mkdir "$tmp/seeds"
secret=0123456789abcdef0123456789abcdef
printf '\1\0\0\0%s\0/tmp/x\0j\0m\0\0\20\0\0\1\0\0\0ssh\0/m\0\1\0\0\0a\0\7\0\0\0' $secret >"$tmp/seeds/start"
printf '\2\0\0\0%s\0more' $secret >"$tmp/seeds/version"
printf '\14\0\0\0\1\0\4\0\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0' >"$tmp/seeds/rank"
printf '/d\0a\0\1\0\0\0\2\0\0\0a\0b\0\1\0\0\0A=1\0' >"$tmp/seeds/part"
printf '\7\22\0\0\2\0\0\0\1\0\0\0\0\0\0\0/s\0' >"$tmp/seeds/run"
printf 'n[1-3,07],m[1,2]x[3]\n2(x3),1(x9)' >"$tmp/seeds/list"
ok "nothing falls over" "$tmp/fuzz" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
  -artifact_prefix="$tmp/" -verbosity=0 "$tmp/seeds"
done_testing
