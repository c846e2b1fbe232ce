#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# timeout --all: 1200
# Jobs that connect to each other (ports.c): on one machine, with and without a launcher; between simulated hosts.
# ports.sh [--all]: a choice of the cases between hosts, and fewer and smaller ones in a row, or all of them.
. "$(dirname "$0")/../tap.sh"
all=
[ "${1:-}" != --all ] || all=1
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net
program=${PORTS_PROGRAM:-$BUILD/tests/mpi/ports} # standard/abi.sh has its own
forbid=$BUILD/tests/libmrmpi/forbid

# job RANKS[@HOST] CASE...; 0 RANKS: a process without launcher. $by: options of mrrun; $under: words before the
# program, in all jobs, or where the case is $one
job() {
  local n=${1%@*} host=
  [[ $1 != *@* ]] || host="--host ${1#*@}"
  shift
  # shellcheck disable=SC2086
  if [ "${one:-$1}" = "$1" ]; then set -- ${under:-} "$program" "$@"; else set -- "$program" "$@"; fi
  # shellcheck disable=SC2086
  case $n in
  0) timeout -k 5 100 "$@" ;;
  *) timeout -k 5 100 mrrun ${by:-} $host -n "$n" "$@" ;;
  esac </dev/null
}

# jobs STATUS "RANKS WORDS"...: at the same time; prints their output, and succeeds if all end well, the last with STATUS
jobs_end() {
  local i=0 want=$1 bad=0 pids=() pid
  shift
  rm -f "$tmp"/port*
  for words; do
    # shellcheck disable=SC2086
    job $words >"$tmp/out.$i" 2>&1 &
    pids+=($!)
    i=$((i + 1))
  done
  for pid in "${pids[@]}"; do
    i=$((i - 1))
    wait "$pid"
    [ $? -eq "$([ $i -eq 0 ] && echo "$want" || echo 0)" ] || bad=1
  done
  cat "$tmp"/out.*
  rm -f "$tmp"/out.*
  return $bad
}
far() { # LINKS WORDS...: jobs_end on the hosts of a fabric
  MRMPI_LINKS=$1 MRMPI_LOG_LEVEL=0 by="${by_hosts:---ppn 1}" timeout -k 5 300 simfab run --topology "$topology" --model hdr -- \
    bash -c 'jobs_end "$@"; s=$?; exit $s' _ "${@:2}"
}
export tmp program forbid
export -f job jobs_end
wide=16 many=60
[ -z "$all" ] || wide=32 many=200
[ -z "$(sanitizers)" ] || wide=8 # they take several times as long
# the sanitizer keeps what is freed, and that would look like a leak of resident memory
reuse=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0:thread_local_quarantine_size_kb=0

ok "halves of a job" job 4 within
ok "names of services, in a job" job 3 names
ok "and without launcher" job 0 names
ok "wrong ports are errors, and so are closed ones" job 2 errors

# Names at fabricd, one of ours
mkdir "$tmp/state"
cat >"$tmp/fabricd.yaml" <<END
policy: $topology.none
state: $tmp/state
socket: $tmp/fabricd.sock
END
export MRMPI_FABRICD_SOCKET=$tmp/fabricd.sock
job 1 nameless user >"$tmp/out" 2>&1
is "names of a user without fabricd are errors" $? 0
like "and the error says why" '"left behind": the launcher keeps no such name, and no fabricd answers at .*/fabricd.sock' "$tmp/out"
fabricd --config "$tmp/fabricd.yaml" 2>"$tmp/fabricd.log" &
daemon=$!
on_exit "kill $daemon 2>/dev/null"
wait_for 10 test -S "$tmp/fabricd.sock" || cat "$tmp/fabricd.log"
for scope in "" user; do
  ok "two jobs meet by the name of a service${scope:+, scope $scope}" jobs_end 0 "2 named serve $scope" "2 named call $scope"
done
ok "and without launcher" jobs_end 0 "0 named serve" "0 named call"
ok "names of a job are not for others" jobs_end 0 "1 names job" "1 names job"
job 1 nameless >"$tmp/out" 2>&1
is "a name ends with its process" $? 0
like "and is not published" '"left behind" is not published' "$tmp/out"
kill $daemon
wait $daemon
unset MRMPI_FABRICD_SOCKET

p=$tmp/port
for sizes in "1 1" "2 3" "4 1" "0 2" "0 0"; do
  read -r a b <<<"$sizes"
  ok "two jobs of $a and $b (0: no launcher), twice" jobs_end 0 "$a serve $p 2" "$b call $p 2"
done
ok "three jobs, two of which have met through the third" jobs_end 0 "2 a $p" "1 b $p" "2 c $p"
ASAN_OPTIONS=$reuse ok "$many connections in a row leave nothing behind" jobs_end 0 "1 many-serve $p $many" "1 many-call $p $many"
ok "the other job ends: its last messages arrive" jobs_end 0 "2 stay $p" "3 leave $p"
ok "the other job dies: an error, and this job goes on" jobs_end 137 "2 mourn $p" "2 die $p"
for n in 1 3; do
  ok "$n processes die in the middle of a flood" jobs_end 137 "$n cut $p read" "$n cut $p flood"
done
ok "a thousand strangers connect, and say nothing" jobs_end 0 "1 crowded $p" "1 call $p 1"
ok "a job is slow with its first words" jobs_end 0 "2 serve $p 1" "3 slow $p"
for sizes in "1 1" "2 3"; do
  read -r a b <<<"$sizes"
  ok "two threads of each process of $a and $b connect at once" jobs_end 0 "$a threads $p serve" "$b threads $p call"
done
ok "jobs of $wide and $wide" jobs_end 0 "$wide wide $p serve" "$wide wide $p call"
ok "processes meet over a socket of theirs" jobs_end 0 "1 join $p l" "0 join $p call"

# Two namespaces of the network, with a cable between them and no IPv4
cabled() { # COMMAND...: in the first; $other: a process of the second
  unshare -n sleep 100 &
  other=$!
  # shellcheck disable=SC2016
  unshare -n bash -c 'export other=$1
    ip link add va type veth peer name vb && ip link set vb netns "$other" || exit
    ip link set lo up; ip addr del 127.0.0.1/8 dev lo 2>/dev/null
    ip addr add fd00::1/64 dev va nodad && ip link set va up || exit
    nsenter -n -t "$other" sh -c "ip addr add fd00::2/64 dev vb nodad && ip link set vb up && ip link set lo up" || exit
    "${@:2}"' _ "$other" "$@"
  local got=$?
  kill $other
  return $got
}
through() { # loopback|cable FILE: two processes without launcher, the second here or at the other end
  local there=()
  [ "$1" = loopback ] || there=(nsenter -n -t "$other")
  timeout -k 5 100 "$program" serve "$2" 1 &
  local first=$!
  timeout -k 5 100 "${there[@]}" "$program" call "$2" 1 && wait $first
}
export -f through
if [ "$(id -u)" = 0 ] && cabled true 2>"$tmp/why"; then
  for way in loopback cable; do
    rm -f "$p"
    ok "by IPv6 alone, over the $way" cabled through $way "$p"
  done
else
  echo "# no namespaces of the network with IPv6: $(cat "$tmp/why" 2>/dev/null)"
fi

# ringing WORDS...: how many processes of two jobs, one under WORDS, send packets through shared memory
ringing() {
  under="$*" one=call MRMPI_STATS=1 jobs_end 0 "${ranks:-1} serve $p 2" "${ranks:-1} call $p 2" >"$tmp/all" 2>&1 || cat "$tmp/all"
  grep -c shm_jobs_sent "$tmp/all"
}
is "on one node packets go through shared memory" "$(ringing)" 2
is "and without launcher" "$(ranks=0 ringing)" 2
ASAN_OPTIONS=$reuse MRMPI_STATS=1 jobs_end 0 "1 many-serve $p 100" "1 many-call $p 100" >"$tmp/out" 2>&1 || cat "$tmp/out"
n=$(counted shm_jobs_sent)
ok "and after each of 100 connections ($n packets)" test "$n" -ge 2000
chmod 755 "$tmp"
stranger="setpriv --reuid 65534 --clear-groups"
# shellcheck disable=SC2086
if [ "$(id -u)" = 0 ] && $stranger test -x "$program" -a -r "$BUILD/lib/libmrmpi.so" 2>/dev/null; then
  is "but not to another user's process" "$(ranks=0 ringing $stranger)" 0
else
  echo "# no other user's process"
fi
if "$forbid" memfd_create -- true 2>"$tmp/why"; then
  is "nor from a process that has no memfds" "$(ringing "$forbid" memfd_create --)" 1
fi

# copies_of WORDS...: the ranks of two jobs, one of them under `forbid WORDS --`, that have read another's memory
copies_of() {
  under="$*" MRMPI_STATS=1 jobs_end 0 "1 serve $p 1" "1 call $p 1" >"$tmp/all" 2>&1 || cat "$tmp/all"
  grep -c shm_single_copy_bytes "$tmp/all"
}
is "on one node receivers read large messages" "$(copies_of)" 2
if "$forbid" process_vm_readv -- true 2>"$tmp/why"; then
  # the leak checker of sanitized builds is a tracer
  [ -z "$(sanitizers)" ] || export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
  is "unless the kernel forbids it" "$(copies_of "$forbid" process_vm_readv --)" 0
  for sizes in "1 1" "2 3"; do
    read -r a b <<<"$sizes"
    under="$forbid process_vm_readv --" ok "jobs of $a and $b ranks that may not" jobs_end 0 "$a serve $p 2" "$b call $p 2"
    under="$forbid process_vm_readv --" one=call ok "jobs of $a and $b ranks, of which one may" jobs_end 0 "$a serve $p 2" "$b call $p 2"
  done
else
  echo "# no seccomp filters: $(cat "$tmp/why")"
fi
MRMPI_SINGLE_COPY=no ok "nor by their settings" jobs_end 0 "1 serve $p 1" "2 call $p 1"
MRMPI_OVERSUBSCRIBED=1 ok "ranks that sleep early" jobs_end 0 "3 serve $p 1" "2 call $p 1"

for links in auto ud; do
  first=${links#ud}
  [ -z "$all" ] || ok "jobs on two hosts ($links)" far $links 0 "2 serve $p 1" "2 call $p 1"
  [ -z "$all$first" ] || ok "three jobs on two hosts ($links)" far $links 0 "2 a $p" "2 b $p" "1 c $p"
  [ -z "$all$first" ] || ok "two threads of each process on two hosts ($links)" far $links 0 "2 threads $p serve" "2 threads $p call"
  ok "two jobs on two hosts, three times ($links)" far $links 0 "2 serve $p 3" "2 call $p 3"
done
[ -z "$all" ] || by_hosts="--ppn $((wide / 2))" ok "jobs of $wide and $wide on two hosts" far auto 0 "$wide wide $p serve" "$wide wide $p call"
for links in auto ${all:+ud}; do
  ok "a job on two hosts dies ($links)" far $links 137 "2 mourn $p" "2 die $p"
done
[ -z "$all" ] || ok "processes of two hosts meet over a socket of theirs" far auto 0 "1@h1 join $p l" "1@h2 join $p call"
for links in ${all:+rc ud}; do
  ASAN_OPTIONS=$reuse MRMPI_SRQ_DEPTH=16 ok "$many connections between hosts leave nothing behind ($links)" far $links 0 "1 many-serve $p $many" "1@h2 many-call $p $many"
done
ok "a job on one of the hosts" far auto 0 "2 serve $p 1" "1@h2 call $p 1"

# over_rails LINKS COUNTER [one|all ROUND]: messages go both ways between the jobs; prints the sum of that counter
over_rails() {
  MRMPI_STATS=1 far "$1" 0 "2 rails $p serve ${*:3}" "2 rails $p call" >"$tmp/out" 2>&1 || cat "$tmp/out"
  counted "$2"
}
n=$(over_rails rc net_stripes)
ok "large messages between jobs are read over rails ($n parts)" test "$n" -ge 80
n=$(over_rails ud ud_zcopy)
ok "or come as datagrams ($n)" test "$n" -ge 40
for links in rc ud; do
  ok "a rail dies meanwhile ($links)" test "$(over_rails $links broken one 3)" -ge 2
  for round in 1 3 4; do # short messages, large ones, and large ones that cross
    [ -n "$all" ] || [ "$links$round" = rc4 ] || [ "$links$round" = ud3 ] || continue
    ok "no cable is left in round $round ($links): TCP goes on" far $links 0 "1 rails $p serve all $round" "1@h2 rails $p call"
  done
  [ -z "$all" ] || ok "nor adapter ($links)" far $links 0 "1 rails $p serve all 3 die" "1@h2 rails $p call"
done
for links in ${all:+rc} ud auto; do
  for round in 1 2 3 4; do # 8 B, 64 KiB, 1 MiB, 3 MiB that cross
    [ -n "$all" ] || [ "$links$round" = ud2 ] || continue
    ok "nothing gets through from round $round on, all ports up ($links)" \
      far $links 0 "1 rails $p serve all $round loss=1" "1@h2 rails $p call"
  done
done
for links in ${all:+auto} ud; do
  counter=ud_zcopy lost=1
  [ $links = ud ] || counter=net_stripes lost=0 # adapters repeat
  n=$(over_rails $links $counter all 1 loss=1 for=10ms)
  ok "nothing gets through for 10 ms, then rails carry messages again ($links, $n parts)" \
    test "$n" -ge 40 -a "$(counted timeouts)" -ge $lost
  [ -z "$all" ] || ok "nor for 3 s ($links): TCP goes on" far $links 0 "1 rails $p serve all 2 loss=1 for=3s" "1@h2 rails $p call"
done
done_testing
