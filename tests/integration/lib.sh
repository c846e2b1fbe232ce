# SPDX-License-Identifier: BSD-3-Clause
# Sourced by scripts of this folder that run inside a fabric of two hosts with two rails, which it starts, with a fabricd
# on each. They stand at the root of the sources.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
if [ -z "${SIMFAB_DIR:-}" ]; then
  rm -rf "$tmp" # exec leaves no trap to do it
  exec simfab run --topology two-hosts-two-rails -- bash "$0"
fi
export MRMPI_FABRICD_SOCKET=$SIMFAB_DIR/fabricd-%h.sock

ctl() { local h=$1; shift; fabricctl --socket "$SIMFAB_DIR/fabricd-$h.sock" "$@"; } # HOST ARGUMENTS of fabricctl

# fabricds [POLICY]: a fabricd on each host, until the end; with a policy that of h1 has the subnet manager.
# That of h2 is $last_fabricd. Waits until they answer.
fabricds() {
  local h
  for h in h1 h2; do
    printf 'state: %s\nsocket: %s\n' "$tmp/state-$h" "$SIMFAB_DIR/fabricd-$h.sock" >"$tmp/$h.yaml"
    [ -z "${1:-}" ] || echo "policy: $PWD/$1" >>"$tmp/$h.yaml"
    [ $h = h1 ] && [ -n "${1:-}" ] && cat >>"$tmp/$h.yaml" <<'YAML'
opensm:
  config: $SIMFAB_DIR/opensm/opensm.conf
  pid_file: $SIMFAB_DIR/opensm/opensm.pid
  restart: simfab opensm restart
YAML
    simfab exec --real-clock $h -- fabricd --config "$tmp/$h.yaml" >"$tmp/$h.log" 2>&1 &
    last_fabricd=$!
    on_exit "kill $last_fabricd 2>/dev/null; wait $last_fabricd 2>/dev/null"
  done
  for _ in $(seq 100); do [ -S "$SIMFAB_DIR/fabricd-h1.sock" ] && [ -S "$SIMFAB_DIR/fabricd-h2.sock" ] && break; sleep 0.1; done
  [ -z "${1:-}" ] || ok "the policy is applied and verified" ctl h1 policy apply "$1"
}

# lanes BYTES: VLs over which h1 has sent more than so many between the two times that counters were kept, $tmp/c0 and c1
lanes() {
  awk -v min="$1" -v first="$tmp/c0" '$1 != "h1" {next}
    {vl = ""; for (i = 1; i < NF; i++) {if ($i == "vl") vl = $(i + 1); if ($i == "xmit_data") x = $(i + 1)}}
    FILENAME == first {was[$2, vl] = x; next}
    {sum[vl] += x - was[$2, vl]}
    END {for (v = 0; v < 15; v++) if (sum[v] > min) printf "%s%d", sep++ ? "," : "", v}' "$tmp/c0" "$tmp/c1"
}
