#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside one host: the cost of waiting, files left behind, the protocol in use, complaints about settings.
. "$(dirname "$0")/../tap.sh"
mpi=$BUILD/tests/mpi

# ---- which protocol: the counters tell
counters() { env MRMPI_STATS=1 "$@" mrrun -n 2 "$mpi/p2p_sizes" >"$tmp/out" 2>&1; }
ok "large messages by two copies" counters MRMPI_SINGLE_COPY=0
is "nothing was copied by the kernel then" "$(grep -c shm_single_copy "$tmp/out")" 0
is "what is long lies in the pools" "$(grep -c shm_pooled "$tmp/out")" 2
is "both ranks print their counters" "$(grep -c 'rendezvous_sent=' "$tmp/out")" 2
counters2() { counters MRMPI_OVERSUBSCRIBED=0 "$@"; }
by() { grep -o 'by_[a-z]*_copy=' "$tmp/out" | sort -u | tr -d '\n'; } # what carried large messages, but for packets
ok "large messages are pushed" counters2 MRMPI_SHM_COPY=push
is "by that protocol" "$(by)" "by_shared_copy="
ok "read by the receiver" counters2 MRMPI_SHM_COPY=read
is "then both ranks were copied to by the kernel" "$(grep -c shm_single_copy_bytes= "$tmp/out")" 2
is "by that protocol, too" "$(by)" "by_single_copy="
ok "moved by both" counters2 MRMPI_SHM_COPY=split
is "by that protocol, but for those with holes" "$(by)" "by_single_copy=by_split_copy="
is "then, too" "$(grep -c shm_single_copy_bytes= "$tmp/out")" 2
ok "in whatever way is learnt" counters2 MRMPI_SHM_COPY=auto
if [ -z "$(sanitizers)" ]; then # whose runtime a user's program has not
  MRMPI_STATS=1 MRMPI_OVERSUBSCRIBED=0 mrrun -n 2 NPmpich2 -l 65536 -u 65536 -p 0 -n 500 -o "$tmp/np" >"$tmp/out" 2>&1
  ok "which can be seen" grep -q -E 'inside the host, [0-9]+ KiB (alone|in a row|both ways): (push|read|split) .* GB/s; chosen: ' "$tmp/out"
fi
ok "more ranks than cores: single copy" counters MRMPI_OVERSUBSCRIBED=1
is "both ranks were copied to by the kernel" "$(grep -c shm_single_copy_bytes= "$tmp/out")" 2

# ---- settings: rank 0 complains, alone
MRMPI_EGER_MAX=1K MRMPI_SPIN_US=never mrrun -n 4 "$mpi/p2p_ring" >"$tmp/out" 2>&1
is "an unknown setting is named once, with the nearest" \
  "$(grep -c 'MRMPI_EGER_MAX is not a setting.*MRMPI_EAGER_MAX' "$tmp/out")" 1
is "so is a bad value, with what is allowed" "$(grep -c 'MRMPI_SPIN_US=never ignored: .*whole number' "$tmp/out")" 1

# ---- waiting: 32 ranks that wait for 2 s use a small part of one core
ok "32 ranks wait for 2 s" timeout 60 env MRMPI_OVERSUBSCRIBED=1 mrrun -n 32 "$mpi/p2p_idle" 2
cpu=$(sed -n 's/^cpu //p' "$tmp/.tap")
ok "they use less than 0.5 s of processor time (${cpu:-none})" awk -v c="${cpu:-99}" 'BEGIN { exit !(c < 0.5) }'

# ---- nothing is left behind, however it ends
mkdir "$tmp/own" # its temporary files are not among those of other jobs of this machine
names() { ls -A /dev/shm "$tmp/own" | sort; }
names >"$tmp/before"
mkfifo "$tmp/fifo"
TMPDIR=$tmp/own mrrun -n 4 "$mpi/p2p_idle" >"$tmp/fifo" 2>"$tmp/err" &
job=$!
exec 3<"$tmp/fifo"
read -r -t 30 line <&3
is "a job waits" "$line" ready
not_ok "and has files there" test -z "$(ls -A "$tmp/own")"
kill -9 "$job"
wait "$job" 2>/dev/null
cat <&3 >"$tmp/rest" # ends when the last rank is gone
exec 3<&-
names >"$tmp/after"
comm -13 "$tmp/before" "$tmp/after" | grep -iE 'mrmpi|memfd|pmix' >"$tmp/left"
is "after kill -9 of the launcher nothing of it is left" "$(cat "$tmp/left")" ""
done_testing
