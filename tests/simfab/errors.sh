#!/usr/bin/env bash
# Wrong netlists, models and command lines: file, line and cause on stderr, exit status 2, and nothing starts.
. "$(dirname "$0")/../tap.sh"
export XDG_RUNTIME_DIR=$tmp/run
mkdir -m 700 "$XDG_RUNTIME_DIR"

# wrong TEXT REGEX FILE-ARGUMENTS: CMD must not run
wrong() {
  local text=$1 regex=$2
  shift 2
  simfab run "$@" -- touch "$tmp/started" >"$tmp/out" 2>&1
  is "$text: exit status" $? 2
  like "$text: says so" "$regex" "$tmp/out"
  [ ! -e "$tmp/started" ] && [ -z "$(ls -A "$XDG_RUNTIME_DIR")" ]
  tap_result $? "$text: nothing was started, nothing is left"
}
net() { cat >"$tmp/bad.net"; }
head='vendid=0x2c9
devid=0x1003
switchguid=0x10(10)
Switch 4 "S-10" # "sw"
'
h1='
caguid=0x20
Ca 2 "H-20" # "h1 mlx5_0"
'
h2='
caguid=0x30
Ca 1 "H-30" # "h2 mlx5_0"
'

net <<<"${head}[1] \"H-20\"[1]
[2] \"H-99\"[1]
${h1}[1] \"S-10\"[1]"
wrong "unknown node" "bad\.net:6:.*H-99" --topology "$tmp/bad.net"

net <<<"${head}[1] \"H-20\"[1]
[1] \"H-30\"[1]
${h1}[1] \"S-10\"[1]
${h2}[1] \"S-10\"[1]"
wrong "port used twice" "bad\.net:6: .*S-10.*used twice" --topology "$tmp/bad.net"

net <<<"${head}[1] \"H-20\"[1]
[2] \"H-30\"[1]
${h1}[1] \"S-10\"[1]
$h2"
wrong "a cable that dangles" "bad\.net:6: dangling: .*H-30" --topology "$tmp/bad.net"

net <<<"${head}[1] \"H-20\"[1]
${h1}[1] \"S-10\"[2]"
wrong "ends that contradict" "bad\.net:[0-9]+:.*" --topology "$tmp/bad.net"

net <<<"${head}[9] \"H-20\"[1]
${h1}[1] \"S-10\"[1]"
wrong "port out of range" "bad\.net:5:.*9" --topology "$tmp/bad.net"

net <<<"${head}[x] \"H-20\"[1]
$h1"
wrong "bad number" "bad\.net:5:" --topology "$tmp/bad.net"

net <<<""
wrong "empty file" "bad\.net:" --topology "$tmp/bad.net"

cat >"$tmp/good.net" <<<"${head}[1] \"H-20\"[1]
[2] \"H-30\"[1]
${h1}[1] \"S-10\"[1]
${h2}[1] \"S-10\"[2]"
printf 'name: x\nno_such_key: 4\n' >"$tmp/bad.yaml"
wrong "unknown key of a model" "bad\.yaml:2:1: .*no_such_key" --topology "$tmp/good.net" --model "$tmp/bad.yaml"
printf 'name: x\n  y: [\n' >"$tmp/bad.yaml"
wrong "a model that is no YAML" "bad\.yaml:[0-9]+" --topology "$tmp/good.net" --model "$tmp/bad.yaml"
wrong "missing topology" 'no/such.net: No such file' --topology /no/such.net
wrong "unknown name" 'nonesuch: no such file here, nor among the installed' --topology nonesuch
wrong "no topology" '\-\-topology FILE is required' --no-opensm
wrong "unknown option" 'usage: simfab run' --topology "$tmp/good.net" --nonsense
simfab run --topology "$tmp/good.net" >"$tmp/out" 2>&1
is "no CMD" $? 2
simfab nonsense >"$tmp/out" 2>&1
is "unknown subcommand" $? 2
like "is named" 'no subcommand "nonsense"' "$tmp/out"
for c in run exec status opensm; do
  simfab $c --help >"$tmp/out" 2>&1
  is "simfab $c --help" "$? $(head -n 1 "$tmp/out" | cut -d' ' -f1-3)" "0 usage: simfab $c"
done
undocumented() { # long options that --help tells and the manual page does not
  for c in run exec status opensm; do simfab $c --help; done | grep -oE -- '--[a-z][a-z-]+' | sort -u | while read -r o; do
    sed 's/\\-/-/g' "$(dirname "$0")/../../man/simfab.1" | grep -q -- "$o" || echo "$o"
  done
}
is "simfab(1) has every option" "$(undocumented)" ""
ok "the good netlist starts" simfab run --topology "$tmp/good.net" --no-opensm -- true
done_testing
