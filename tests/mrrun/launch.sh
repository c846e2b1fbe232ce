#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrrun starts ranks that find each other: ranks, sizes, node maps, addresses, environments, placement on hosts.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
client=$BUILD/tests/mrrun/test_launch_client

timeout 60 mrrun -n 4 "$client" >"$tmp/four" 2>&1
is "four ranks end with status 0" $? 0
is "each rank reports once" "$(sort "$tmp/four" | cut -d' ' -f1-4 | tr '\n' ';')" \
    "rank 0/4 local 0/4;rank 1/4 local 1/4;rank 2/4 local 2/4;rank 3/4 local 3/4;"
like "the map says one node" "^rank 2/4 local 2/4 nodes 1 .* map 0,0,0,0 peers 0,1,2,3$" "$tmp/four"

timeout 60 mrrun -n 64 "$client" >"$tmp/many" 2>&1
is "64 ranks put, fence and get from each other" "$? $(grep -c '^rank [0-9]*/64 local' "$tmp/many")" "0 64"
is "64 ranks are all different" "$(cut -d' ' -f2 "$tmp/many" | sort -u | wc -l)" 64

timeout 60 mrrun -n 2 --job-id night.7@site "$client" >"$tmp/job" 2>&1
is "ranks learn the job id" "$(grep -c 'job night.7@site map' "$tmp/job")" 2
is "the job id is in the environment" "$(mrrun -n 1 --job-id j1 printenv MRMPI_JOBID)" j1
is "a scheduler's job id is taken" "$(env -u MRMPI_JOBID SLURM_JOB_ID=4711 mrrun -n 1 printenv MRMPI_JOBID)" 4711
mrrun -n 1 --job-id 'a b' true 2>"$tmp/badid"
is "a job id with a blank is refused" $? 2

"$client" >"$tmp/single"
is "without launcher a process is rank 0 of 1" "$(cut -d' ' -f1-5 "$tmp/single")" "rank 0/1 local 0/1 nodes"

is "programs without MPI run" "$(mrrun -n 3 echo here | sort | uniq -c | tr -s ' ')" " 3 here"
is "-x sets a variable" "$(mrrun -n 2 -x FRUIT=pear printenv FRUIT | uniq)" pear
is "-x NAME passes one on" "$(FRUIT=fig mrrun -n 1 -x FRUIT printenv FRUIT)" fig
is "the environment is passed on" "$(MRMPI_RAILS_MAX=1 mrrun -n 1 printenv MRMPI_RAILS_MAX)" 1
is "as are the variables that mrrun sets while it starts" \
    "$(HWLOC_SYNTHETIC=pu:3 HWLOC_PLUGINS_PATH=/opt/x mrrun -n 1 printenv HWLOC_SYNTHETIC HWLOC_PLUGINS_PATH | tr '\n' ' ')" "pu:3 /opt/x "
not_ok "and none that was not there" mrrun -n 1 printenv HWLOC_SYNTHETIC HWLOC_PLUGINS_PATH
# half of a short job: what mrrun loads is in the file of its own pid
LD_DEBUG=files LD_DEBUG_OUTPUT=$tmp/loaded mrrun -n 1 true &
wait $!
ok "mrrun says what it loads" grep -q 'libpmix' "$tmp/loaded.$!"
not_ok "it does not look for PCI devices and displays" grep -E 'hwloc_[a-z]*\.so' "$tmp/loaded.$!"
is "--stats asks ranks for their counters" "$(mrrun -n 1 --stats printenv MRMPI_STATS)" 1
is "stdin goes to rank 0" "$(echo hello | mrrun -n 3 -l cat)" "[0] hello"
is "stdin is not read by mrrun" "$(printf 'one\ntwo\n' | { mrrun -n 2 true; cat; } | tr '\n' ' ')" "one two "
is "a script may start mrrun inside mrrun" "$(mrrun -n 1 mrrun -n 2 "$client" | cut -d' ' -f1-2 | sort | tr '\n' ' ')" \
    "rank 0/2 rank 1/2 "

lib=$(mrrun -n 1 printenv LD_LIBRARY_PATH | cut -d: -f1)
ok "LD_LIBRARY_PATH begins with the ABI library's directory" test -e "$lib/libmpi.so.12" -a -e "$lib/libmpich.so.12"
is "what was in LD_LIBRARY_PATH stays behind it" "$(LD_LIBRARY_PATH=/opt/x mrrun -n 1 printenv LD_LIBRARY_PATH)" "$lib:/opt/x"

mrrun --launcher false -n 2 --hosts nowhere true 2>"$tmp/err"
is "a host that is not this machine has its ranks started there" $? 1
like "by the launcher" "^mrrun: host nowhere: its agent did not start: 'false' ended with status 1" "$tmp/err"
mrrun -n 4 --ppn 2 true 2>"$tmp/err"
is "more ranks than fit are refused" $? 2
like "with the numbers" "4 ranks at 2 per host need 2 hosts, and there is 1" "$tmp/err"

(ulimit -n 200 && mrrun -n 150 true) 2>"$tmp/err"
is "more ranks than open files allow are refused" $? 2
like "with the numbers" "150 ranks need about 514 open files, and the hard limit is 200" "$tmp/err"
is "ranks keep the soft limit of open files" "$(ulimit -Sn 256 && mrrun -n 100 sh -c 'ulimit -n' | uniq)" 256

# A simulated fabric as mrrun sees it: a command beside it that lists hosts and runs programs there.
mkdir -p "$tmp/bin" "$tmp/libexec/mrmpi"
cp "$BUILD/bin/mrrun" "$tmp/bin/"
"$tmp/bin/mrrun" -n 2 true 2>"$tmp/err"
is "a launcher without its library starts nothing: ranks would be jobs of one" $? 1
like "and says where the library should be" "^mrrun: there is no libmpi.so.12 in $tmp/bin/../libexec/mrmpi/lib: run make or make install" "$tmp/err"
ln -s "$BUILD/lib" "$tmp/libexec/mrmpi/lib"
cat >"$tmp/bin/simfab" <<'SH'
#!/bin/sh
case $1 in
status) printf 'h1\nh2\nh3\n' ;;
exec) shift; SIM_HOST=$1; export SIM_HOST; shift 2; exec "$@" ;;
esac
SH
chmod +x "$tmp/bin/simfab"
sim() { SIMFAB_DIR=$tmp timeout 60 "$tmp/bin/mrrun" "$@"; }
sim -n 6 "$client" >"$tmp/sim" 2>&1
is "ranks on simulated hosts end with status 0" $? 0
is "blocks of ranks per host" "$(sort "$tmp/sim" | sed 's/ job.* map/ map/')" \
    "rank 0/6 local 0/2 nodes 3 node h1 map 0,0,1,1,2,2 peers 0,1
rank 1/6 local 1/2 nodes 3 node h1 map 0,0,1,1,2,2 peers 0,1
rank 2/6 local 0/2 nodes 3 node h2 map 0,0,1,1,2,2 peers 2,3
rank 3/6 local 1/2 nodes 3 node h2 map 0,0,1,1,2,2 peers 2,3
rank 4/6 local 0/2 nodes 3 node h3 map 0,0,1,1,2,2 peers 4,5
rank 5/6 local 1/2 nodes 3 node h3 map 0,0,1,1,2,2 peers 4,5"
is "programs are started on their hosts" "$(sim -n 3 -l printenv SIM_HOST | sort | tr '\n' ' ')" "[0] h1 [1] h2 [2] h3 "
is "--hosts picks and orders" "$(sim -n 2 -l --hosts h3,h1 printenv SIM_HOST | sort | tr '\n' ' ')" "[0] h3 [1] h1 "
is "--ppn fills host by host" "$(sim -n 5 -l --ppn 4 printenv SIM_HOST | sort | tr '\n' ' ')" \
    "[0] h1 [1] h1 [2] h1 [3] h1 [4] h2 "
sim -n 2 --hosts h1,h9 true 2>"$tmp/err"
is "an unknown simulated host is refused" $? 2
like "and named" "the fabric has no host 'h9'" "$tmp/err"
# The man page has every option that --help has, and the other way round.
man=$(dirname "$0")/../../man/mrrun.1
mrrun --help | grep '^  -' | grep -oE -- '(^|[ (])--?[A-Za-z][a-z-]*' | sed 's/^[ (]*-*//' | sort -u >"$tmp/help"
sed -n '/^.SH OPTIONS/,/^.SH INPUT/p' "$man" | grep -A1 '^\.TP' | grep '^\.B' | sed 's/\\f.//g; s/\\-/-/g; s/"//g' |
    grep -oE -- '(^| )-[A-Za-z][a-z-]*|(^| )--[a-z-]*' | tr -d ' ' | sed 's/^-*//' | sort -u >"$tmp/man"
ok "mrrun(1) and --help name the same options" diff "$tmp/help" "$tmp/man"
done_testing
