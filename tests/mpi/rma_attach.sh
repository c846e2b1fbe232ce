#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory that is attached to windows between hosts: written and read by RDMA while its owner sleeps; and when it has been
# detached, or attached anew, and the origin has not heard of that: since nothing leaves the target for 10 ms.
# timeout: 300
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

job() { # RAILS KINDS WHAT
  local command="simfab fault link 'h2 mlx5_0' 1 loss_out=1 for=10ms nowait && simfab fault link 'h2 mlx5_1' 1 loss_out=1 for=10ms nowait"
  rm -f "$tmp/told"
  MRMPI_RAILS_MAX=$1 MRMPI_LINKS=$2 MRMPI_LEAKS=yes MRMPI_LOG_LEVEL=1 timeout -k 5 100 simfab run --topology "$topology" --model hdr -- \
    mrrun -n 2 --ppn 1 --stats "$BUILD/tests/mpi/rma_attach" "$3" "$tmp" "$command" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | tail -n 30
  [ $rc = 0 ] && ! grep -q 'leak:' "$tmp/out"
}

# The same, until the origin has used old keys once: on a machine with other work 10 ms may be over before it does.
old_keys() { # RAILS WHAT
  local i
  for i in 1 2 3; do
    job "$1" auto "$2" || return 1
    [ "$(counted detached)" = 0 ] || return 0
  done
  return 1
}

# where the allocator is a sanitizer's nothing stays registered, and what is short goes in packets
kept=yes
case $(sanitizers) in *address*) kept= ;; esac

for rails in 1 2; do
  [ -z "$kept" ] || ok "$rails: a target that sleeps is written and read" job $rails auto asleep
  [ -z "$kept" ] || ok "$rails: so are two regions of it, in turn" job $rails auto regions
  ok "$rails: memory that is attached anew is written and read by old keys, not what was there" old_keys $rails anew
  ok "$rails: memory that is detached is not written by old keys" old_keys $rails gone
  ok "$rails: words in lists are written to memory that is attached anew, not to what was there" old_keys $rails anew-words
  ok "$rails: nor to memory that is detached" old_keys $rails gone-words
done
for kinds in uc ud; do
  ok "$kinds: memory that is attached anew" job 2 $kinds anew
  ok "$kinds: memory that is detached" job 2 $kinds gone
  is "there are no keys" "$(counted detached)" 0
done
done_testing
