#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrrun --explain: settings with their origin, kinds of links, rules as they are compiled, budgets. Nothing is started.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
for v in $(compgen -e | grep '^MRMPI_'); do unset "$v"; done
unset SLURM_JOB_ID SIMFAB_DIR
explain() { timeout 20 mrrun --explain "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
setting() { sed -n "s/^  $1  *//p" "$tmp/out" | tr -s ' '; } # NAME: value and origin
rules() { sed -n 's/^ *\([0-9][0-9]*\)  /\1 /p' "$tmp/out" | tr '\n' ';'; }

ok "needs neither ranks nor a program" explain
is "says nothing on standard error" "$(cat "$tmp/err")" ""
is "has every setting of the library once" "$(sed -n 's/^  \(MRMPI_[A-Z_]*\) .*/\1/p' "$tmp/out")" \
  "$(sed -n 's/^    {"\(MRMPI_[A-Z_]*\)",.*/\1/p' "$(dirname "$0")/../../libmrmpi/base/config_table.c")"
is "with value and origin" "$(setting MRMPI_EAGER_MAX)" "8K default"
like "the job's name is made up" '^Job mrrun-[0-9]+: nothing is started' "$tmp/out"
like "rc alone, native" '^  rc  reliable connections: the adapter delivers, native$' "$tmp/out"
is "what that amounts to, as rules" "$(rules)" "1 rdma: rc;2 any: rc;"
like "which follows from the number of ranks" '^  \(auto: rc, and with more than 16384 ranks on other hosts, MRMPI_RC_PEERS by default, rc,ud\)$' "$tmp/out"
like "no budget of connections" '^  connections: to every rank of another host' "$tmp/out"
like "no fabricd" '^  fabricd at /run/fabricd/fabricd.sock (is not there|cannot be asked).*: all messages on service level 0$' "$tmp/out"
like "from where on messages are striped" '^  from 16K on: cut over the rails' "$tmp/out"

like "how small messages are spread" '^  small messages: fair: .* \(default\)$' "$tmp/out"
like "and large ones" '^  large messages: adaptive: .* \(default\)$' "$tmp/out"
ok "other policies" explain -x MRMPI_POLICY_SMALL=window:16 -x MRMPI_POLICY_LARGE=weighted:mlx5_0=4,mlx5_1=1
like "a window" '^  small messages: window:16: .* \(-x\)$' "$tmp/out"
like "weights" '^  large messages: weighted:mlx5_0=4,mlx5_1=1: .* \(-x\)$' "$tmp/out"
not_ok "one that is none" explain -x MRMPI_POLICY_LARGE=near
like "says which there are" '^  large messages: MPI_Init will fail: "near" is not one of fair .*eq4.*\(MRMPI_POLICY_LARGE\)$' "$tmp/out"

cost() { sed -n "s/^  $1  *\([0-9]*\) .*/\1/p" "$tmp/out"; } # NAME
explain
is "each cost of the model" "$(for c in copy_mbps register_ns register_byte_ps trip_ns post_ns page_ns; do cost $c; done | tr '\n' ' ')" \
  "12500 10500 15 1750 375 2000 "
like "which are defaults until ranks measure" '^  copy_mbps  *12500 MB/s  *that a processor copies \(default; ranks measure\)$' "$tmp/out"
like "the lengths that follow" '^    zero-copy sends with 24K or more under way; reads of messages in bursts from 64K on$' "$tmp/out"
like "and times inside a host" '^        1M +89\.13 +83\.89 +41\.94$' "$tmp/out"
ok "other costs" explain -x MRMPI_MODEL=copy_mbps=6250,trip_ns=3500
is "are in force" "$(cost copy_mbps) $(cost trip_ns) $(cost post_ns)" "6250 3500 375"
like "with their origin" '^  copy_mbps  *6250 MB/s  *that a processor copies -x$' "$tmp/out"
like "as the default is said" '^  post_ns  *375 ns  *posting .* \(default\)$' "$tmp/out"
like "and change what follows" '^        1M +178\.26 +167\.77 +83\.89$' "$tmp/out"
printf '# slow\ncopy_mbps=1250\n' >"$tmp/model"
ok "those of a file" explain -x "MRMPI_MODEL=@$tmp/model"
is "are in force, too" "$(cost copy_mbps)" 1250
not_ok "a cost that is none" explain -x MRMPI_MODEL=copy=1
like "says which there are" '^  ERROR: MRMPI_MODEL: "copy" is not a cost; costs are copy_mbps, .*; MPI_Init will fail$' "$tmp/out"
not_ok "a number that is none" explain -x MRMPI_MODEL=copy_mbps=fast
like "says which may be" '^  ERROR: MRMPI_MODEL: copy_mbps=fast: copy_mbps must be a whole number of MB/s from 100 to 100000; MPI_Init will fail$' "$tmp/out"
not_ok "a file that is not there" explain -x "MRMPI_MODEL=@$tmp/none"
like "says why" '^  ERROR: MRMPI_MODEL: .*/none cannot be read: No such file or directory; MPI_Init will fail$' "$tmp/out"
MRMPI_MODEL=trip_ns=never mrrun -n 1 "$BUILD/tests/mpi/p2p_ring" >"$tmp/out" 2>"$tmp/err"
not_ok "ranks refuse it, too" test $? = 0
like "in the same words" 'reading MRMPI_MODEL: trip_ns=never: trip_ns must be a whole number of ns from 0 to 10000000' "$tmp/err"

ok "nothing is started" explain -n 4 touch "$tmp/started"
not_ok "indeed" test -e "$tmp/started"
like "but told how many there would be" '^Job mrrun-[0-9]+, 4 ranks' "$tmp/out"

kinds_of() { explain "$@" && sed -n 's/^  \([ru][cd]\)  .*/\1/p' "$tmp/out" | tr '\n' ' '; } # OPTION...
is "a job as large as connections reach" "$(kinds_of -n 256 --hosts h1,h2)" "rc "
is "a larger one" "$(kinds_of -n 258 --hosts h1,h2)" "rc ud "
is "with ranks of which one is on a host of its own" "$(kinds_of -n 129 --ppn 64 --hosts h1,h2,h3)" "rc "
is "and one more" "$(kinds_of -n 130 --ppn 129 --hosts h1,h2)" "rc ud "
is "more ranks share an adapter" "$(kinds_of -n 300 --ppn 150 --hosts h1,h2)" "rc ud "
like "which is told" '^  connections: to 109 ranks of other hosts at most; all others by datagrams$' "$tmp/out"
is "fewer connections" "$(MRMPI_RC_PEERS=4 kinds_of -n 10 --hosts h1,h2)" "rc ud "

export MRMPI_LINKS=rc,ud MRMPI_RC_AFTER=16 MRMPI_STRIPE_MIN=64K
ok "origins" explain --job-id night.7 -x MRMPI_RC_PEERS=20 -x MRMPI_STRIPE_MIN --stats
is "environment" "$(setting MRMPI_LINKS)" "rc,ud environment"
is "-x with a value" "$(setting MRMPI_RC_PEERS)" "20 -x"
is "-x that passes one on" "$(setting MRMPI_STRIPE_MIN)" "64K environment"
is "--job-id" "$(setting MRMPI_JOBID)" "night.7 --job-id"
is "--stats" "$(setting MRMPI_STATS)" "yes --stats"
is "default" "$(setting MRMPI_SQ_DEPTH)" "64 default"
is "connections after so many packets are rules, too" "$(rules)" "1 rdma: rc;2 control|eager|piece count>=16: rc,ud;3 any: ud;4 any: rc,ud;"
like "budget" '^  connections: to 20 ranks of other hosts at most, after 16 packets or with a large message$' "$tmp/out"
like "datagrams are made reliable" '^  ud  datagrams made reliable: the receiver acknowledges$' "$tmp/out"
like "stripes" '^  from 64K on: cut over the rails' "$tmp/out"
SLURM_JOB_ID=4711 explain
is "a scheduler's job" "$(setting MRMPI_JOBID)" "4711 SLURM_JOB_ID"
SIMFAB_DIR=$tmp explain -n 2
is "what mrrun sets for simulated hosts" "$(setting MRMPI_OVERSUBSCRIBED)" "0 mrrun, for simulated hosts"

export MRMPI_RULES='eager size<=2K: uc,ud; size>1M class=urgent: rc # so
any: rc,ud'
ok "rules" explain
is "as compiled" "$(rules)" "1 eager size<=2K: uc,ud;2 size>=1048577 class=urgent: rc;3 any: rc,ud;"
like "with their size classes" '^  size classes: up to 2K, 1M, and what is longer$' "$tmp/out"
like "and what they name in vain" '^  uc is passed over: MRMPI_LINKS does not allow it$' "$tmp/out"
printf 'any: ud\n' >"$tmp/rules"
MRMPI_RULES=@$tmp/rules explain
is "those of a file" "$(rules)" "1 any: ud;"

MRMPI_RULES='any: rc; eager: xx' explain
is "rules that are wrong: status 1" $? 1
like "and the place" '^  ERROR: MRMPI_RULES: line 1, column 17: here comes a kind of link: rc, uc, ud or ring; MPI_Init will fail$' "$tmp/out"
MRMPI_RULES=@$tmp/none explain
is "a file that is not there: status 1" $? 1
MRMPI_LINKS=rc,xy explain
is "links that are wrong: status 1" $? 1
like "and why" '^  ERROR: MRMPI_LINKS=rc,xy is not auto, or a comma list' "$tmp/out"
MRMPI_EAGER_MAX=much MRMPI_LINK=ud explain
is "a bad value: the default is in force" "$? $(setting MRMPI_EAGER_MAX)" "0 8K default, since what the environment says is no value for it"
like "which is told" 'MRMPI_EAGER_MAX=much ignored: it must be a number of bytes' "$tmp/err"
like "as is a name that is none" 'MRMPI_LINK is not a setting of mrmpi; the nearest is MRMPI_LINKS' "$tmp/err"
MRMPI_RELIABLE=no explain
like "unsafe combinations are shown" '^  ud  datagrams, native: WHAT IS LOST IS LOST$' "$tmp/out"
explain --job-id 'a b'
is "a bad job id" $? 2
done_testing
