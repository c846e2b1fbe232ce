#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# Ranks under a real Slurm of two nodes: PMI-2, PMI-1 and PMIx; none of them; programs started by hand in an allocation.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
. "$here/slurm-cluster.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/../mrrun/lsan.supp:print_suppressions=0}
export LD_LIBRARY_PATH=$BUILD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export client=$BUILD/tests/mrrun/test_launch_client tmp
slurm_or_skip
ok "a Slurm of two nodes is up" slurm_start || done_testing

slurm() { timeout -k 5 90 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
worlds() { sort "$tmp/out" | sed 's/ job [^ ]*//'; }

# ---- who is who
four="rank 0/4 local 0/2 nodes 2 node n1 map 0,0,1,1 peers 0,1
rank 1/4 local 1/2 nodes 2 node n1 map 0,0,1,1 peers 0,1
rank 2/4 local 0/2 nodes 2 node n2 map 0,0,1,1 peers 2,3
rank 3/4 local 1/2 nodes 2 node n2 map 0,0,1,1 peers 2,3"
cyclic="rank 0/4 local 0/2 nodes 2 node n1 map 0,1,0,1 peers 0,2
rank 1/4 local 0/2 nodes 2 node n2 map 0,1,0,1 peers 1,3
rank 2/4 local 1/2 nodes 2 node n1 map 0,1,0,1 peers 0,2
rank 3/4 local 1/2 nodes 2 node n2 map 0,1,0,1 peers 1,3"
block=(-N 2 -n 4 --ntasks-per-node=2)
slurm srun --mpi=pmi2 "${block[@]}" "$client"
is "pmi2: four ranks on two nodes exchange addresses" "$? $(worlds)" "0 $four"
slurm srun --mpi=pmi2 "${block[@]}" -m cyclic "$client"
is "pmi2: ranks dealt out to the nodes in turn" "$? $(worlds)" "0 $cyclic"
MRMPI_LAUNCHER=pmi1 slurm srun --mpi=pmi2 "${block[@]}" "$client"
is "PMI-1 by the same plugin" "$? $(worlds)" "0 $four"
for protocol in pmi2 pmi1; do # PMI-1 of Slurm reads nothing of a rank at a fence
  MRMPI_LAUNCHER=$protocol MRMPI_LAUNCHER_TIMEOUT_S=1 slurm srun --mpi=pmi2 -N 2 -n 2 "$BUILD/tests/launch/limits" late 3
  is "$protocol: a rank that is later than a launcher may be silent is waited for" "$? $(grep -c 'no error$' "$tmp/out")" "0 2"
done
like "with a warning where the launcher does not say that it lives" 'warning: rank 0 has waited 1 s \(MRMPI_LAUNCHER_TIMEOUT_S\) for Slurm.s srun \(PMI-1\)' "$tmp/err"
slurm srun --mpi=pmix "${block[@]}" "$client"
is "pmix: four ranks on two nodes exchange addresses" "$? $(worlds)" "0 $four"
slurm srun --mpi=pmix "${block[@]}" -m cyclic "$client"
is "pmix: ranks dealt out to the nodes in turn" "$? $(worlds)" "0 $cyclic"
slurm srun --mpi=pmi2 -n 2 "$client"
is "ranks of a step know it by one name" "$(grep -o 'job [0-9.]*' "$tmp/out" | sort -u | wc -l)" 1

# ---- no PMI: not two jobs of one rank each
slurm srun --mpi=none -n 2 "$client"
is "none: MPI does not start" "$(($? != 0)) $(grep -c '^rank' "$tmp/out")" "1 0"
like "launcher and remedy are told" "Slurm's srun started this process as one of several, .*srun --mpi=pmix or srun --mpi=pmi2" "$tmp/out"
slurm srun --mpi=none -n 2 "$BUILD/tests/mpi/env"
like "by MPI_Init, too" "MPI_Init(_thread)? failed: .*Slurm's srun started this process as one of several" "$tmp/err"
slurm srun --mpi=none -n 1 "$client"
is "none, one task: rank 0 of 1" "$? $(cut -d' ' -f1-4 "$tmp/out")" "0 rank 0/1 local 0/1"
MRMPI_LAUNCHER=none slurm srun --mpi=none -n 2 "$client"
is "MRMPI_LAUNCHER=none: two processes of their own" "$? $(cut -d' ' -f1-2 "$tmp/out" | tr '\n' ' ')" "0 rank 0/1 rank 0/1 "

# ---- how steps end
slurm srun --mpi=pmi2 "${block[@]}" "$client" abort:1:42
not_ok "pmi2: abort ends the step" test $? -eq 0
like "rank, code and reason are told" "rank 1 aborted the job with code 42: told to" "$tmp/err"
slurm srun --mpi=pmi2 "${block[@]}" "$client" late:1:9
is "pmi2: a code after MPI_Finalize is the step's status" $? 9

# ---- started by hand in an allocation
cat >"$tmp/by-hand" <<'SH'
#!/bin/bash
$client | sed 's/^/alone /'
mrrun -n 2 $client | sed 's/^/mrrun /'
mpiexec.hydra -launcher fork -hosts 127.0.0.1 -n 2 $client | sed 's/^/hydra /'
mpiexec.hydra -launcher fork -hosts 127.0.0.1 -n 1 $client | sed 's/^/hydra1 /'
srun --mpi=pmi2 -n 1 bash -c 'mrrun -n 2 $client' | sed 's/^/step /'
SH
chmod +x "$tmp/by-hand"
by_hand="alone rank 0/1;hydra rank 0/2;hydra rank 1/2;hydra1 rank 0/1;mrrun rank 0/2;mrrun rank 1/2;step rank 0/2;step rank 1/2;"
slurm salloc -n 2 "$tmp/by-hand"
is "in a shell of salloc" "$(cut -d' ' -f1-3 "$tmp/out" | sort | tr '\n' ';')" "$by_hand"
slurm sbatch -n 2 --wait -o "$tmp/batch" "$tmp/by-hand"
is "in a batch job's script" "$(cut -d' ' -f1-3 "$tmp/batch" | sort | tr '\n' ';')" "$by_hand"
slurm salloc -N 2 -n 4 --ntasks-per-node=2 mpiexec.hydra -n 4 "$client"
is "Hydra takes the nodes of an allocation" "$? $(worlds)" "0 $four"
slurm salloc -N 2 -n 4 --ntasks-per-node=2 mrrun -n 4 "$client"
is "so does mrrun" "$? $(worlds)" "0 $four"

# ---- MPI programs; two nodes need a network, which simulated hosts have
export MRMPI_LEAKS=yes
mpi() { # PLUGIN N PROGRAM [ARGS]
  local plugin=$1 n=$2 program=$3
  shift 3
  slurm srun -Q --mpi="$plugin" -N 1 -n "$n" --overcommit "$BUILD/tests/mpi/$program" "$@"
  local rc=$?
  is "$program${*:+ $*}, $plugin, $n ranks" "$rc $(cat "$tmp/out" "$tmp/err" | head -n 5)" "0 "
}
for p in env comm coll session p2p_sizes p2p_modes; do mpi pmi2 4 $p; done
for p in env coll session p2p_sizes; do mpi pmix 4 $p; done
# libpmix forgets memory when it starts again, and by default what it knew of each rank, which more than one node needs
if [ -z "$(sanitizers)" ]; then
  mpi pmix 2 session again
  PMIX_MCA_gds=hash mpi pmix 2 session again
  slurm srun --mpi=pmix "${block[@]}" "$client" again
  cat "$tmp/out" >>"$tmp/err"
  like "how MPI can start again under pmix is told" "Slurm's srun \(PMIx\).* PMIX_MCA_gds=hash" "$tmp/err"
fi

# ---- programs that start processes: Slurm starts none for them, mrrun does, in the step or, by srun, on other nodes
for plugin in pmix pmi2; do
  mpi $plugin 2 spawn some 2
  slurm srun -Q --mpi=$plugin -N 1 -n 2 --overcommit "$BUILD/tests/mpi/spawn" launcher mrrun
  is "$plugin: mrrun starts the processes" $? 0
  for node in n1 n2; do
    slurm salloc -Q -N 2 -n 4 --ntasks-per-node=2 srun -Q --mpi=$plugin -N 1 -n 1 "$BUILD/tests/mpi/spawn" on $node
    is "$plugin: on node $node of the allocation" $? 0
  done
  slurm srun -Q --mpi=$plugin -N 1 -n 2 --overcommit "$BUILD/tests/mpi/spawn" why
  like "$plugin: what cannot be started is an error that names Slurm" 'Slurm.s srun starts no further processes.*MPI_ERR_SPAWN' "$tmp/out"
done

cat >"$tmp/on-host" <<'SH'
#!/bin/bash
exec simfab exec h$((SLURM_NODEID + 1)) -- "$@"
SH
chmod +x "$tmp/on-host"
cat >"$tmp/sim" <<'SH'
for m in pmi2 pmix; do
  for p in coll p2p_modes; do
    timeout -k 5 120 srun -Q --mpi=$m -N 2 -n 4 --ntasks-per-node=2 "$tmp/on-host" "$BUILD/tests/mpi/$p" </dev/null >"$tmp/sim.out" 2>&1
    echo "$p $m $? $(head -n 3 "$tmp/sim.out")"
  done
done
MRMPI_STATS=1 MRMPI_LOG_LEVEL=2 timeout 60 srun --mpi=pmi2 -N 2 -n 4 --ntasks-per-node=2 "$tmp/on-host" "$BUILD/tests/mpi/coll" \
  2>&1 </dev/null | grep -o 'net_sent[ =][0-9]*' | head -n 1
SH
export BUILD
MRMPI_LOG_LEVEL=0 MRMPI_OVERSUBSCRIBED=0 timeout 300 simfab run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- \
  bash "$tmp/sim" >"$tmp/simulated" 2>&1
while read -r p m rc rest; do
  [[ $p == net_sent* ]] || is "$p, $m, on two simulated hosts" "$rc $rest" "0 "
done <"$tmp/simulated"
is "all of them ran" "$(grep -c ' pmi[2x] ' "$tmp/simulated")" 4
like "and the network carried them" '^net_sent[ =][1-9]' "$tmp/simulated"

# ---- nothing stays
servers=("${slurm_pids[@]}")
slurm_stop
alive() { local p; for p in "${servers[@]}" $(slurm_steps); do kill -0 "$p" 2>/dev/null && echo "$p"; done; }
is "nothing of the cluster runs on" "$(alive)" ""
done_testing
