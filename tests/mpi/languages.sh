#!/usr/bin/env bash
# Fortran and C++ programs, compiled and linked as MPICH's wrappers do, run unchanged. Fortran programs find our library
# under the name of MPICH's; and MPICH's bindings of these languages find in our library all that they need beside the MPI
# functions.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)/languages
[ -z "$(sanitizers)" ] || skip_all "MPICH's wrappers do not link a sanitizer's runtime first"
command -v mpif90.mpich mpicxx.mpich gfortran g++ >/dev/null || skip_all "MPICH's wrappers for Fortran and C++ are not installed"
export MRMPI_LOG_LEVEL=0

quiet() { # ranks program
  timeout -k 5 100 mrrun -n "$1" ${binding:+env LD_PRELOAD="$binding"} "$tmp/$2" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}
try() { # program compiler...
  local p=$1 n
  shift
  ok "$p compiles with MPICH's wrapper" "$@" -w -g -o "$tmp/$p" "$here/$p".[fc]*
  for n in 1 2 3 4 7; do ok "$p, $n ranks" quiet $n "$p"; done
}
# What the bindings want of MPICH's library and ours does not have
missing() {
  local lib
  nm -D --defined-only "$BUILD/lib/libmpich.so.12" | awk '{print $3}' | sort -u >"$tmp/ours"
  for lib in $(ldconfig -p | awk '/libmpich(fort|cxx).so.12/ {print $NF}'); do
    nm -D --undefined-only "$lib" | awk '{print $2}' | grep -E '^P?MPI[IRX]?_' | sed 's/@.*//'
  done | sort -u | tee "$tmp/wanted" | comm -23 - "$tmp/ours"
}
is "the bindings find all that they want" "$(missing)" ""
ok "which is much" test "$(wc -l <"$tmp/wanted")" -gt 200

cd "$tmp" || exit 2 # where gfortran leaves the module that a program defines
binding=
try mpif mpif90.mpich
try fortran mpif90.mpich
try fortran08 mpif90.mpich
try sections mpif90.mpich
try cxx mpicxx.mpich
used() { mrrun -n 1 ldd "$tmp/$1" | sed -nE 's/.*libmpichfort.so.12 => ([^ ]*) .*/\1/p'; }
is "Fortran's library is ours" "$(readlink -f "$(used mpif)" "$(used sections)" | uniq)" "$(readlink -f "$BUILD/lib/libmpifort.so.12")"
binding=$(ldconfig -p | awk '/libmpichfort.so.12/ {print $NF; exit}')
for p in mpif fortran fortran08; do ok "$p with MPICH's own binding" quiet 3 "$p"; done
binding=

# Between hosts memory stays registered while it is there. That the C library comes before us in a Fortran program's search
# order must not hide from us when it goes.
fabric() { # program
  MRMPI_STATS=1 MRMPI_LOG_LEVEL=1 timeout -k 5 100 simfab run --topology two-hosts-two-rails -- mrrun -n 2 "$tmp/$1" >"$tmp/out" 2>&1 </dev/null
}
count() { sed -n "s/.*\[$1@.* $2=\([0-9]*\).*/\1/p" "$tmp/out"; }
ok "memory compiles with MPICH's wrapper" mpif90.mpich -w -g -o "$tmp/memory" "$here/memory.f90"
is "the program does not name the library itself" "$(readelf -d "$tmp/memory" | grep -c 'NEEDED.*libmpich.so')" 0
ok "large arrays that come and go arrive on another host" fabric memory
is "each of them was registered once" "$(count 0 reg_cache_misses)" 4
is "and used twice, beside what each packet that is sent from it asks for" $(($(count 0 reg_cache_hits) - $(count 0 packets_zcopy))) 4
ok "Fortran's tests between hosts" fabric fortran
done_testing
