#!/usr/bin/env bash
# Programs that want the connection manager of the kernel (rdma_cm): simulated hosts do not have it, and the programs
# must say so and end. What needs no connection still works: libfabric lists the adapters.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
on_exit fabric_end

# TEXT CMD...: ends by itself, with an exit status that is neither success nor a signal, and says TEXT
refused() {
  local text=$1 rc
  shift
  command -v "$1" >/dev/null || { ok "$1 # SKIP not installed" true; return; }
  timeout 30 simfab exec h1 -- "$@" >"$tmp/out" 2>&1 </dev/null
  rc=$?
  ok "$*: fails, and not by a signal" [ $rc -ge 1 -a $rc -ne 124 -a $rc -ne 134 -a $rc -ne 139 ]
  like "$*: says why" "$text" "$tmp/out"
}

ok "the subnet comes up" fabric hdr
if command -v fi_info >/dev/null; then
  simfab exec h1 -- fi_info -p verbs >"$tmp/out" 2>&1
  is "fi_info -p verbs ends well" $? 0
  like "it lists the first adapter" 'domain: mlx5_0$' "$tmp/out"
  like "and the second, with datagrams" 'domain: mlx5_1-dgram' "$tmp/out"
  refused 'fi_getinfo' fi_info -p 'verbs;ofi_rxm' # which connects by rdma_cm
  port=$(free_port)
  timeout 30 simfab exec h1 -- fi_pingpong -p verbs -e dgram -B $port -I 10 -S 64 >"$tmp/server" 2>&1 </dev/null &
  server=$!
  until_listening $port $server
  timeout 30 simfab exec h2 -- fi_pingpong -p verbs -e dgram -P $port -I 10 -S 64 localhost >"$tmp/client" 2>&1 </dev/null
  ok "fi_pingpong over datagrams, whose event queues want rdma_cm too: the client fails" [ $? -ne 0 ]
  wait $server
  rc=$?
  ok "and so does the server, neither by a signal" [ $rc -ge 1 -a $rc -lt 124 ]
  like "for want of an event channel" 'fi_eq_open.*No such file' "$tmp/server"
else
  ok "libfabric's tools # SKIP not installed" true
fi
refused 'RDMA CM event channel' rping -s -a 127.0.0.1
refused 'RDMA CM event channel' rping -c -a 127.0.0.1 -C 1
refused 'RDMA CM event channel' ucmatose
refused 'RDMA CM event channel' udaddy
refused 'rdma_create_ep' rdma_server
fabric_end
done_testing
