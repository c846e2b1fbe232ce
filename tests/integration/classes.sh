#!/usr/bin/env bash
# The service levels that fabricd gives a job are seen in the packets: per virtual lane, on the simulated ports.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
if [ -z "${SIMFAB_DIR:-}" ]; then
  rm -rf "$tmp" # exec leaves no trap to do it
  exec simfab run --topology two-hosts-two-rails -- bash "$0"
fi
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock
for h in h1 h2; do
  printf 'policy: %s\nstate: %s\nsocket: %s\n' "$PWD/etc/policies/simple.yaml" "$tmp/state-$h" "$SIMFAB_DIR/fabricd-$h.sock" >"$tmp/$h.yaml"
  [ $h = h1 ] && cat >>"$tmp/$h.yaml" <<'YAML'
opensm:
  config: $SIMFAB_DIR/opensm/opensm.conf
  pid_file: $SIMFAB_DIR/opensm/opensm.pid
  restart: simfab opensm restart
YAML
  simfab exec --real-clock $h -- fabricd --config "$tmp/$h.yaml" >"$tmp/$h.log" 2>&1 &
  on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
done
for _ in $(seq 100); do [ -S "$SIMFAB_DIR/fabricd-h1.sock" ] && [ -S "$SIMFAB_DIR/fabricd-h2.sock" ] && break; sleep 0.1; done
ctl() { local h=$1; shift; fabricctl --socket "$SIMFAB_DIR/fabricd-$h.sock" "$@"; }
ok "the policy is applied and verified" ctl h1 policy apply etc/policies/simple.yaml

vls() { # VLs with more than BYTES sent by h1 while CMD runs: vls BYTES CMD...
  local min=$1
  shift
  simfab status --counters >"$tmp/c0"
  "$@" >"$tmp/cmd" 2>&1 || { cat "$tmp/cmd" >&2; echo failed; return; }
  simfab status --counters >"$tmp/c1"
  awk -v min="$min" -v first="$tmp/c0" '$1 != "h1" {next}
    {vl = ""; for (i = 1; i < NF; i++) {if ($i == "vl") vl = $(i + 1); if ($i == "xmit_data") x = $(i + 1)}}
    FILENAME == first {was[$2, vl] = x; next}
    {sum[vl] += x - was[$2, vl]}
    END {for (v = 0; v < 15; v++) if (sum[v] > min) printf "%s%d", sep++ ? "," : "", v}' "$tmp/c0" "$tmp/c1"
}
np() { mrrun -n 2 --hosts h1,h2 --job-id "$1" NPmpich2 -o "$tmp/np" -l "$2" -u "$2" -p 0 -n 10; }

normal=$(vls 1000000 np plain 1048576)
not_ok "bulk of the default class travels somewhere" test -z "$normal" -o "$normal" = failed
for h in h1 h2; do ok "job set on $h" ctl $h job set vip urgent; ok "job set on $h" ctl $h job set slow batch; done
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
