#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Texts of errors name classes and functions of the header that the program was compiled with, and no others.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
export MRMPI_LOG_LEVEL=0

texts() { # OPTIONS OF mrcc...
  mrcc "$@" -o "$tmp/texts" tests/mpi/texts.c || return 1
  timeout 60 mrrun --recover --timeout 40 -n 2 "$tmp/texts" >"$tmp/out" 2>"$tmp/err"
  grep -q '^probe: ' "$tmp/out" || { cat "$tmp/out" "$tmp/err"; return 1; }
  sed 's/^/# /' "$tmp/out" | head -n 4
  grep -ohE '\bMPIX?_[A-Za-z_]+' "$tmp/out" | sort -u >"$tmp/named"
  mrcc "$@" -E -dD -include mpi.h -x c /dev/null | grep -ohE '\bMPIX?_[A-Za-z_]+' | sort -u >"$tmp/there"
}
for abi in mpich standard; do
  case $abi in
    mpich) options=() lost=MPIX_ERR_PROC_FAILED pending=MPIX_ERR_PROC_FAILED_PENDING ;;
    standard) options=(-mpi-abi) lost=MPI_ERR_PROC_ABORTED pending=MPI_ERR_PENDING ;;
  esac
  ok "$abi: a process dies" texts "${options[@]}"
  ok "$(wc -l <"$tmp/named") names" test "$(wc -l <"$tmp/named")" -gt 40
  is "each is in the header" "$(comm -23 "$tmp/named" "$tmp/there")" ""
  like "a receive from the process" "^lost: MPI_Recv: .*\($lost\)\$" "$tmp/out"
  like "a receive from any process" "^wait: MPI_Wait: .*\($pending\)\$" "$tmp/out"
  like "can be cancelled" '^cancelled: 1$' "$tmp/out"
  like "a probe, while nobody lives who could send" "^probe: MPI_Probe: .*\\($lost\\)\$" "$tmp/out"
  [ $abi != mpich ] || like "a send on a revoked communicator: no rank is to blame" \
    '^revoked: MPI_Send: the communicator has been revoked[^-0-9]*\(MPIX_ERR_REVOKED\)$' "$tmp/out"
done
done_testing
