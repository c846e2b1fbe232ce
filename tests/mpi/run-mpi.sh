#!/usr/bin/env bash
# Run the programs of programs.list: run-mpi.sh MODE [PATTERN]
#   shm   on this machine, through shared memory
#   net1  on two simulated hosts over one rail
#   net2  the same over two rails
#   hydra as shm, started by mpiexec.hydra
#   rxe1  inside the soft-RoCE laboratory (tests/rxe/lab), over one rail; rxe2 over two. With 2 and 4 ranks
# PATTERN (an extended regular expression) picks programs by name, MPI_TEST_NOT (another one, for names with arguments) leaves some out. MPI_TEST_DIR has the programs, $BUILD/tests/mpi if it is not set. With OTHER_RANKS=yes they run with those numbers of 1, 2, 3,
# 4, 7 and 16 ranks that the list does not have for them, and with those that it has in parentheses. With MPI_TEST_RANKS (a
# list) they run with those of it that the list has for them, or, if it has none of these, with all; "most" among them is the
# last number that the list has. MPI_TEST_MORE_RANKS is that list for programs whose names match MPI_TEST_MORE.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
mode=$1 pattern=${2:-.}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../mrrun/lsan.supp:print_suppressions=0}
limit=${MPI_TEST_TIMEOUT:-120}
# a program that leaves anything behind prints it, which is a failure
export MRMPI_LEAKS=${MRMPI_LEAKS:-yes}

net() { [[ $mode == net* ]]; }
rxe() { [[ $mode == rxe* ]]; }
hydra() { [[ $mode == hydra ]]; }

# Inside a simfab this script runs itself: one fabric serves all programs.
if net && [ -z "${SIMFAB_DIR:-}" ]; then
  simfab run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- bash "$0" "$mode" "$pattern"
  exit $?
fi
# no fabricd runs here: its absence is said once, which is not what these programs are about
net && export MRMPI_RAILS_MAX=${mode#net} MRMPI_LOG_LEVEL=0
rxe && export MRMPI_LOG_LEVEL=0

devices() { # a|b: its adapters, joined by +
  local r list=
  for ((r = 0; r < ${mode#rxe}; r++)); do list+=+rx$1$r; done
  echo "${list#+}"
}
run() { # name ranks args...
  local name=$1 n=$2
  shift 2
  local place=()
  net && place=(--ppn $(((n + 1) / 2)))
  rxe && place=(--ppn $(((n + 1) / 2)) --hosts "a=$(devices a),b=$(devices b)")
  local launcher=(mrrun)
  hydra && launcher=(env "LD_LIBRARY_PATH=$BUILD/lib" mpiexec.hydra -launcher fork)
  timeout -k 5 "$limit" "${launcher[@]}" -n "$n" "${place[@]}" "${MPI_TEST_DIR:-$BUILD/tests/mpi}/$name" "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  [ ! -s "$tmp/out" ] || { cat "$tmp/out"; return 1; }
  return $rc
}

# The numbers of ranks that a line leaves out.
others() {
  local n
  for n in "$@"; do [[ $n == \(* ]] && echo "${n//[()]/}"; done
  [[ " $* " == *" only "* ]] && return
  for n in 1 2 3 4 7 16; do
    [[ " $* " == *" $n "* || " $* " == *" $n+ "* || " $* " == *"($n)"* || ($n == 1 && " $* " == *" 2+ "*) ]] || echo "$n"
  done
}

while read -r name modes rest; do
  [[ -z $name || $name == \#* ]] && continue
  rxe && [[ ,$modes, == *,net,* ]] && modes+=,rxe
  hydra && [[ ,$modes, == *,shm,* ]] && modes+=,hydra
  [[ ,$modes, == *,${mode%[12]},* ]] || continue
  [[ $name =~ $pattern ]] || continue
  args=()
  [[ $rest == *--* ]] && read -ra args <<<"${rest#*--}"
  [[ -n ${MPI_TEST_NOT:-} && "$name${args[*]:+ ${args[*]}}" =~ $MPI_TEST_NOT ]] && continue
  ranks=${rest%%--*}
  # a PMI launcher takes a process once
  hydra && [[ ${args[*]} == again ]] && continue
  # the machine of the laboratory is a slow one; a program that is for two stays with two
  rxe && [[ " $ranks" =~ \ [0-9] ]] && ranks="2 $([[ $ranks =~ (^| )([3-9]|[1-9][0-9]) ]] && echo 4)"
  # shellcheck disable=SC2086
  if [ -n "${OTHER_RANKS:-}" ]; then
    ranks=$(others $ranks)
  else
    # without a process: the script looks at every line of the list, and often runs for one program
    listed=() chosen=()
    for n in $ranks; do [[ $n == [0-9]* ]] && listed+=("$n"); done
    wanted=${MPI_TEST_RANKS:-}
    [[ -n ${MPI_TEST_MORE:-} && $name =~ $MPI_TEST_MORE ]] && wanted=${MPI_TEST_MORE_RANKS:-}
    [ ${#listed[@]} -gt 0 ] && wanted=${wanted/most/${listed[-1]} ${listed[-1]%+}}
    for n in ${listed[@]+"${listed[@]}"}; do [[ " $wanted " == *" $n "* || " $wanted " == *" ${n%+} "* ]] && chosen+=("$n"); done
    [ ${#chosen[@]} -gt 0 ] || chosen=(${listed[@]+"${listed[@]}"})
    ranks=${chosen[*]}
  fi
  for n in $ranks; do
    ok "$name${args[*]:+ ${args[*]}}, ${n%+} ranks, $mode" run "$name" "${n%+}" "${args[@]}"
  done
done <"$here/programs.list"
done_testing
