#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fabricd with the real opensm on ibsim, an opinion about ports that is not ours. ibsim does not keep VLHighLimit.

. "$(dirname "$0")/lib.sh"
if ! command -v ibsim >/dev/null || ! command -v opensm >/dev/null; then
    skip_all "ibsim or opensm is not installed"
fi
PRELOAD=$(ls /usr/lib/*/umad2sim/libumad2sim.so /usr/lib/umad2sim/libumad2sim.so 2>/dev/null | head -1)
# under the address sanitizer: libumad2sim reads beyond its own blocks
echo 'interceptor_via_lib:libumad2sim' >asan.supp
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}suppressions=$tmp/asan.supp
export IBSIM_SOCKNAME="fabricd-test-$$" OSM_CACHE_DIR=$tmp OSM_TMP_DIR=$tmp

cp "$top/etc/policies/simple.yaml" .
cat >net <<END
Switch 8 "Switch1"
[1] "Hca1"[1]
[2] "Hca3"[1]
[3] "Switch2"[3]
[5] "Switch2"[5]

Switch 8 "Switch2"
[1] "Hca2"[1]
[2] "Hca4"[1]
[3] "Switch1"[3]
[5] "Switch1"[5]

Hca 2 "Hca1"
[1] "Switch1"[1]

Hca 2 "Hca2"
[1] "Switch2"[1]

Hca 2 "Hca3"
[1] "Switch1"[2]

Hca 2 "Hca4"
[1] "Switch2"[2]
END
cat >opensm.conf <<END
# the administrator's line
force_log_flush TRUE
sweep_interval 10
qos FALSE
END
cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm:
  config: $tmp/opensm.conf
  pid_file: $tmp/opensm.pid
verify: {high_limit: false, timeout: 15, interval: 0}
END

on() # on HOST COMMAND...: a program on a host of ibsim; becomes it
{
    local first
    SIM_HOST=$1
    shift
    export SIM_HOST
    # a program built with the address sanitizer wants its runtime in front of everything
    first=$(ldd "$(command -v "$1")" | awk '/libasan/ { print $3 ":" }')
    LD_PRELOAD=$first$PRELOAD exec "$@"
}

ibsim -s -n net >ibsim.log 2>&1 &
started
ok "ibsim is up" wait_for 10 grep -q 'simulator ready' ibsim.log
(on Hca1 opensm -F "$tmp/opensm.conf" -f "$tmp/opensm.log" >opensm.out 2>&1) &
started
echo $! >opensm.pid
ok "opensm brings the subnet up" wait_for 20 grep -q 'SUBNET UP' opensm.log
(on Hca1 fabricd --config fabricd.yaml >fabricd.log 2>&1) &
started
ok "fabricd serves its socket" wait_for 10 fabricctl status

ok "there is no policy yet" status_has '^policy: .*state: none'
ok "a policy is applied and verified" fabricctl policy apply simple.yaml
ok "status says so: 6 nodes, 12 ports" status_has '^policy: .*state: verified, nodes: 6, ports: 12, differences: 0'
ok "the administrator's lines are kept" grep -q "^# the administrator's line" opensm.conf
ok "opensm's file says qos TRUE once" test "$(grep -c '^qos ' opensm.conf) $(grep '^qos ' opensm.conf)" = "1 qos TRUE"

smpquery_says() # the table of a port as infiniband-diags reads it
{
    (on Hca2 smpquery "$@") 2>&1
}
sl2vl_is() { smpquery_says -D SL2VL 0 | tee "$tmp/q" | grep -q '0| 4| 1| 2| 5| 0| 3| 3| 0'; }
ok "smpquery agrees about SL2VL of another host" sl2vl_is

cp opensm.conf before.conf
printf 'version: 1\nclases:\n  - {name: a, share: 10}\njobs: {default: a}\n' >bad.yaml
ok "a bad policy exits 2" exits 2 fabricctl policy apply bad.yaml
ok "and leaves opensm's configuration alone" cmp before.conf opensm.conf

sed 's/vls: 8/vls: 15/' simple.yaml >toomany.yaml
ok "a policy with more lanes than the ports have is refused" exits 2 fabricctl policy apply toomany.yaml
ok "and leaves opensm's configuration alone, too" cmp before.conf opensm.conf

sed 's/share: 60/share: 40/; s/priority: low/priority: normal/' simple.yaml >second.yaml
ok "a second policy is applied and verified" fabricctl policy apply second.yaml
ok "the generation has gone up" status_has '^policy: .*generation: 2, state: verified'

done_testing
