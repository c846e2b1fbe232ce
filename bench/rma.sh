#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Operations on windows (rma.c) under mrmpi, Open MPI and MPICH, side by side in one run.
#   sim   on two simulated hosts, over one rail, two and four, beside perftest on one; simulated time, figures repeat
#   node  inside this host, real time: turn by turn, medians of $RUNS runs
# Rows away-*, over one rail: the target is outside of MPI for a millisecond, and the operation begins a tenth of one
# later. On simulated hosts (cpu_factor 0) computing takes no time, so it sleeps: 900 us say that the origin waits for
# it. An idle poll there ends when others have moved time by 0.1 ms: 30 of away-lock's 54 us are that; more rails, more.
# Open MPI's figure is the best of its components: osc/ucx, and inside a host osc/rdma too (on simulated hosts that one
# crashes). RMA_PARTS: which of the two; RMA_CASES: one two four; RMA_MODEL: hdr; RMA_RANKS: of the
# fence (2 16 64). The last column: the better peer's figure and mrmpi's, above 1 mrmpi is ahead. A missing figure is a failure.
set -u
cd "$(dirname "$0")/.." || exit 2
. tests/tap.sh
. tests/simfab/peers.inc
. bench/peers_mpi.inc
: "${RUNS:=5}" "${RMA_PARTS:=sim node}" "${RMA_CASES:=one two four}" "${RMA_MODEL:=hdr}" "${RMA_RANKS:=2 16 64}"
on_exit fabric_end
export UCX_LOG_LEVEL=error OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
for program in mpicc.mpich mpicc.openmpi mpiexec.hydra mpirun.openmpi ib_write_lat taskset; do
  command -v $program >/dev/null || { echo "bench/rma.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
for mpi in mpich openmpi; do mpicc.$mpi -O2 -w -o "$tmp/rma.$mpi" bench/rma.c || exit 1; done
bad=0

lists() { # COUNT_OF_SMALL COUNT_OF_LARGE BYTES_OF_BANDWIDTHS...: sets $what
  local b small=$1 large=$2 n
  what=(fadd:8:$small share:8:$small rate:8:$((small / 10)) apart:8:$((small / 10)))
  for b in 8 4096 1048576; do
    n=$((b > 65536 ? large : small))
    what+=(put:$b:$n get:$b:$n acc:$b:$n lock:$b:$n)
  done
  for b in "${@:3}"; do what+=(putbw:$b:$large getbw:$b:$large); done
  what+=(cas:8:$small) # last: inside a host Open MPI's osc/rdma crashes in it
}

# KIND BYTES VALUE of each library in $tmp/all, as "LIBRARY KIND BYTES VALUE"; perftest's are a library too.
table() { # TITLE WHAT...
  printf '\n%s\n%-10s %8s %-6s %10s %10s %10s %9s  %s\n' "$1" "" bytes "" mrmpi "Open MPI" MPICH ratio perftest
  shift
  printf '%s\n' "$@" | awk -F: '{print $1, $2}' >"$tmp/order"
  awk '
    function rate(kind) { return kind == "rate" || kind == "apart" || kind ~ /bw$/ }
    function better(kind, a, b) { return rate(kind) ? a > b : a < b }
    function text(x) { return x == "" ? "failed" : sprintf(x < 100 ? "%.3f" : "%.0f", x) }
    FILENAME == ARGV[1] { k = $1 SUBSEP $2 SUBSEP $3; if (!(k in v) || better($2, $4, v[k])) v[k] = $4; next }
    { a = v["mrmpi", $1, $2]; b = v["openmpi", $1, $2]; c = v["mpich", $1, $2]; p = v["perftest", $1, $2]
      best = b == "" || c != "" && better($1, c, b) ? c : b
      r = a == "" || best == "" ? "" : rate($1) ? a / best : best / a
      if (a == "" || b == "" || c == "") bad = 1
      printf "%-10s %8d %-6s %10s %10s %10s %9s%s %s\n", $1, $2, $1 == "rate" || $1 == "apart" ? "M/s" : rate($1) ? "MB/s" : "us", text(a), text(b),
        text(c), r == "" ? "" : sprintf("%.3f", r), r != "" && r < 1 ? " <" : "  ", p == "" ? "" : text(p) }
    END { exit bad }' "$tmp/all" "$tmp/order" || bad=1
}

# ---- on simulated hosts ----

sim_run() { # mrmpi|openmpi|mpich HOSTS WHAT...: a rank on each host, over $rails1 rails
  local mpi=$1 hosts=$2 bin=$tmp/rma.mpich start ranks=() ours= i name devices
  shift 2
  [ "$mpi" != openmpi ] || bin=$tmp/rma.openmpi
  devices=$(mpi_devices "$rails1" , "" :1)
  for ((i = 1; i <= hosts; i++)); do # hosts of the simulation look like one machine to the peers: no shared memory for them
    printf -v name h%0*d ${#hosts} $i
    ranks+=(: -n 1 simfab exec $name -- env "UCX_NET_DEVICES=$devices" "$bin" "$@")
    ours+=${ours:+,}$name=$(mpi_devices "$rails1" + "" "")
  done
  case $mpi in
    mrmpi) start=(mrrun -n "$hosts" --ppn 1 --hosts "$ours" "$bin" "$@") ranks=() ;;
    openmpi) start=(env UCX_TLS=rc_v,self UCX_MAX_RNDV_RAILS="$rails1" mpirun.openmpi --oversubscribe --mca pml ucx --mca osc ucx
      --mca btl '^vader,tcp,openib') ;;
    mpich) start=(env UCX_TLS=rc_v,self MPIR_CVAR_NOLOCAL=1 UCX_MAX_RNDV_RAILS="$rails1" mpiexec.hydra) ;;
  esac
  timeout 300 simfab run --topology "$tmp/mpi.net" --model "$RMA_MODEL" -- "${start[@]}" "${ranks[@]:1}" >"$tmp/out" 2>"$tmp/err" </dev/null ||
    echo "($mpi: $(grep -v '^[-=]*$' "$tmp/err" | head -n 1))" >&2
  awk -v m="$mpi" 'NF == 4 && $2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ {print m, $1, $2, $3}' "$tmp/out"
}
raw() { # KIND BYTES FIELD FACTOR CMD...: perftest's figure
  local kind=$1 bytes=$2 field=$3 factor=$4 value
  shift 4
  pair "$@" >"$tmp/pair" || { echo "($1: $(head -n 1 "$tmp/pair"))" >&2; bad=1; return; }
  value=$(awk -v f="$field" -v k="$factor" '$1 ~ /^[0-9]+$/ && NF > 3 {v = $f * k} END {print v}' "$tmp/client")
  echo "perftest $kind $bytes $value"
}
perftest() {
  local how kind
  fabric "$RMA_MODEL" || { bad=1; return; }
  if how=$(counter); then # these programs read the time stamp counter
    for kind in write:put read:get; do
      raw ${kind#*:} 8 6 1 ib_${kind%:*}_lat -n 100 -s 8
      raw ${kind#*:}bw 1048576 4 1.048576 ib_${kind%:*}_bw -n 50 -s 1048576
    done
    raw fadd 8 6 1 ib_atomic_lat -n 100 -A FETCH_AND_ADD
    raw cas 8 6 1 ib_atomic_lat -n 100 -A CMP_AND_SWAP
    raw rate 8 5 1 ib_write_bw -n 2000 -s 8
  else
    echo "(no perftest: $how)" >&2
  fi
  fabric_end
}
simulated() {
  local c mpi ranks
  lists 50 4 8 64 512 4096 32768 262144 1048576 4194304
  local kind away=() rows
  for kind in put get fadd cas acc lock share; do away+=(away-$kind:8:20); done
  for c in $RMA_CASES; do
    mpi_fabric "$c" "$RMA_MODEL" || return 1
    rows=("${what[@]}")
    [ "$c" != one ] || rows+=("${away[@]}")
    for mpi in mrmpi openmpi mpich; do sim_run $mpi 2 "${rows[@]}"; done >"$tmp/all"
    [ "$c" != one ] || perftest >>"$tmp/all"
    table "simulated, $RMA_MODEL: ${mpi_about[$c]}" "${rows[@]}"
  done
  rails1=1
  for ranks in $RMA_RANKS; do
    simfab topology star --hosts "$ranks" --radix $((ranks > 36 ? ranks : 36)) --rails 1 --speed HDR >"$tmp/mpi.net" || return 1
    for mpi in mrmpi openmpi mpich; do sim_run $mpi "$ranks" fence:8:10; done >"$tmp/all"
    table "simulated, $RMA_MODEL: $ranks ranks, each on a host" fence:8:10
  done
}

# ---- inside this host ----

node_run() { # mrmpi|openmpi|mpich OSC WHAT...
  local mpi=$1 osc=$2 start bind='exec "$@"'
  shift 2
  # shellcheck disable=SC2016 # the inner shell expands it
  [ "$(nproc)" -lt 2 ] || bind='exec taskset -c ${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}} "$@"'
  case $mpi in
    mrmpi) start=(mrrun) ;;
    openmpi) start=(mpirun.openmpi --bind-to none --oversubscribe --mca osc "$osc") ;;
    mpich) start=(mpiexec.hydra) ;;
  esac
  timeout 300 "${start[@]}" -n 2 sh -c "$bind" sh "$tmp/rma.$([ $mpi = openmpi ] && echo openmpi || echo mpich)" "$@" \
    >"$tmp/out" 2>"$tmp/err" </dev/null || echo "($mpi $osc: $(grep -v '^[-=]*$' "$tmp/err" | head -n 1))" >&2
  awk -v m="$mpi $osc" 'NF == 4 && $2 ~ /^[0-9]+$/ && $3 ~ /^[0-9.]+$/ {print m, $1, $2, $3}' "$tmp/out"
}
medians() { # "LIBRARY OSC KIND BYTES VALUE" of several runs -> "LIBRARY KIND BYTES MEDIAN" for each component
  sort -k1,4 -k5,5g | awk '
    function flush() { if (n) print key, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2; n = 0 }
    { k = $1 " " $2 " " $3 " " $4; if (k != last) flush(); last = k; key = $1 " " $3 " " $4; v[++n] = $5 }
    END { flush() }'
}
node() {
  local i
  lists 5000 9 8 4096 65536 1048576 4194304
  what=(fence:8:2000 "${what[@]}")
  for ((i = 0; i < RUNS; i++)); do
    node_run mrmpi - "${what[@]}"
    node_run openmpi ucx "${what[@]}"
    node_run openmpi rdma "${what[@]}"
    node_run mpich - "${what[@]}"
  done >"$tmp/runs"
  medians <"$tmp/runs" >"$tmp/all"
  table "inside this host, two ranks, real time, medians of $RUNS runs" "${what[@]}"
}

for part in $RMA_PARTS; do
  case $part in
    sim) simulated || bad=1 ;;
    node) node ;;
    *) echo "bench/rma.sh: no part is called $part"; exit 2 ;;
  esac
done
exit $bad
