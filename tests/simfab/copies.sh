#!/usr/bin/env bash
# Copies of 1024 bytes and more take the time that the model's copy_mbytes_per_s says, and arrive whole.
. "$(dirname "$0")/../tap.sh"
case $(sanitizers) in *address* | *thread*) skip_all "a sanitizer has functions of the same names" ;; esac
took() { # RATE: "CALL BYTES NS", without what reading the clock takes
  printf 'name: test\nprogram:\n  clock_read_ns: 25\n  copy_mbytes_per_s: %s\n' "$1" >"$tmp/model.yaml"
  simfab run --no-opensm --topology two-hosts-two-rails --model "$tmp/model.yaml" -- \
    simfab exec h1 -- "$BUILD/tests/simfab/copies" | awk '{print $1, $2, $3 - 25}'
}
expected() { # NS-PER-BYTE
  local call n
  for call in memcpy memmove memcpy_chk memmove_chk process_vm_readv; do
    for n in 1 1023 1024 100000 1048576; do echo "$call $n $((n < 1024 ? 0 : n * $1))"; done
  done
}
is "without a rate copies take no time" "$(took 0)" "$(expected 0)"
is "at 1000 MB/s a nanosecond for each byte" "$(took 1000)" "$(expected 1)"
is "at 500 MB/s two" "$(took 500)" "$(expected 2)"
done_testing
