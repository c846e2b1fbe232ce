#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Fuzz what reads rules (MRMPI_RULES), for $FUZZ_SECONDS (20).
# timeout: 7200
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v clang >/dev/null || skip_all "clang is not installed"
cd "$top" || exit 1
if ! clang -std=gnu17 -D_GNU_SOURCE -I"$top" -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  -o "$tmp/fuzz" tests/libmrmpi/fuzz.c libmrmpi/conn/route/rules.c libmrmpi/verbs/link/kinds.c >"$tmp/out" 2>&1; then
  grep -q 'clang_rt.fuzzer' "$tmp/out" && skip_all "clang has no libFuzzer"
  ok "the target builds" eval "cat '$tmp/out'; false"
  done_testing
  exit 1
fi
mkdir "$tmp/seeds"
printf 'eager size<=2K count>=16: rc,ud; size>1M class=urgent: uc\nany: ud # all' >"$tmp/seeds/1"
printf 'control|eager|piece rate>=1000 size>=5 size<7G: ud, rc ,uc\n\n;rdma:rc' >"$tmp/seeds/2"
ok "nothing falls over" "$tmp/fuzz" -max_total_time="${FUZZ_SECONDS:-20}" -max_len=9000 -timeout=10 -rss_limit_mb=1024 \
  -artifact_prefix="$tmp/" -verbosity=0 "$tmp/seeds"
done_testing
