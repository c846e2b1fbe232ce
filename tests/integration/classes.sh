#!/usr/bin/env bash
# The service levels that fabricd gives a job are seen in the packets: per virtual lane, on the simulated ports.
. "$(dirname "$0")/lib.sh"
fabricds etc/policies/simple.yaml

vls() { # VLs with more than BYTES sent by h1 while CMD runs: vls BYTES CMD...
  local min=$1
  shift
  simfab status --counters >"$tmp/c0"
  "$@" >"$tmp/cmd" 2>&1 || { cat "$tmp/cmd" >&2; echo failed; return; }
  simfab status --counters >"$tmp/c1"
  lanes "$min"
}
np() { mrrun -n 2 --hosts h1,h2 --job-id "$1" NPmpich2 -o "$tmp/np" -l "$2" -u "$2" -p 0 -n 10; }

normal=$(vls 1000000 np plain 1048576)
not_ok "bulk of the default class travels somewhere" test -z "$normal" -o "$normal" = failed
for h in h1 h2; do ok "job set on $h" ctl $h job set vip urgent --user "$(id -u)"; ok "job set on $h" ctl $h job set slow batch --user "$(id -u)"; done
urgent=$(vls 1000000 np vip 1048576)
batch=$(vls 1000000 np slow 1048576)
echo "# bulk lanes: default $normal, urgent $urgent, batch $batch"
not_ok "urgent bulk takes other lanes than the default's" test "$urgent" = "$normal" -o "$urgent" = failed
not_ok "batch bulk takes other lanes than the default's" test "$batch" = "$normal" -o "$batch" = failed
not_ok "batch and urgent differ" test "$batch" = "$urgent"
is "urgent bulk is spread over two lanes, as the policy says" "$(tr ',' '\n' <<<"$urgent" | wc -l)" 2
small=$(vls 200 np vip 64)
not_ok "urgent small messages travel beside its bulk, not on it" test "$small" = "$urgent" -o -z "$small"
ok "the job is back in its default class" ctl h1 job del vip
ok "on both hosts" ctl h2 job del vip
is "and back on the default's lanes" "$(vls 1000000 np vip 1048576)" "$normal"
done_testing
