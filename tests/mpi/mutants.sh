#!/usr/bin/env bash
# timeout: 3000
# SPDX-License-Identifier: BSD-3-Clause
# The tests themselves: every function of MPI that the library has is replaced, one at a time, by one that does nothing and
# returns success (0, or a null handle). Of the programs that call it, over shared memory, at least one has to fail or hang.
#   mutants.sh [PATTERN]   only the functions whose names match (an extended regular expression)
# mutants.list names those that may do nothing, each with the reason. MUTANTS_JOBS functions at a time (the number of cores).
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
pattern=${1:-.}
[ -z "$(sanitizers)" ] || skip_all "a library that comes first is not for sanitized programs"
export BUILD tmp here
ulimit -c 0

# The functions, from the table that the manual shows
awk -F'\t' '$2 == "yes" {print $1}' "$BUILD/man/mrmpi-functions.7" >"$tmp/functions"

# One library per function. The function returns 0, as a number, a handle or in floating point.
cat >"$tmp/nothing.s" <<'END'
  .text
  .globl nothing
  .type nothing, @function
nothing:
END
case $(uname -m) in
  x86_64) printf '  xorl %%eax, %%eax\n  pxor %%xmm0, %%xmm0\n  ret\n' ;;
  aarch64) printf '  mov x0, #0\n  fmov d0, xzr\n  ret\n' ;;
  *) skip_all "nobody has said what doing nothing is on this machine" ;;
esac >>"$tmp/nothing.s"
echo '  .section .note.GNU-stack,"",@progbits' >>"$tmp/nothing.s"
as -o "$tmp/nothing.o" "$tmp/nothing.s" || exit 1

# What is run: the programs of the list with two or three ranks, as shm.sh runs them, each with what it calls
commands() {
  local name modes rest ranks args n
  while read -r name modes rest; do
    [[ -z $name || $name == \#* || ,$modes, != *,shm,* ]] && continue
    args=
    [[ $rest == *--* ]] && args=${rest#*--}
    ranks=" ${rest%%--*} "
    for n in 3 2 4 1 0; do [[ $ranks == *" $n "* ]] && break; done
    [ $n -gt 0 ] && echo "$name mrrun -n $n env LD_PRELOAD=\$lib $BUILD/tests/mpi/$name$args"
  done <"$here/programs.list"
  echo "fatal env LD_PRELOAD=\$lib bash $here/fatal.sh"
}
commands >"$tmp/commands"

# command, library -> 0 if it ran well: printed nothing, or is a test whose results say so
well() {
  local lib=$2 out=$tmp/out.$BASHPID rc
  export lib
  timeout -k 2 "$3" bash -c "$1" >"$out" 2>&1 </dev/null
  rc=$?
  [[ $1 == *.sh ]] || [ ! -s "$out" ] || rc=1
  rm -f "$out"
  return $rc
}
export -f well

# The commands that run well with a library in front that replaces nothing, quick ones first
ld -shared -o "$tmp/none.so" "$tmp/nothing.o"
: >"$tmp/order"
n=0
while read -r name cmd; do
  n=$((n + 1))
  begin=${EPOCHREALTIME//[.,]/}
  ok "unchanged: ${cmd##*/}" well "$cmd" "$tmp/none.so" 120 &&
    echo "$((${EPOCHREALTIME//[.,]/} - begin)) $n $name $cmd" >>"$tmp/order"
done <"$tmp/commands"
sort -n -o "$tmp/order" "$tmp/order"
while read -r _ n name cmd; do
  nm -u "$BUILD/tests/mpi/$name" | awk '{sub(/@.*/, "", $2)} $2 ~ /^MPIX?_/ {print $2}' | sort >"$tmp/calls.$n"
done <"$tmp/order"

# function: what noticed, or "nobody"
mutant() {
  local lib=$tmp/$1.so us n cmd rc
  ld -shared -o "$lib" --defsym="$1=nothing" "$tmp/nothing.o"
  while read -r us n _ cmd; do
    grep -qx "$1" "$tmp/calls.$n" || continue
    # a program that hangs has noticed; it gets much more than it needs, the machine may be busy
    well "$cmd" "$lib" $((15 + us / 100000))
    rc=$?
    if [ $rc -ne 0 ]; then
      echo "$1 ${cmd##*"$BUILD/tests/mpi/"}$([ $rc -ne 124 ] || echo ' hangs')"
      rm -f "$lib"
      return
    fi
  done <"$tmp/order"
  rm -f "$lib"
  echo "$1 nobody"
}
export -f mutant
awk '!/^(#|$)/ {print $1}' "$here/mutants.list" | sort >"$tmp/excused"
is "all that are excused are functions" "$(sort "$tmp/functions" | comm -13 - "$tmp/excused")" ""
grep -E -- "$pattern" "$tmp/functions" | grep -vxFf "$tmp/excused" |
  xargs -P "${MUTANTS_JOBS:-$(nproc)}" -I{} bash -c 'mutant {}' >"$tmp/noticed" &
wait $!
while read -r name; do
  [[ $name =~ $pattern ]] && ! grep -qx "$name" "$tmp/excused" || continue
  by=$(awk -v f="$name" '$1 == f {$1 = ""; print substr($0, 2)}' "$tmp/noticed")
  echo "# $name: $by"
  ok "$name that does nothing is noticed" [ "${by:-nobody}" != nobody ]
done <"$tmp/functions"
done_testing
