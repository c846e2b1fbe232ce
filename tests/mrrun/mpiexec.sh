#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers write: several programs, files of hosts and of command lines, directories, variables,
# bindings, files of output; and what they run: programs of other MPIs.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
part=$BUILD/tests/mrrun/part
net=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
unset SIMFAB_DIR
run() { timeout 60 mrrun "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
sorted() { sort "$tmp/out" | tr '\n' ';'; }
refused() { # TEXT PATTERN ARGS...: with status 2, before anything is started
  local text=$1 pattern=$2
  shift 2
  run "$@"
  is "$text: refused" "$? $(cat "$tmp/out")" "2 "
  like "$text: with the reason" "$pattern" "$tmp/err"
}

# ---- several programs
run -n 1 "$part" a : -n 3 "$part" b : -np 1 "$part" c
is "three programs are one job" "$? $(sorted)" \
  "0 a: rank 0/5 appnum 0;b: rank 1/5 appnum 1;b: rank 2/5 appnum 1;b: rank 3/5 appnum 1;c: rank 4/5 appnum 2;"
run -l -genv A all -n 1 -wdir / -env A 1 sh -c 'echo $PWD $A' : -n 1 -x A=2 sh -c 'echo $PWD $A' : -n 1 sh -c 'echo $PWD $A'
is "each with its directory and variables" "$? $(sorted)" "0 [0] / 1;[1] $PWD 2;[2] $PWD all;"
cat >"$tmp/config" <<EOF
# a master
-n 1 -env NAME "the master" sh -c 'echo \$NAME \$PMI_RANK'

-n 2 -wdir /usr sh -c \\
  'echo \$PWD \$PMI_RANK'  # workers
EOF
run -l --configfile "$tmp/config"
is "a file of command lines" "$? $(sorted)" "0 [0] the master 0;[1] /usr 1;[2] /usr 2;"
refused "one that is not there" "^mrrun: option --configfile: cannot read '$tmp/none': No such file" -configfile "$tmp/none"
refused "a program beside it" "has the parts of the job" -configfile "$tmp/config" -n 1 true
mkdir "$tmp/dir" && printf '#!/bin/sh\necho "$0 here"\n' >"$tmp/dir/here" && chmod +x "$tmp/dir/here"
run -n 1 -wdir "$tmp/dir" ./here
is "a program is looked for in its directory" "$? $(cat "$tmp/out")" "0 $tmp/dir/./here here"
(cd "$tmp" && run -n 1 -wd dir ./here)
is "which may be given from here" "$(cat "$tmp/out")" "$tmp/dir/./here here"
refused "a directory that is none" "^mrrun: option -wdir: cannot enter '$tmp/config': Not a directory" -n 1 -wdir "$tmp/config" true
run -n 1 true : -n 1 -wdir "$tmp/dir" ./gone
is "a second program that is not there: 127" $? 127
like "and it is named, with its directory" "^mrrun: cannot run './gone' in $tmp/dir: No such file" "$tmp/err"

# ---- hosts on this machine
printf '%s slots=2 # this one\n' "$(hostname)" >"$tmp/here"
run -f "$tmp/here" echo here
is "as many ranks as the slots of a file of hosts" "$? $(sorted)" "0 here;here;"
run -H localhost:3 echo here
is "or of a list" "$? $(sorted)" "0 here;here;here;"
refused "more" '3 ranks need as many slots, and the hosts have 2 \(--oversubscribe takes more\)' -n 3 -host localhost:2 true
run -n 3 -host localhost:2 --oversubscribe echo here
is "unless asked for" "$? $(sorted)" "0 here;here;here;"
printf '%s\nnowhere\n' "$(hostname)" >"$tmp/elsewhere"
run --launcher false -hostfile "$tmp/elsewhere" -n 2 true
is "a host that is elsewhere: its agent is started" "$? $(grep -c "^mrrun: host nowhere: its agent did not start: 'false'" "$tmp/err")" "1 1"
printf 'a\nb slot=2\n' >"$tmp/wrong"
refused "a file of hosts that cannot be read" "^mrrun: $tmp/wrong:2: no setting of a host in 'slot=2'" -machinefile "$tmp/wrong" -n 2 true
refused "two lists of hosts" "both name hosts" --hosts localhost -f "$tmp/here" -n 1 true

# ---- what ranks find in the environment
run -l -n 2 sh -c 'echo $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE \
  $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE $OMPI_COMM_WORLD_NODE_RANK ${OMPI_UNIVERSE_SIZE-none} ${PMI_FD-none}'
is "rank, size and those of the node, under several names" "$(sorted)" "[0] 0 2 0 2 0 2 0 2 0 none none;[1] 1 2 1 2 1 2 1 2 1 none none;"
run -n 1 -genvlist "PATH,NO_SUCH_VARIABLE" true
is "a variable that is not set is no failure" $? 0
like "but told" '^mrrun: NO_SUCH_VARIABLE is not set here' "$tmp/err"

# ---- processors: a machine of two sockets, with an adapter at the second
two_sockets 1 nowhere >"$tmp/two.xml"
bound() { # ARGS...: the processors of each rank, by the launcher's word and by the kernel's
  HWLOC_XMLFILE=$tmp/two.xml timeout 60 taskset -c 0,1 mrrun --report-bindings "$@" >"$tmp/out" 2>"$tmp/err" </dev/null sh -c 'echo $PMI_RANK: $(taskset -cp $$ | sed "s/.*: //; s/^0,1$/0-1/")'
  sed -n 's/^mrrun: rank \([0-9]*\) is bound to [a-z0-9]*: processors /\1: /p' "$tmp/err" | sort >"$tmp/claimed"
  sort "$tmp/out" | diff "$tmp/claimed" - && tr '\n' ';' <"$tmp/claimed"
}
if taskset -c 0 true && taskset -c 1 true; then
  is "ranks are bound to cores" "$(bound -n 3 --bind-to core)" "0: 0;1: 1;2: 0;"
  is "those near their adapters first" "$(bound -n 2 --bind-to core --hosts h=mlx5_0)" "0: 1;1: 0;"
  is "by sockets" "$(bound -n 2 --map-by socket)" "0: 0;1: 1;"
  is "to two cores each" "$(bound -n 2 --map-by slot:PE=2)" "0: 0-1;1: 0-1;"
  run -n 1 --bind-to none --report-bindings true
  like "or not at all" "^mrrun: rank 0 is not bound" "$tmp/err"
  export HWLOC_XMLFILE=$tmp/two.xml
  refused "objects that are not there" "this machine has no l3cache that mrrun may use" -n 1 --bind-to l3cache true
  unset HWLOC_XMLFILE
fi

# ---- input and output
printf 'one\ntwo\n' >"$tmp/in"
fed() { timeout 60 mrrun "$@" <"$tmp/in" 2>"$tmp/err" | sort | tr '\n' ';'; }
is "all ranks read" "$(fed -n 3 -l -s all cat)" "[0] one;[0] two;[1] one;[1] two;[2] one;[2] two;"
is "some do" "$(fed -n 4 -l --stdin 0,2-3 wc -l)" "[0] 2;[1] 0;[2] 2;[3] 2;"
is "another one does" "$(fed -n 3 -l -s 1 cat)" "[1] one;[1] two;"
is "none does" "$(fed -n 2 -l -s none cat)" ""
is "much, though one reads nothing" "$(head -c 3000000 /dev/zero | timeout 60 mrrun -n 3 -s all sh -c '[ $PMI_RANK = 0 ] || wc -c' | tr '\n' ' ')" \
  "3000000 3000000 "
refused "ranks that there are not" "option --stdin: '7' names none of the 2 ranks" -n 2 -s 7 true
run -n 2 -outfile-pattern "$tmp/o.%r.%h.%p.%%" -errfile-pattern "$tmp/e" sh -c 'echo out $PMI_RANK; echo err $PMI_RANK >&2'
is "output goes to files" "$? $(cat "$tmp"/o.{0,1}."$(hostname)".0.% | tr '\n' ';') $(sort "$tmp/e" | tr '\n' ';') $(cat "$tmp/out" "$tmp/err")" \
  "0 out 0;out 1; err 0;err 1; "
refused "a file that cannot be made" "^mrrun: cannot write ranks' output to '$tmp/none/0': No such file" -n 1 -outfile-pattern "$tmp/none/%r" true
if [ -e /dev/full ]; then
  run -n 1 -outfile-pattern /dev/full echo lost
  is "and one that is full is a failure" $? 1
  like "that is told" "^mrrun: cannot write to /dev/full: No space left" "$tmp/err"
fi

# ---- programs of another MPI: alone their ranks would end well
cat >"$tmp/other.c" <<'C'
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int started;
    MPI_Initialized(&started);
    for (int i = 0; argc > 1 && access(argv[1], F_OK) && i < 600; i++)
        usleep(100000);
    return started;
}
C
warned() { # waits for the file that ends the program in it, and for the warning that makes the file
  (wait_for 60 grep -q warning: "$tmp/err"; touch "$tmp/told") &
  run "$@"
  wait $!
  rm -f "$tmp/told"
}
if command -v mpicc.openmpi >/dev/null; then
  ok "a program of Open MPI's" mpicc.openmpi -o "$tmp/other" "$tmp/other.c"
  run -n 1 true : -n 2 "$tmp/other"
  is "is refused: 126" "$? $(cat "$tmp/out")" "126 "
  like "by its name and its library's" "^mrrun: '$tmp/other' is linked with libmpi.so.40, which is Open MPI's: its ranks would not" "$tmp/err"
  warned -n 2 sh -c "$tmp/other $tmp/told; :"
  like "where a rank is a script that runs it, that is told" \
    "^mrrun: warning: rank [01] \(host .*\) runs 'other' \(pid [0-9]+\) with libmpi.so.40.*, which is Open MPI's: .* a job of its own" "$tmp/err"
  is "once" "$(grep -c warning: "$tmp/err")" 1
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 run -n 1 mpiexec.openmpi --oversubscribe -n 1 "$tmp/other" "$tmp/told" &
  sleep 1 && touch "$tmp/told" && wait $!
  is "but not where its own launcher runs it inside a rank" "$? $(cat "$tmp/err")" "0 "
fi
if command -v mpicc.mpich >/dev/null && [ -z "$(sanitizers)" ]; then
  mpich=$(ldconfig -p | sed -n 's/.*libmpich.so.12 .*=> //p' | head -n 1)
  mkdir "$tmp/lib" && cp "$mpich" "$tmp/lib/libmpich.so.12"
  ok "a program of MPICH's" mpicc.mpich -o "$tmp/same" "$tmp/other.c"
  run -n 2 "$tmp/same"
  is "is started, with mrmpi's library" "$? $(cat "$tmp/err")" "0 "
  ok "one that insists on MPICH's library" mpicc.mpich -o "$tmp/insists" "$tmp/other.c" -Wl,--disable-new-dtags,-rpath,"$tmp/lib"
  run -n 2 "$tmp/insists"
  is "is refused: 126" $? 126
  like "with the reason" "^mrrun: '$tmp/insists' has its libmpich.so.12 from $tmp/lib, which is not this mrmpi's \(an RPATH" "$tmp/err"
fi

# ---- simulated hosts
printf 'h2 slots=3\nh1:1\n' >"$tmp/hosts"
export tmp
timeout 100 simfab run --topology "$net" --no-opensm -- bash -c '
  hosts() { mrrun -l "$@" hostname 2>&1 | sort | tr "\n" " "; echo; }
  hosts -n 4 --map-by node
  hosts -f "$tmp/hosts"
  mrrun -l -n 2 -host h2 hostname : -n 1 hostname : -n 1 -H h1 hostname | sort | tr "\n" " "; echo
  mrrun -n 3 --hosts h2,h1 sh -c "echo \$PMI_RANK: \$MPI_LOCALRANKID of \$MPI_LOCALNRANKS" | sort | tr "\n" " "; echo
' >"$tmp/out" 2>&1
is "ranks on hosts in turn, by slots, by part, and what they find" "$(cat "$tmp/out")" \
  "[0] h1 [1] h2 [2] h1 [3] h2 
[0] h2 [1] h2 [2] h2 [3] h1 
[0] h2 [1] h2 [2] h1 [3] h1 
0: 0 of 2 1: 1 of 2 2: 0 of 1 "
timeout 100 simfab run --topology "$net" -- mrrun -n 1 -host h2 "$part" a : -n 2 -host h1 "$part" b >"$tmp/out" 2>"$tmp/err"
is "programs on two hosts are one job" "$? $(sorted)" "0 a: rank 0/3 appnum 0;b: rank 1/3 appnum 1;b: rank 2/3 appnum 1;"
done_testing
