#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that hangs names its MPI function, from the stack (libmrmpi/api/inquiry.c). So each MPI function stays on the stack
# until its work is done: none jumps to another function, and no part of one is elsewhere, without a name.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
[ "$(uname -m)" = x86_64 ] || skip_all "reads instructions of x86_64"
command -v objdump >/dev/null || skip_all "objdump is not installed"

# jumps <DISASSEMBLY: "FUNCTION TARGET" for each jump of an MPI function out of itself
jumps() {
  awk '/^[0-9a-f]+ <.*>:$/ { f = substr($2, 2, length($2) - 3); next }
    f !~ /^P?MPIX?_/ || $2 !~ /^(bnd|notrack|j[a-z]+)$/ { next }
    match($0, /<[^>]*>/) { to = substr($0, RSTART + 1, RLENGTH - 2); sub(/\+0x[0-9a-f]+$/, "", to); if (to != f) print f, to }'
}
functions() { awk '/^[0-9a-f]+ <P?MPIX?_[A-Za-z_0-9]+>:$/' "$1" | wc -l; }

for lib in libmpi.so.12 libmpi_abi.so.1; do
  objdump -d --no-show-raw-insn "$BUILD/lib/$lib" >"$tmp/$lib" 2>"$tmp/err"
  least=$(nm -D --defined-only "$BUILD/lib/$lib" | awk '$2 == "T" && $3 ~ /^PMPIX?_/' | wc -l)
  ok "$lib: its $least functions are read" test "$least" -gt 500 -a "$(functions "$tmp/$lib")" -ge "$least"
  is "$lib: no MPI function leaves the stack before its end" "$(jumps <"$tmp/$lib" | head)" ""
done
is "jumps are found, direct, by a table, and to a part elsewhere" "$(jumps <<'CODE'
0000000000001000 <PMPI_Wait>:
    1000:	cmp    $0x1,%edi
    1003:	je     1010 <PMPI_Wait+0x10>
    1005:	jmp    2000 <wait_guarded>
    1010:	jne    3000 <PMPI_Wait.cold>
    1016:	jmp    *0x2192d(%rip)        # a5c30 <mr_wait@Base>
    101c:	call   4000 <mr_lock>
0000000000002000 <wait_guarded>:
    2000:	jmp    4000 <mr_lock>
CODE
)" "\
PMPI_Wait wait_guarded
PMPI_Wait PMPI_Wait.cold
PMPI_Wait mr_wait@Base"
done_testing
