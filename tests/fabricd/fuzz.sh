#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# timeout --all: 1800
# Fuzz what reads files of YAML and locks, messages of the socket and records of the subnet, the journal of jobs, and arguments
# of the bus: each of the four for $FUZZ_SECONDS (2), two at a time. --all: ten minutes each.

. "$(dirname "$0")/lib.sh"
optimize=-O0 # compiles in half the time
[ "${1:-}" = --all ] && : "${FUZZ_SECONDS:=600}" && optimize=-O1
command -v clang >/dev/null || skip_all "clang is not installed"

sources=()
for f in base/{text,ydoc,keys,conf,log,quota} policy/{policy,pattern,hosts,lock,lock_text,compile,lanes,weights,ahead,wait} ctl/json \
  proto/{message,ratio} fabric/{opensm,partitions,routes,paths_text} \
  jobs/{jobs,jobs_text,journal,compact,cgroups,seats,users,helper,orders} dbus/order; do
  sources+=("$top/fabricd/$f.c")
done
sources+=("$top/libmrmpi/conn/route/policy.c")
if ! clang -std=gnu17 -D_GNU_SOURCE -I"$top" $optimize -gline-tables-only -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  $(pkg-config --cflags yaml-0.1 libsystemd) -o fuzz "$top/tests/fabricd/fuzz.c" "${sources[@]}" $(pkg-config --libs yaml-0.1 libsystemd) >out 2>&1; then
  grep -q 'clang_rt.fuzzer' out && skip_all "clang has no libFuzzer"
  tap_result 1 "the target builds" out
  done_testing
fi
mkdir seeds
n=0
for f in "$top"/etc/policies/*.yaml "$top"/etc/fabricd/*.yaml; do
  for kind in '\x03' '\x00' '\x01'; do
    { printf "$kind"; cat "$f"; } >seeds/$((n += 1))
  done
done
# goals, limits and levels of which no example has all; and every key of the format as a word to try
{
  printf '\x03version: 1\nclasses:\n  - {name: a, share: 50, latency: 7us, small: 8k, medium: [16K, 1M]}\n'
  printf '  - {name: b, share: 40, ahead of: bulk, rails: {small: near}}\n  - {name: c, share: 10, priority: 2}\n'
  printf 'jobs: {default: c, rules: [{user: "u*", class: a}]}\nlimits: {high_limit: 9}\nmtu: 2048\nvls: 15\n'
} >seeds/goals
printf '\x03version: 1\nclasses: [{name: a, share: 1, lanes: 3, ratio: 100:200}]\njobs: {default: a}\n' >seeds/ratio
# answers that become JSON
{
  printf '\x05fabricd: {version: 0.1.0, pid: 7, host: h, ahead: 3.00}\ndifferences:\n  - "a \\"b\\": c"\n'
  printf 'jobs: []\nlevels: [1, 02, true, -3]\n'
} >seeds/answer
# messages: of type 6, how much a process reads
printf '\x02fabd\x01\x00\x06\x00\x18\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00' >seeds/reads
# records: a switch's table, cables, nodes
{ printf '\x08\x00\x01\x00\x00\x00\x00\x00\x00'; head -c 64 /dev/zero | tr '\0' '\2'; } >seeds/table
printf '\x08\x01\x00\x0a\x01\x01\x00\x01\x00\x00\x00\x01\x02\x01\x00\x14\x00\x00' >seeds/cables
# the file of jobs, with a line of a daemon that was killed; and calls of the bus
{
  printf '\x06# written by fabricd: the last line of a job holds\nboot: 0-1\njobs:\n  - {id: "7", class: a, uid: 4, since: 9}\n'
  printf '  - {id: b c, qos: "\\"x", lease: 60, run: 2, cgroup: /sys/fs/cgroup/pids/x}\n  - {id: "7", ended: true}\n  - {id: c, cl'
} >seeds/jobs
printf '\x07job 1\na\nb\na\n\n4242\n' >seeds/bus
printf '\x07"}, {x\n\n\na\n/sys/fs/cgroup/pids/x\n7\n' >seeds/bus2
fabricctl policy schema | sed -n 's/^ *"\([a-z_ ]*\)": {$/"\1: "/p' | sort -u >words
{
  printf '\x04lock 1\npolicy generation=7 digest=8f3ac01d92e6b754\nfabric vls=8 low=64 high=64 mtu=4096 rate=200000 hops=4 oversubscription=2\n'
  printf 'class urgent small=1 medium=2,3 bulk=4,5\nretired batch small=6 bulk=7\n'
} >seeds/lock
fuzz() { # NAME KINDS: as fuzz.c has them
  mkdir "$1"
  FUZZ_KINDS=$2 ./fuzz -dict=words -max_total_time="${FUZZ_SECONDS:-2}" -max_len=8192 -timeout=5 -rss_limit_mb=1024 \
    -artifact_prefix="$tmp/$1/" -print_final_stats=1 "$1" seeds >"$1.out" 2>&1
}
both() { # NAME KINDS NAME KINDS
  fuzz "$1" "$2" &
  local first=$!
  started
  fuzz "$3" "$4"
  local second=$?
  wait $first
  tap_result $? "$1: nothing falls over ($(inputs "$1") inputs)" "$1.out"
  tap_result $second "$3: nothing falls over ($(inputs "$3") inputs)" "$3.out"
}
inputs() { sed -n 's/^stat::number_of_executed_units: *//p' "$1.out"; }
both yaml 01345 socket 28
both journal 6 bus 7
done_testing
