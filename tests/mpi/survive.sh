#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 3600
# A rank of a window or of a file dies before each step of each way to synchronize (survive.c): every call of every
# survivor ends soon, also of those for which survivors will not come. In shared memory and between hosts. --all: each
# step with each rank that dies, and in each manner, instead of one of them in turn.
. "$(dirname "$0")/../tap.sh"
case ${1:-} in --all) export all=1 ;; *) export all= ;; esac
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
export program=$BUILD/tests/mpi/survive tmp
mapfile -t steps < <("$program" list)
manners=(- wl lcf c wc wlf)
[ -z "$all" ] || manners+=(r lr)
# of the job, without waits for a processor: 0.2 s have been measured, 0.7 s between hosts
export soon=3
[ -z "$(sanitizers)" ] || soon=30

# CASE STEP DEAD MANNER SEED: one job
survive() {
  MRMPI_LOG_LEVEL=0 timeout -t "$tmp/took" 110 mrrun --recover --timeout 90 -n 4 "$program" "$@" \
    >"$tmp/out" 2>&1 </dev/null &&
    grep -q 'was killed by signal 9 .*the job goes on without this rank' "$tmp/out" && within $soon >>"$tmp/out" && return
  echo "$*"
  cat "$tmp/out"
  return 1
}
rows() { # each line of the input is a job
  local bad=0 job n=0
  while read -r job; do
    # shellcheck disable=SC2086
    survive $job || bad=1
    n=$((n + 1))
  done
  [ $bad = 0 ] && [ $n -gt 0 ]
}
export -f survive rows within

# jobs FIRST STRIDE PATTERN: the arguments of jobs, of the cases that match; without --all one of so many, in turn
jobs_of() {
  local i=$1 step dead manner
  for step in "${steps[@]}"; do
    [[ $step =~ ^($3)\  ]] || continue
    if [ -n "$all" ]; then
      for dead in 0 1 3; do
        for manner in "${manners[@]}"; do echo "$step $dead $manner $((++i))"; done
      done
    elif [ $((++i % $2)) = 0 ]; then
      echo "$step $((i % 4)) ${manners[i / $2 % ${#manners[@]}]} $i"
    fi
  done
}
in_memory() { jobs_of 0 1 "$1" | rows; }
far() { # KIND FIRST PATTERN
  jobs_of "$2" 3 "$3" >"$tmp/jobs"
  # shellcheck disable=SC2016
  MRMPI_LOG_LEVEL=0 MRMPI_LINKS=$1 timeout -k 5 3000 simfab run --topology "$topology" --model hdr -- \
    bash -c 'rows <"$tmp/jobs"'
}

for pattern in fence groups 'ring|test' 'lock|shared' 'all|request' make \
  'collective|ordered' 'change|split|nonblocking' open; do
  ok "in shared memory: ${pattern//|/, }" in_memory "$pattern"
done
first=0
for kind in auto ud; do
  for pattern in 'fence|groups|ring|test' 'lock|shared|all|request|make' \
    'collective|ordered|change|split|nonblocking|open'; do
    ok "two hosts ($kind): ${pattern//|/, }" far $kind $((first++)) "$pattern"
  done
done
done_testing
