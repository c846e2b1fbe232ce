#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's nwchem-mpich, unchanged: a water molecule, SCF and MP2 in 6-31g (nwchem.nw). Its Global Arrays are windows. Under
# MPICH with one rank, then under mrrun and MPICH with RANKS (2; a list), turn by turn: the energies, which must be those of
# one rank to 1e-8 hartree, and the least time of RUNS whole processes. NWCHEM_HOSTS=h1,h2 and SIMFAB_DIR: mrrun's ranks go
# to these hosts.
#
# ARMCI, below Global Arrays, takes windows by MPI_Win_allocate or by MPI_Win_create (ARMCI_USE_WIN_ALLOCATE=0). Debian's
# MPICH 4.0.2 rounds the addresses of allocated windows down to 16 bytes, and more than one rank get wrong results with
# them: it runs with the second way only, mrrun with both.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RANKS:=2}" "${RUNS:=3}" "${NWCHEM_SECONDS:=300}"
PATH=$BUILD/bin:$PATH
for program in nwchem.mpich mpiexec.hydra; do
  command -v $program >/dev/null ||
    { echo "bench/nwchem.sh: $program is not installed, so nothing is measured (apt-get install nwchem-mpich: 19 MB, 112 MB on disk)"; exit 0; }
done
input=$(realpath "$(dirname "$0")/nwchem.nw") || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
bad=0

once() { # mrmpi|mpich RANKS WIN_ALLOCATE: prints "SCF MP2 SECONDS", or "failed"
  local begin=${EPOCHREALTIME//[.,]/} start=(mpiexec.hydra -n "$2") rc
  [ "$1" = mpich ] || start=(mrrun -n "$2" ${NWCHEM_HOSTS:+--hosts "$NWCHEM_HOSTS"})
  rm -f ./*
  ARMCI_USE_WIN_ALLOCATE=$3 timeout "$NWCHEM_SECONDS" "${start[@]}" nwchem.mpich "$input" >out 2>err </dev/null
  rc=$?
  awk -v us=$((${EPOCHREALTIME//[.,]/} - begin)) -v rc=$rc '
    /Total SCF energy =/ {scf = $NF}
    /Total MP2 energy/ {mp2 = $NF}
    END {if (rc == 0 && scf != "" && mp2 != "") print scf, mp2, us / 1e6; else print "failed"}' out
}
row() { # mrmpi|mpich RANKS WIN_ALLOCATE
  local result best= seconds i how
  how="$([ "$3" = 1 ] && echo MPI_Win_allocate || echo MPI_Win_create)"
  for ((i = 0; i < RUNS; i++)); do
    result=$(once "$@")
    [ "$result" != failed ] || { printf '%-6s %5d  %-17s failed: %s\n' "$1" "$2" "$how" "$(tail -n 1 err)"; bad=1; return; }
    [ -n "${reference:-}" ] || reference=$result
    awk -v a="$result" -v b="$reference" 'function far(x, y) {return (x > y ? x - y : y - x) > 1e-8}
      BEGIN {split(a, x); split(b, y); exit far(x[1], y[1]) || far(x[2], y[2])}' ||
      { printf '%-6s %5d  %-17s other energies: %s\n' "$1" "$2" "$how" "$result"; bad=1; return; }
    seconds=${result##* }
    best=$(awk -v a="$seconds" -v b="${best:-$seconds}" 'BEGIN {print a < b ? a : b}')
  done
  printf '%-6s %5d  %-17s %18s %18s %8.2f\n' "$1" "$2" "$how" ${result% *} "$best"
}

printf '%-6s %5s  %-17s %18s %18s %8s\n' "" ranks windows SCF MP2 seconds
row mpich 1 0
for n in $RANKS; do
  row mrmpi "$n" 1
  row mrmpi "$n" 0
  row mpich "$n" 0
done
exit $bad
