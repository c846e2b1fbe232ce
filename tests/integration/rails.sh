#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Rails that are drained, and rails that lose packets, under a running job with default settings: it leaves them and
# comes back. Figures are simulated, but when fabricd looks is a matter of real time.
# timeout: 300
. "$(dirname "$0")/lib.sh"
. tests/integration/rails-lib.sh
cp etc/policies/simple.yaml "$tmp/hold.yaml"
echo 'health: {hold: 1}' >>"$tmp/hold.yaml" # so that it need not be waited for so long
fabricds "$tmp/hold.yaml"

is "rails are healthy at the beginning" "$(health h1 mlx5_0) $(health h2 mlx5_1)" "healthy healthy"
not_ok "a rail that is not there cannot be drained" ctl h1 rail drain mlx5_7/1
begin 1048576 4
phase 1 0.8
phase 2 0
ok "a rail is drained under a running job" ctl h1 rail drain mlx5_1
is "it says so" "$(health h1 mlx5_1)" drained
phase 3 0.3
before=$(data mlx5_1)
phase 4 0.8
after=$(data mlx5_1)
phase 5 0
ok "nothing but small change goes over it then ($before MB, then $after)" test $((after - before)) -le 1
ok "and undrained" ctl h1 rail undrain mlx5_1
sleep 0.3
phase 6 0.8
phase 7 0
ok "the other host drains its end" ctl h2 rail drain mlx5_1/1
phase 8 0.3
before=$(data mlx5_1)
phase 9 0.5
ok "its peers leave it, too" test $(($(data mlx5_1) - before)) -le 1
ok "which it ends" ctl h2 rail undrain mlx5_1/1
phase 10 0.2
ok "the job ends well" end
both=$(figure 1 rate) one=$(figure 4 rate)
ok "two rails carry more than one ($both, $one MB/s)" at_least "$both" "$(times "$one" 1.8)"
ok "undrained, both are used again ($(figure 6 rate))" at_least "$(figure 6 rate)" "$(times "$both" 0.9)"
for p in 1 2 3 4 5 6 7 8 9 10; do [ "$(figure $p longest)" = "" ] || slow+="$(awk -v a="$(figure $p longest)" -v p=$p 'a > 20000 {print " " p ":" a}')"; done
is "no operation took over 20 ms in any phase" "${slow:-}" ""
is "nothing broke, moved or was sent again" "$(counted broken) $(counted moved) $(counted resent)" "0 0 0"

# a rail that loses packets
begin 1048576 4
phase 1 0.3
phase 2 0
simfab fault link "h2 mlx5_1" loss=0.01
ok "fabricd sees that a rail loses packets" wait_for 60 not_healthy h2 mlx5_1 # the library may leave it before it is bad
ctl h2 rail show mlx5_1/1 >"$tmp/show"
like "and tells why" '^why: .*(SymbolErrorCounter|PortRcvErrors) of (this port|the port at the other end): [0-9]+ in a minute, (with [0-9]+ packets that came|limit [0-9]+)' "$tmp/show"
like "and where the cable leads" '^far_port: .where: leaf1 port [0-9]+, SymbolErrorCounter: ' "$tmp/show"
sleep 0.2
phase 3 0.8
phase 4 0
simfab fault clear
ok "the rail is well again when the fault is over" wait_for 60 is_now h2 mlx5_1 healthy
wait_for 20 eval 'a=$(data mlx5_1); sleep 0.3; [ $(($(data mlx5_1) - a)) -gt 20 ]'
phase 5 0.5
ok "the job ends well" end
ok "the bandwidth with the bad rail is that of the other one ($(figure 3 rate) of $one MB/s)" at_least "$(figure 3 rate)" "$(times "$one" 0.97)"
ok "no operation took over 100 ms before it was seen ($(figure 2 longest) us)" at_most "$(figure 2 longest)" 100000
ok "nor over 20 ms after that ($(figure 3 longest) us)" at_most "$(figure 3 longest)" 20000
ok "both rails are used in the end ($(figure 5 rate) MB/s)" at_least "$(figure 5 rate)" "$(times "$both" 0.9)"
# a user complains of a rail
seen() { "$BUILD/tests/fabricd/fabric_tool" seen "$SIMFAB_DIR/fabricd-h1.sock" mlx5_1 1 "$1"; } # TIMES
is "what a user says of a rail is told to processes of that user" "$(seen 1)" "mlx5_0/1=1024 mlx5_1/1=0"
is "and nobody else calls it anything but healthy" "$(health h1 mlx5_1)" healthy
is "however often it is said" "$(seen 1000; health h1 mlx5_1)" "mlx5_0/1=1024 mlx5_1/1=0
healthy"
if [ "$(id -u)" = 0 ]; then
  chmod a+x "$SIMFAB_DIR" && cp "$BUILD/tests/fabricd/fabric_tool" "$tmp/tool" && chmod a+x "$tmp" "$tmp/tool"
  is "other users are not told" "$(setpriv --reuid 12345 --clear-groups "$tmp/tool" seen "$SIMFAB_DIR/fabricd-h1.sock" mlx5_0 1 0)" \
    "mlx5_0/1=1024 mlx5_1/1=1024"
fi
like "how many complain is shown" '^users_who_complain: 1$' <(ctl h1 rail show mlx5_1)
ok "an administrator ends it" ctl h1 rail undrain mlx5_1
is "for them, too" "$(seen 0)" "mlx5_0/1=1024 mlx5_1/1=1024"

# what holds when the daemon is started again
ctl h1 rail drain mlx5_1
wait_for 5 grep -q 'drained: true' "$tmp/state-h1/rails.yaml"
stop_fabricd h1
start_fabricd h1 "$tmp/hold.yaml"
wait_for 20 ctl h1 status
is "a drained rail stays so when the daemon is started again" "$(health h1 mlx5_1)" drained
like "and its history is there" 'state: drained, weight: 0, why: drained by an administrator' <(ctl h1 rail show mlx5_1)
like "and mrrun --explain" '^  rail mlx5_1 port 1 is drained: jobs leave it' <(mrrun --explain --hosts h1,h2)
like "top shows it" '^mlx5_1/1 .* drained 0.00$' <(simfab exec --real-clock h1 -- fabricctl --socket "$SIMFAB_DIR/fabricd-h1.sock" top --interval 1 --count 1)
done_testing
