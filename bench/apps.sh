#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Debian's BAGEL (package bagel: examples of its own) and ScaLAPACK's testers (scalapack-mpi-test), both linked with MPICH,
# unchanged, under mrrun and under Debian's MPICH with RANKS ("2 3"), turn by turn: the results, which must be those of MPICH,
# and the median of RUNS (3) whole processes. Any other result, or none, is exit status 1.
#
# BAGEL's results are the energies after SCF, CASSCF and ASD-DMRG and the total ones of NEVPT2 and MP2; two are the same within
# 1e-7 hartree. ScaLAPACK's are the verdict of each case, whose residual it compares with a threshold, and their sums.
#
# APPS="bagel scalapack", APPS_INPUTS, APPS_TESTERS: less of it. APPS_HOSTS=h1,h2 inside `simfab run`: mrrun's ranks are on
# these simulated hosts; its column is simulated time then, beside MPICH's real time inside this host. BAGEL_ROOT: where the
# package was unpacked (dpkg -x), if it is not installed.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RANKS:=2 3}" "${RUNS:=3}" "${APPS_SECONDS:=60}" "${APPS:=bagel scalapack}" "${BAGEL_ROOT:=}"
: "${APPS_INPUTS:=hcl_svp_dfhf h2o_svp_cas h2o_svp_nevpt2 benzene_svp_mp2 he3_svp_asd-dmrg}"
: "${APPS_TESTERS:=xdlu xzlu xdllt xdqr xdinv xdls xdtrd xdbrd xdhrd}"
PATH=$BUILD/bin:$PATH
testers=$(echo /usr/lib/*/scalapack/mpich-tests) examples=$BAGEL_ROOT/usr/share/doc/bagel/examples
if [ -n "$BAGEL_ROOT" ]; then
  LD_LIBRARY_PATH=$(echo "$BAGEL_ROOT"/usr/lib/*-linux-gnu)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi
missing() { echo "bench/apps.sh: $1 is not installed, so it is not measured (apt-get install $2)"; APPS=${APPS/$3/}; }
command -v mpiexec.hydra >/dev/null || { missing mpiexec.hydra mpich .; exit 0; }
[[ $APPS != *bagel* || -x $BAGEL_ROOT/usr/bin/BAGEL ]] || missing BAGEL "bagel: 41 MB, 130 MB on disk" bagel
[[ $APPS != *scalapack* || -x $testers/xdlu ]] || missing "a tester of ScaLAPACK" "scalapack-mpi-test" scalapack
export OMP_NUM_THREADS=1 BAGEL_NUM_THREADS=1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
mkdir input
ln -s "$testers"/*.dat . 2>/dev/null # which a tester reads where it is started
bad=0

bagel_results() {
  awk '/^ +[0-9]+ .*-?[0-9]+\.[0-9]{8}/ {for (i = 1; i <= NF && $i !~ /\.[0-9]{8}$/; i++) ; last = $i}
    /[Cc]onverged/ && last != "" {print last; last = ""}
    /total energy:/ {print $NF}' "$1"
}
scalapack_results() { # with the residual, where it is in the table
  awk '/ CHECK/ && !/THRESH/ {before = 0; for (i = 2; i <= NF; i++) if ($i == "CHECK") before = tolower($(i - 1)) ~ /resid/}
    /^WALL/ && match($0, /PASSED|FAILED/) {print (before ? $(NF - 1) " " : "") substr($0, RSTART)}
    /tests (completed|skipped)/' "$1"
}
same() { # of FILES of results: are there any, and are they equal?
  [ -s "$1" ] && [ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] &&
    ! grep -qE "FAILED|^ *[1-9][0-9]* tests completed and failed" "$1" && paste -d '|' "$1" "$2" | awk -F '|' '
    $1 != $2 {number = "^-?[0-9]+[.][0-9]+$"; d = $1 - $2
              if ($1 !~ number || $2 !~ number || d > 1e-7 || d < -1e-7) exit 1}'
}
once() { # mrmpi|mpich RANKS KIND COMMAND...: prints the seconds, or "failed"; its results are in the file mrmpi or mpich
  local side=$1 n=$2 kind=$3 start=(mpiexec.hydra -n "$2") begin rc
  shift 3
  [ $side = mpich ] || start=(mrrun -n "$n" ${APPS_HOSTS:+--hosts "$APPS_HOSTS"})
  begin=${EPOCHREALTIME//[.,]/}
  timeout "$APPS_SECONDS" "${start[@]}" "$@" >$side.out 2>$side.err </dev/null
  rc=$?
  seconds=$(((${EPOCHREALTIME//[.,]/} - begin)))
  [ -z "${APPS_HOSTS:-}" ] || [ $side = mpich ] || seconds=$(simulated)
  "${kind}_results" $side.out >$side
  [ $rc = 0 ] && awk -v us="$seconds" 'BEGIN {print us / 1e6}' || echo failed
}
virtual() { simfab status | sed -n 's/^virtual time: *\([0-9.]*\) s.*/\1/p'; }
simulated() { # us since the time before
  local now
  now=$(virtual)
  awk -v a="$clock" -v b="$now" 'BEGIN {print (b - a) * 1e6}'
}
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
row() { # NAME RANKS KIND COMMAND...
  local name=$1 n=$2 i side got ours=() theirs=() last
  shift
  for ((i = 0; i < RUNS; i++)); do
    for side in mpich mrmpi; do
      clock=${APPS_HOSTS:+$(virtual)}
      got=$(once $side "$@")
      [ "$got" != failed ] ||
        { printf '%-18s %5d  %s failed: %s\n' "$name" "$n" $side "$(tail -n 1 $side.err)"; bad=1; return; }
      [ $side = mpich ] && theirs+=("$got") || ours+=("$got")
    done
    same mpich mrmpi || { printf '%-18s %5d  other results\n' "$name" "$n"; diff mpich mrmpi | head -n 5; bad=1; return; }
  done
  [ "$2" = bagel ] && last=$(tail -n 1 mrmpi) || last="$(grep -c PASSED mrmpi) passed"
  printf '%s\n' "${ours[@]}" | median >m
  printf '%s\n' "${theirs[@]}" | median >>m
  awk -v name="$name" -v n="$n" -v last="$last" -v simulated="${APPS_HOSTS:-}" '{v[NR] = $1}
    END {printf "%-18s %5d  %-20s %8.2f %8.2f %8s\n", name, n, last, v[1], v[2],
                simulated == "" ? sprintf("%.2f", v[1] / v[2]) : "-"}' m
}

printf '%-18s %5s  %-20s %8s %8s %8s\n' "" ranks result "mrmpi s" "MPICH s" ratio
[ -z "${APPS_HOSTS:-}" ] || echo "(mrmpi: simulated time between $APPS_HOSTS, in which only the network takes any unless cpu_factor says more)"
for n in $RANKS; do
  if [[ $APPS = *bagel* ]]; then
    for input in $APPS_INPUTS; do
      sed -E "s,\"(df_)?basis\" *: *\"([a-z0-9-]+)\",\"\1basis\": \"$BAGEL_ROOT/usr/share/bagel/\2.json\"," "$examples/$input.json" >"input/$input.json"
      row "$input" "$n" bagel "$BAGEL_ROOT/usr/bin/BAGEL" "input/$input.json"
    done
  fi
  if [[ $APPS = *scalapack* ]]; then
    for tester in $APPS_TESTERS; do row "$tester" "$n" scalapack "$testers/$tester"; done
  fi
done
exit $bad
