#!/usr/bin/env bash
# The only link goes down under a running job: after a while the job ends, by itself, and says which peer it lost and where.
# When the link is up again the next job works. One of two links goes down and comes back: the job goes on. A job that begins
# with one of two links down uses the other.
# timeout: 300
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 280 'down 250: bash tests/rxe/down.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
. "$(dirname "$0")/wires.sh"
export MRMPI_LOG_LEVEL=2 MRMPI_PATIENCE=3
mpi=$BUILD/tests/mpi
long=1
[ "${2:-}" = short ] && long= && export MOST_BYTES=100000

job() { # RAILS PROGRAM...
  local rails=$1
  shift
  timeout -k 5 60 mrrun -n 2 --hosts "$(hosts "$rails")" "$@" >"$tmp/job" 2>&1
}
flowing() { local before; before=$(wire_bytes a0); sleep 0.3; [ $(($(wire_bytes a0) - before)) -gt 2000 ]; }
cut() { # RAILS INTERFACE: the link goes down under a job; sets rc and the seconds that it took to end
  local i begin
  mrrun -n 2 --timeout 60 --hosts "$(hosts "$1")" NPmpich2 -o "$tmp/np" -l 65536 -u 65536 -p 0 -n 1000000 >"$tmp/job" 2>&1 &
  local pid=$!
  for i in $(seq 60); do flowing && break; done
  ip link set "$2" down
  begin=$SECONDS
  wait $pid
  rc=$?
  seconds=$((SECONDS - begin))
  ip link set "$2" up
  rail_restore "${2#?}"
}
for end in ${long:+a0} b0; do
  cut 1 $end
  echo "# ended $seconds s after $end went down"
  not_ok "$end goes down: the job fails, by itself" test $rc -eq 0 -o $rc -eq 124
  like "and names the peer, the rail and what may be the reason" \
    'rank [01] on [^ ]+, rx[ab]0 port 1 to rx[ab]0 port 1(, .*|: )(the port here is (going )?down|likely its host, its process or a link)' "$tmp/job"
  like "mrrun says which rank ended the job" 'mrrun: rank [01] \(host [ab], pid [0-9]+\) ' "$tmp/job"
  job 1 "$mpi/p2p_ring"
  is "the link is up again, and the next job works" $? 0
done
# two links: rank 0 takes one down, and puts it back some rounds later, and then the other one
cat >"$tmp/change" <<'END'
#!/usr/bin/env bash
. tests/rxe/rails.sh
ip link set "$1" "$2" && { [ "$2" = down ] || rail_restore "${1#?}"; }
END
chmod +x "$tmp/change"
for way in read ${long:+write}; do
  MRMPI_RNDV=$way job 2 "$mpi/failover" 8 "$tmp/change b0 down" "$tmp/change b0 up" "$tmp/change a1 down"
  is "links go down and come back, one at a time, large messages by $way: the job works" $? 0
  like "nothing is lost or changed" '^8 rounds, 0 errors' "$tmp/job"
  ip link set a1 up
  rail_restore 1
done
ip link set a1 down
wires_of job 2 "$mpi/p2p_ring"
is "a job that begins with one of two rails down" $? 0
ok "goes over the other one (${sent[a0]} bytes)" test "${sent[a0]}" -gt 5000
ok "and not over that one (${sent[a1]})" test "${sent[a1]}" -lt 2000
ip link set a1 up
rail_restore 1
done_testing
