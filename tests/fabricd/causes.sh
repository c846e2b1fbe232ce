#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each failure of fabricctl on a host without adapter, without opensm, without rights: one cause, once, and the next
# step; warnings of a policy once.

. "$(dirname "$0")/lib.sh"
unset SIMFAB_DIR SIM_HOST LD_PRELOAD
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
  skip_all "this host has an adapter"
fi
sed 's/share: 60/share: 50/' "$top/etc/policies/simple.yaml" >policy.yaml
printf 'policy: %s\nstate: %s\nsocket: %s\nopensm: {config: %s}\n' "$tmp/policy.yaml" "$tmp/state" "$tmp/fabricd.sock" \
  "$tmp/opensm.conf" >manager.yaml
printf 'state: %s\nsocket: %s\n' "$tmp/state2" "$tmp/node.sock" >node.yaml
fabricd --config manager.yaml 2>manager.log &
started
fabricd --config node.yaml 2>node.log &
started
ok "a manager" wait_for 10 fabricctl status
ok "a node" wait_for 10 fabricctl --socket node.sock status

# says TEXT WORD...: stdout and stderr of fabricctl, in their order
says() {
  local got
  got=$(fabricctl "${@:2}" 2>&1)
  [ "$got" = "$1" ] || { printf '%s\n' "$got" | sed 's/^/got: /'; return 1; }
}
warning="policy.yaml:8:3: warning: the shares add up to 90; the other 10 are divided in the same proportion"
unseen="the fabric cannot be looked at: this host has no InfiniBand adapter, or its driver is not loaded"
stays="fabricctl: not applied; nothing was changed"
ok "check warns once" says "$warning
policy.yaml: good: 3 classes, 8 data VLs, lmc 0" policy check policy.yaml
for socket in fabricd.sock node.sock; do
  ok "apply warns once, and gives the cause once ($socket)" says "$warning
$unseen
$stays" --socket $socket policy apply policy.yaml
  ok "a dry run, too" says "$warning
$unseen
$stays" --socket $socket policy apply policy.yaml --dry-run
  ok "diff, too" says "$warning
$unseen
fabricctl: not done" --socket $socket policy diff policy.yaml
  ok "verify, too" says "$unseen
fabricctl: not done" --socket $socket policy verify
  ok "paths" says "fabricctl: not done: no InfiniBand port of this host is active (ibstat tells)" --socket $socket paths a b
  ok "forget" says "no class 'gold' has service levels
fabricctl: not done" --socket $socket policy forget gold
  ok "a generation" says "fabricctl: not done: no such generation is kept; 'fabricctl policy history' lists them" \
    --socket $socket policy show 3
  ok "back to a generation" says "generation 7 is not kept: fabricctl policy history lists those that are kept
fabricctl: refused; nothing was changed" --socket $socket policy rollback 7
done
ok "without opensm the manager rolls nothing back" says "no opensm that reads $tmp/opensm.conf runs here: start it and apply again, or apply on the host where it runs
$stays" policy rollback 0
ok "nor does a node" says "fabricd.yaml names no opensm: roll back on the host that manages the subnet
fabricctl: refused; nothing was changed" --socket node.sock policy rollback 0
ok "programs get the warning once, too" says \
  "$stays
{\"exit\": 1, \"error\": \"not done\", \"messages\": [\"$warning\", \"$unseen\"]}" policy apply policy.yaml --json
sed 's/share: 10/share: 70/' policy.yaml >wrong.yaml
ok "an error is given once, without the daemon" says \
  "wrong.yaml:16:12: error: the shares add up to more than 100 with class 'batch' (80 before it, 150 with it)" \
  policy apply wrong.yaml

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 "$tmp"
  cp "$BUILD/bin/fabricctl" .
  other() { setpriv --reuid 65534 --regid 65534 --clear-groups "$tmp/fabricctl" "$@" 2>&1; }
  for words in "policy apply policy.yaml" "policy diff policy.yaml" "policy verify" "policy rollback" "policy history" \
    "policy show 3" "policy forget urgent" "rail drain mlx5_0/1" "job set 4 urgent --user nobody" "job del 4"; do
    # shellcheck disable=SC2086
    is "another user: $words" "$(other $words)" "fabricctl: only root and the daemon's own user may do that"
  done
  mkdir -m 700 closed
  is "a socket behind a closed directory" "$(other --socket "$tmp/closed/sock" status)" \
    "fabricctl: $tmp/closed/sock: this user may not go there; open the socket's directory, or give --socket PATH"
  if unshare -m true 2>/dev/null; then
    # an adapter, and no device for management datagrams
    unshare -m sh -c 'mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/mlx5_0 && exec "$@"' sh \
      fabricd --config node.yaml --state "$tmp/state3" --socket "$tmp/umad.sock" 2>umad.log &
    started
    wait_for 10 fabricctl --socket umad.sock status >/dev/null
    ok "without ib_umad the module is named" says \
      "the fabric cannot be looked at: this host has no device for management datagrams: is ib_umad loaded? modprobe ib_umad
fabricctl: not done" --socket umad.sock policy verify
  fi
fi
done_testing
