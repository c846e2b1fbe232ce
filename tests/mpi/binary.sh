#!/usr/bin/env bash
# Programs compiled and linked with MPICH (its header, its library) run unchanged: mrrun puts our library first.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
inc=
for d in /usr/lib/*/mpich/include /usr/include/mpich*; do [ -f "$d/mpi.h" ] && inc=$d; done
[ -n "$inc" ] || skip_all "MPICH's mpi.h is not installed"
export MRMPI_LOG_LEVEL=0
san=$(sanitizers) # our library is then for programs that begin with the runtime

build() { # name: as MPICH's mpicc would
  gcc ${san:+"-fsanitize=$san"} -w -g -O1 -I "$inc" -o "$tmp/$1" "$here/$1.c" -lmpich -lpthread
}
quiet() { # ranks name
  timeout -k 5 100 mrrun -n "$1" "$tmp/$2" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -eq 0 ] && [ ! -s "$tmp/out" ]
}
uses_ours() { # the loader, asked in the environment that mrrun gives
  mrrun -n 1 env LD_TRACE_LOADED_OBJECTS=1 "$tmp/$1" >"$tmp/ldd" 2>&1
  cat "$tmp/ldd"
  grep -qF "libmpich.so.12 => $(realpath "$BUILD/lib")/" "$tmp/ldd" ||
    grep -E "libmpich.so.12 =>" "$tmp/ldd" | grep -qF "$BUILD"
}

for p in types request comm coll nbc ops errors pmpi threads; do
  ok "$p compiles with MPICH's header and links with its library" build "$p"
  ok "$p, 3 ranks" quiet 3 "$p"
done
ok "what ran was ours" uses_ours types

# MPICH's own programs that use the library
says() { # pattern name...
  timeout -k 5 60 mrrun -n 1 "${@:2}" >"$tmp/out" 2>&1 </dev/null && grep -E "$1" "$tmp/out" || { cat "$tmp/out"; return 1; }
}
if command -v mpichversion >/dev/null && [ -z "$san" ]; then
  ok "mpichversion prints our version" says "^MPICH Version:[[:space:]]*$(sed -n 's/^VERSION *:= *//p' "$here/../../Makefile")\$" mpichversion
  ok "and that the device is ours" says '^MPICH Device:[[:space:]]*mrmpi$' mpichversion
  ok "mpivars lists a control variable of ours" says 'MRMPI_EAGER_MAX *=8192' mpivars
  ok "and a performance variable" says 'eager_sent.*CLASS_COUNTER' mpivars
fi
done_testing
