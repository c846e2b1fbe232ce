#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One view of 64 simulated hosts, some of which do not answer, or not as they should. $DAEMONS of them (8) have a daemon of
# their own; the others answer with one of these, so that what is asked is as much as on 64. --all: a daemon on each of the 64.
[ "${1:-}" = --all ] && export DAEMONS=64

if [ -z "${SIMFAB_DIR:-}" ]; then
  exec "$BUILD/bin/simfab" run --topology <("$BUILD/bin/simfab" topology fat-tree --hosts 64) -- bash "${BASH_SOURCE[0]}"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
daemons=${DAEMONS:-8}
mapfile -t all < <(seq -f 'h%02g' 64)
hosts=${all[*]:0:daemons}
state() { cluster=$(fabricctl cluster status --launcher "$tmp/launch" "$@" 2>err); } # the answer, and its exit status
view() { # STATUS WORD...: sets $cluster
  local want=$1 got=0
  shift
  state "$@" || got=$?
  [ "$got" = "$want" ] || { echo "exit status $got, expected $want"; cat err; printf '%s\n' "$cluster"; return 1; }
}
counts() { sed -nE 's/^(asked|same|behind|ahead|other|not_verified|unreachable): ([0-9]+)$/\2/p' <<<"$cluster" | xargs; }
of() { grep -E -- "^  - \{host: $1, " <<<"$cluster"; } # HOST
told() { of "$1" | grep -Eq -- "$2" || { of "$1"; return 1; }; } # HOST REGEX

# a launcher as ssh is one; the file as/HOST says how a host misbehaves
mkdir as
cat >launch <<END
#!/bin/bash
host=\$1 number=\$((10#\${1#h})); shift
[ "\$*" = "fabricctl status" ] || exit 3
[ ! -e "$tmp/as/\$host" ] || . "$tmp/as/\$host"
FABRICD_SOCKET=$SIMFAB_DIR/fabricd-\$(printf h%02d \$(((number - 1) % $daemons + 1))).sock exec ${DAEMONS:+simfab exec --real-clock "\$host" --} "\$@"
END
chmod +x launch

ok "opensm has the subnet up" simfab opensm wait
manager=$(for h in $hosts; do [ ! -e "$SIMFAB_DIR/opensm/$h.pid" ] || echo "$h"; done)
for h in $hosts; do start "$h"; done
for h in $hosts; do wait_for 60 on "$h" status; done
ok "without a policy nobody has one" view 1 h01 h02
told h01 'policy: not verified, .*generation: 0, state: none' && ok "which is told" true || ok "which is told" false
cp "$top/etc/policies/simple.yaml" "$policy"
ok "a policy is applied" on "$manager" policy apply "$policy"
ok "the daemons follow it" wait_for 60 verified 1
ok "all 64 hosts have it" view 0 "${all[@]}"
is "counted" "$(counts)" "64 64 0 0 0 0 0"
is "each once" "$(grep -c '^  - {host: h[0-9]*, policy: same, role: .*, generation: 1, state: verified}' <<<"$cluster")" 64
is "one of their daemons manages" "$(grep -c 'role: manager' <<<"$cluster")" $((64 / daemons))
like "the policy is named" '^digest: "[0-9a-f]{16}"$' <(printf '%s\n' "$cluster")
ok "in JSON" sh -c "fabricctl --json cluster status --launcher '$tmp/launch' h03 | python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)[\"hosts\"][0][\"policy\"] != \"same\")'"

echo 'echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255' >as/h10
echo 'sleep 1000 & exec sleep 1000' >as/h11
echo 'exec sleep 1000 >&- 2>&-' >as/h12
echo 'head -c 3000000 /dev/zero; while echo "policy: {generation: 1, state: verified}"; do sleep 0.1; done' >as/h13
ok "hosts that do not answer" view 6 --timeout 5 "${all[@]}"
is "are counted" "$(counts)" "64 60 0 0 0 0 4"
is "and come first" "$(sed -nE 's/^  - \{host: (h[0-9]+),.*/\1/p' <<<"$cluster" | head -n 4 | xargs)" "h10 h11 h12 h13"
ok "the launcher's own words" told h10 'why: "ssh: connect to host h10 port 22: No route to host"'
ok "one that says nothing" told h11 'policy: unreachable, why: "?no answer within 5 s"?'
ok "one that has closed its output" told h12 'why: "?no answer within 5 s"?'
ok "and one without an end" told h13 'why: "?no answer within 5 s"?'
left() { grep -lzx "$tmp/launch" /proc/[0-9]*/cmdline 2>/dev/null; }
not_ok "nothing of them is left" left
begun=$(date +%s)
echo 'exec sleep 1000' >as/all
for h in "${all[@]}"; do cp as/all as/$h.now; mv as/$h.now as/$h; done
rm as/all
ok "if none answers it does not take longer" view 1 --timeout 2 "${all[@]}"
ok "than one of them: all are asked at a time" test $(($(date +%s) - begun)) -lt 40
is "all are unreachable" "$(counts)" "64 0 0 0 0 0 64"
rm as/*

answer() { # HOST TEXT: what fabricctl status prints there
  printf '%s\n' "$2" >"as/$1.text"
  echo "cat '$tmp/as/$1.text'; exit 0" >"as/$1"
}
digest=$(sed -nE 's/^digest: "(.*)"$/\1/p' < <(fabricctl cluster status --launcher "$tmp/launch" h01))
server='fabricd: {version: 1, role: server}'
answer h20 "$server
policy: {generation: 0, state: none}
follows: {file: /x, waiting: \"/x is not the policy: \\\"quoted\\\"\"}"
answer h21 "$server
policy: {generation: 1, state: differs, digest: \"$digest\"}"
answer h22 "$server
policy: {generation: 1, state: verified, digest: \"0123456789abcdef\"}"
answer h23 "$server
policy: {generation: 2, state: verified, digest: \"$digest\"}"
answer h24 "$(printf 'policy: {generation: \x1b[31m}')"
answer h25 "policy: [[[["
answer h26 ""
ok "hosts that have another" view 1 "${all[@]}"
is "are counted" "$(counts)" "64 57 1 1 1 1 3"
ok "one is behind, and says why" told h20 'policy: behind, role: server, generation: 0, state: none, why: "/x is not the policy: ..quoted..""?\}$'
ok "one's ports differ" told h21 'policy: not verified, role: server, generation: 1, state: differs'
ok "one has a policy of the same number" told h22 'policy: other policy, role: server, generation: 1, state: verified'
ok "one is ahead of the manager" told h23 'policy: ahead, role: server, generation: 2'
for h in h24 h25 h26; do ok "$h does not say what it should" told $h 'policy: unreachable, why: "?not an answer of fabricctl status'; done
not_ok "a host writes nothing to the terminal but text" grep -q "$(printf '\x1b')" <<<"$cluster"
ok "without a manager the newest counts" view 1 h23 h22
ok "so the other is behind" told h22 'policy: behind'

# hosts by Slurm
mkdir path
printf '#!/bin/sh\n[ "$*" = "-h -N -o %%N" ] && printf "h02\\nh01\\nh10\\nh01\\n"\n' >path/sinfo
printf '#!/bin/sh\n[ "$*" = "show hostnames h[01-03]" ] && printf "h01\\nh02\\nh03\\n"\n' >path/scontrol
chmod +x path/*
PATH=$tmp/path:$PATH
ok "without a name: those of Slurm" view 0
is "once each" "$(sed -nE 's/^  - \{host: (h[0-9]+),.*/\1/p' <<<"$cluster" | xargs)" "h01 h02 h10"
ok "and a list as Slurm writes it" view 0 'h[01-03]'
is "is three hosts" "$(counts)" "3 3 0 0 0 0 0"
printf '#!/bin/sh\necho "sinfo: error: no controller" >&2; exit 1\n' >path/sinfo
ok "without Slurm: an error" view 2
like "that says so" "sinfo of Slurm does not tell the hosts: sinfo: error: no controller" err
ok "a name that is an option is none" view 2 -- -oProxyCommand=x
ok "nor is one with a command" view 2 'h1;reboot'
ok "a launcher of no words" exits 2 fabricctl cluster status --launcher ' ' h01
ok "and one that is not there" exits 1 fabricctl cluster status --launcher "$tmp/none" h01
done_testing
