#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The processor time of ranks that wait for 2 s in each blocking call: alone, beside busy loops of another session, in several
# threads, with more ranks than cores, on simulated hosts; many short waits beside busy loops; and MPI_Finalize. Four jobs wait
# at a time: their waits take no longer than one, and four ranks that spin on two cores would still take half a core each.
. "$(dirname "$0")/../tap.sh"
waiting=$BUILD/tests/mpi/waiting
waits=()
calls="recv probe waitany send barrier ibarrier bcast allreduce fence lock threads"

# A tenth of a second may be spun and yielded: 5 percent.
cheap() { # WHERE "CALLS" COMMAND...: in each of the calls less than a tenth of a core
  local where=$1 calls=($2) i call
  shift 2
  for ((i = 0; i < ${#calls[@]}; i += 4)); do
    for call in "${calls[@]:i:4}"; do "$@" "$waiting" "$call" 2 >"$tmp/out.$call" 2>&1 & waits+=($!); done
    wait "${waits[@]}"
    waits=()
  done
  for call in "${calls[@]}"; do
    cat "$tmp/out.$call" >>"$tmp/all"
    is "$where, $call: $(grep cpu "$tmp/out.$call")" "$(awk '$2 == "cpu" && $3 < 0.1 {print "cheap"}' "$tmp/out.$call")" cheap
  done
}

export MRMPI_OVERSUBSCRIBED=0
cheap alone "$calls" timeout 60 mrrun -n 2

# The shortest of all: the machine is to blame for some, but not for each.
end=$(sed -n 's/^MPI_Finalize: \(.*\) ms/\1/p' "$tmp/all" | sort -g | head -n 1)
ok "MPI_Finalize waits for no time-out (${end:-none} ms)" awk -v ms="${end:-99}" 'BEGIN {exit !(ms < 30)}'
cheap "8 ranks" "recv barrier threads" timeout 60 mrrun -n 8

setsid bash -c 'for _ in $(seq $(nproc)); do while :; do :; done & done; wait' &
loops=$!
on_exit 'kill -- -$loops 2>/dev/null'
cheap "beside busy loops" "$calls" timeout 60 mrrun -n 2

# Spun through, these waits cost as much as what is waited for, and more when its rank is not on a core.
short=$(timeout 120 mrrun -n 2 "$BUILD/tests/mpi/alternate" 1000 300 2>&1)
ok "beside busy loops, 2,000 waits of 0.3 ms and more: $short" awk -v said="$short" 'BEGIN {split(said, w); exit !(w[1] == "waiting:" && w[2] < 0.5)}'
kill -- -$loops
wait $loops 2>/dev/null

unset MRMPI_OVERSUBSCRIBED

# Whether there is a core for each is asked of all ranks: what one of them may run on says nothing of the others.
cores=($(awk '/^Cpus_allowed_list/ {n = split($2, part, ","); for (i = 1; i <= n; i++) {split(part[i] "-" part[i], ends, "-")
  for (c = ends[1]; c <= ends[2]; c++) print c}}' /proc/self/status))
crowded() { MRMPI_LOG_LEVEL=2 timeout 60 "$@" 2>&1 | grep -c "ranks of this host have fewer cores"; } # times that it is said
is "two ranks that may run on one core" "$(crowded taskset -c ${cores[0]} mrrun -n 2 "$waiting" recv 0)" 1
is "a rank more than there are cores" "$(crowded mrrun -n $((${#cores[@]} + 1)) "$waiting" recv 0)" 1
is "a core for each rank" "$(crowded mrrun -n 2 "$waiting" recv 0)" $((${#cores[@]} < 2))
if [ ${#cores[@]} -gt 1 ]; then
  of_its_own="cores=(${cores[*]}); exec taskset -c \${cores[PMIX_RANK]} $waiting recv 0"
  is "two ranks, each bound to a core of its own" "$(crowded mrrun -n 2 bash -c "$of_its_own")" 0
fi

# Where ranks share a core, those that watch their memory let the one run whose turn it is, sooner than the kernel would.
watch() {
  local TIMEFORMAT='%U %S'
  { time timeout 100 taskset -c ${cores[0]} mrrun -n 4 "$BUILD/tests/mpi/rma_passive" 10 >"$tmp/out" 2>&1; } 2>"$tmp/cpu" || cat "$tmp/out"
}
is "four ranks watch their memory by turns, 320 times on one core" "$(watch)" ""
[ -n "$(sanitizers)" ] || ok "that takes less than a second of it: $(cat "$tmp/cpu")" awk '{exit !($1 + $2 < 1)}' "$tmp/cpu"
cheap "two simulated hosts" "recv barrier threads" timeout 60 simfab run --topology two-hosts-two-rails -- mrrun -n 2 --hosts h1,h2
done_testing
