#!/usr/bin/env bash
# What the libraries export: the MPI library MPI_ and PMPI_ names in pairs and nothing else, the core mr_ names only.
. "$(dirname "$0")/../tap.sh"
lib=$BUILD/lib

exported() { nm -D --defined-only "$1" | awk '{print $3}' | sed 's/@.*//' | grep -vE '^(__asan|__ubsan|__odr_asan|_init$|_fini$)'; }

only() { # library regex
  local bad
  bad=$(exported "$1" | grep -vE "$2")
  echo "$bad"
  [ -z "$bad" ]
}
# lacking LIST NAMES: the names that the list lacks
lacking() { grep -vxF -f "$1" "$2"; }
twins() {
  local bad
  exported "$lib/libmpi.so.12" >"$tmp/sym"
  grep -E '^MPIX?_[A-Z]' "$tmp/sym" | grep -vE '^MPI_(F_STATUS|F08_|UNWEIGHTED|WEIGHTS|T_PVAR_ALL_HANDLES)' >"$tmp/plain"
  grep -E '^PMPI' "$tmp/sym" >"$tmp/profiled"
  [ -s "$tmp/plain" ] && [ -s "$tmp/profiled" ] || { echo "found no names"; return 1; }
  bad=$(sed 's/^/P/' "$tmp/plain" | lacking "$tmp/sym" - | sed 's/^P//'; sed 's/^P//' "$tmp/profiled" | lacking "$tmp/sym" -)
  [ -z "$bad" ] || { sed 's/$/ has no twin/' <<<"$bad"; return 1; }
}
declared() { # every function that mpi.h declares exists in the library
  local bad
  exported "$lib/libmpi.so.12" >"$tmp/sym"
  echo '#include "libmrmpi/include/mpi.h"' | gcc -E -P -I. -x c - | grep -oE '\bP?MPI_[A-Z][A-Za-z0-9_]* *\(' | tr -d ' (' | sort -u >"$tmp/decl"
  [ "$(wc -l <"$tmp/decl")" -gt 100 ] || { echo "found too few declarations"; return 1; }
  bad=$(grep -vE '_(function|fn)$|^MPI_(Fint)' "$tmp/decl" | lacking "$tmp/sym" -)
  [ -z "$bad" ] || { sed 's/$/ is declared and missing/' <<<"$bad"; return 1; }
}

cd "$(dirname "$0")/../.." || exit 2
ok "libmpi.so.12 exports MPI names with the data of mpi.h and of the Fortran 2008 binding, what mpichversion prints, and what other languages need" \
  only "$lib/libmpi.so.12" "^P?MPIX?_|^MPIR_Dup_fn$|^MPIR_(F08|C)_MPI_[A-Z_]+$|^MPII_(Version_[A-Za-z0-9]+|(Comm|Type|Win)_[gs]et_attr|Type_create_section|[A-Z][a-z]+_set_(proxy|cxx|lang_f77|copy))$"
ok "every MPI_ function has its PMPI_ twin" twins
ok "every declared function is there" declared
ok "libmrmpi.so exports mr_ names only" only "$lib/libmrmpi.so" '^(mr_|mrmpi_)'
ok "libmpich.so.12 is the same library" test "$(readlink -f "$lib/libmpich.so.12")" = "$(readlink -f "$lib/libmpi.so.12")"
is "its soname is libmpi.so.12" "$(readelf -d "$lib/libmpi.so.12" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libmpi.so.12
done_testing
