#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The instructions of the library for a message of 8 bytes stay within the promised limits: the calls of
# bench/instructions.sh, which compares them with other libraries', but counted without valgrind (instructions.c), so
# wherever the tests run. Each figure is the mean of calls in a row once connections and memory are there, including
# work done once in up to 16 calls (packets confirmed, buffers posted again). Clocks and load change none of them.
# --all: with the standard's binary interface over two rails and four, too.
# timeout --all: 300
. "$(dirname "$0")/../tap.sh"
[ -x "$BUILD/tests/libmrmpi/counted_pair" ] || skip_all "instructions are counted on x86-64 only"
[ -z "$(sanitizers)" ] || skip_all "a sanitizer adds instructions of its own"
if readelf --dwarf-depth=1 -wi "$BUILD/lib/libmrmpi.so" | grep DW_AT_producer | grep -qv 'GNU C.* -O[23] '; then
  skip_all "promised is what gcc makes with -O2"
fi
export tmp MRMPI_LOG_LEVEL=0 MRMPI_OVERSUBSCRIBED=0 COUNT_FUNCTION=mr_shm_peek # as if each rank had a core

rails=
interface= # or standard/
numbers="1 2 4" # of rails
count() { # FILE CALLS PROGRAM ARGS...: into $tmp/FILE; between hosts over $rails if there are any, else inside this one
  local i devices=mlx5_0
  for ((i = 1; i < ${rails:-0}; i++)); do devices+=+mlx5_$i; done
  COUNT_FILE=$tmp/$interface$1 COUNT_CALLS=$2 timeout 100 mrrun -n 2 ${rails:+--hosts "h1=$devices,h2=$devices"} \
    "$BUILD/tests/libmrmpi/${interface}counted_$3" "${@:4}"
}
between_hosts() {
  rails=1 count trip "MPI_Send MPI_Recv" pair latency:8:81 || return
  for rails in $numbers; do count isend$rails MPI_Isend pair rate:8:27 || return; done
  rails=1 count put MPI_Put rma apart:8:3
}
export interface numbers
export -f count between_hosts
mean() { # FILE FROM TO [EACH]: of these calls, EACH of them together; nothing if there are fewer
  awk -v from="$2" -v to="$3" -v each="${4:-1}" 'NR >= from && NR <= to {n += $2}
    END {if (NR >= to && n) printf "%.0f", n * each / (to - from + 1)}' "$tmp/$1"
}
at_most() { # TEXT MOST FILE FROM TO [EACH]
  local n
  n=$(mean "${@:3}")
  ok "$1: $n instructions, at most $2" test "${n:-none}" -le "$2"
}
as_many() { # TEXT FILE FROM TO [EACH]: with the standard's binary interface, at most 2 % more
  local n mpich
  n=$(mean "standard/$2" "${@:3}") mpich=$(mean "${@:2}")
  ok "$1: $n instructions and $mpich" test "$((100 * ${n:-9999}))" -le "$((102 * mpich))"
}
entered() { awk -v call="$2" '$1 == call {n += $3} END {print n + 0}' "$tmp/$1"; } # FILE CALL

# Of 104 the first connect, the last may find that the other rank ends.
count isend "MPI_Isend MPI_Wait" calls isend 8 104 "$tmp/turns.isend" >"$tmp/out" 2>&1
status=$?
! grep -q '^cannot count: single steps' "$tmp/out" || skip_all "$(head -n 1 "$tmp/out")"
is "inside a host: calls that send are counted" "$status $(cat "$tmp/out")" "0 "
ok "those that receive" count irecv "MPI_Irecv MPI_Wait" calls irecv 8 104 "$tmp/turns.irecv" || done_testing
ok "and the one that does both" count recv MPI_Recv calls recv 8 104 "$tmp/turns.recv" || done_testing
at_most "MPI_Isend and MPI_Wait" 250 isend 65 192 2
at_most "MPI_Irecv and MPI_Wait of a message that is there" 400 irecv 65 192 2
at_most "MPI_Recv in their place" "$(mean irecv 65 192 2)" recv 33 96

simfab topology star --hosts 2 --rails 4 >"$tmp/net"
ok "between two hosts, over one rail, two and four" \
  timeout 250 simfab run --topology "$tmp/net" --model hdr -- bash -c between_hosts || done_testing
at_most "MPI_Send and MPI_Recv: a round trip" 1000 trip 37 164 2
at_most "MPI_Isend over one rail" 300 isend1 65 192
at_most "over two" 330 isend2 65 192
at_most "over four" 330 isend4 65 192
at_most "MPI_Put" 200 put 129 384

# a ring in memory is between ranks of one host
ok "MPI_Recv looks for the message in its sender's ring" test "$(entered recv MPI_Recv)" -ge 64
is "but not where the sender is on another host" "$(entered trip MPI_Recv)" 0

# The same calls with the standard's binary interface
interface=standard/
[ "${1:-}" = --all ] || numbers=1
mkdir "$tmp/standard"
ok "inside a host with libmpi_abi.so.1: calls that send" count isend "MPI_Isend MPI_Wait" calls isend 8 104 "$tmp/turns.isend2"
ok "that receive" count irecv "MPI_Irecv MPI_Wait" calls irecv 8 104 "$tmp/turns.irecv2"
ok "and do both" count recv MPI_Recv calls recv 8 104 "$tmp/turns.recv2"
ok "between hosts" timeout 250 simfab run --topology "$tmp/net" --model hdr -- bash -c between_hosts
as_many "MPI_Isend and MPI_Wait" isend 65 192 2
as_many "MPI_Irecv and MPI_Wait" irecv 65 192 2
as_many "MPI_Recv" recv 33 96
as_many "a round trip" trip 37 164 2
as_many "MPI_Isend over one rail" isend1 65 192
[ "${1:-}" != --all ] || as_many "over two" isend2 65 192
[ "${1:-}" != --all ] || as_many "over four" isend4 65 192
as_many "MPI_Put" put 129 384
done_testing
