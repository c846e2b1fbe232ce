#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The policy language from outside: what fabricctl reads, its JSON schema, and the manual page beside both.

. "$(dirname "$0")/lib.sh"
schema() { python3 "$top/tests/fabricd/schema.py" "$@"; }

# ---- what is read
good=$top/etc/policies/simple.yaml
quick() { timeout 10 "$@" </dev/null; } # a reader that waits is not let wait
mkfifo fifo
quick fabricctl policy check fifo >out 2>&1
is "a FIFO is refused at once" "$? $(cat out)" "2 fabricctl: fifo: not a regular file; '-' reads standard input"
for f in /dev/zero /dev/null; do
  quick fabricctl policy check $f >out 2>&1
  is "so is $f" "$? $(cat out)" "2 fabricctl: $f: not a regular file; '-' reads standard input"
done
quick fabricctl policy check . >out 2>&1
is "and a directory" "$? $(cat out)" "2 fabricctl: .: Is a directory"
quick fabricd --test --config fifo >out 2>&1
is "fabricd's configuration, too" "$? $(cat out)" "2 fabricd: fifo: not a regular file"
is "'-' is standard input" "$(fabricctl policy check - <"$good")" "-: good: 3 classes, 8 data VLs, lmc 0"
is "of any kind" "$(cat "$good" | fabricctl policy plan - | md5sum)" "$(fabricctl policy plan "$good" | md5sum)"
echo 'version: 3' | fabricctl policy check - >out 2>&1
is "whose errors have a place" "$? $(cut -d: -f1-4 out)" "2 <stdin>:1:10: error"
yes '# long' | timeout 10 fabricctl policy check - >out 2>&1
is "and which has an end" "$? $(cat out)" "2 fabricctl: <stdin>: longer than a policy may be (64 KiB)"

# ---- the schema
fabricctl policy schema >schema.json
ok "fabricctl prints a JSON schema" schema check schema.json
is "make has made the same of it" "$(cmp schema.json "$BUILD/share/policy.schema.json" 2>&1)" ""
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$top/man/mrmpi-policy.5" | grep -v '^\.' >example.yaml
ok "etc/policies and the example of mrmpi-policy(5) are valid by it" \
  schema validate schema.json "$top"/etc/policies/*.yaml example.yaml

n=0
while IFS='|' read -r verdict class jobs others; do
  n=$((n + 1))
  printf '{version: 1, classes: [{name: a, share: 100%s}], jobs: {default: a%s}%s}\n' \
    "${class:+, $class}" "${jobs:+, $jobs}" "${others:+, $others}" >"case$n.yaml"
  wanted[n]=$verdict says[n]=${class:-${jobs:-$others}}
done <<'END'
good|lanes: 1
good|priority: 2
good|priority: high, lanes: 8
bad|priority: 4
bad|priority: urgent
good|ahead of: everything
bad|ahead of: all
bad|ahead of: bulk, priority: low
good|latency: 20us
bad|latency: 20
bad|latency: 20us, priority: normal
good|ratio: "100:200"
bad|ratio: "100/200"
bad|ratio: "100:200", latency: 5us
bad|lanes: 0
bad|lanes: 9
good|small: 512, medium: 2M
good|small: 8k, medium: [16K, 1048576]
bad|small: much
bad|small: 2000000
bad|medium: []
bad|medium: [2K, 4K, 8K]
bad|rails: {smal: near}
bad|prio: high
good||rules: []
good||rules: [{user: 1000, class: a}]
bad||rules: [{class: a}]
bad||rules: [{user: u}]
bad||rule: []
good|||vls: 15, mtu: 2048, limits: {high_limit: 0}, paths: {lmc: 3}
bad|||vls: 3
bad|||mtu: 1500
bad|||limits: {bulk_minimum: 51}
bad|||limits: {bulk_minimum: 20, high_limit: 2}
bad|||paths: {}
END
schema validate schema.json $(seq -f 'case%g.yaml' $n) >verdicts
for i in $(seq $n); do
  fabricctl policy check case$i.yaml >out 2>&1 && by_fabricctl=good || by_fabricctl=bad
  read -r by_schema _ < <(sed -n "${i}p" verdicts)
  is "fabricctl and the schema agree on: ${says[i]}" "$by_fabricctl $by_schema" "${wanted[i]} ${wanted[i]}"
done

# ---- the manual page
schema keys schema.json >schema.keys
schema page "$top/man/mrmpi-policy.5" >page.keys
ok "the schema has keys" grep -q '^classes\.share (1 to 100, required)$' schema.keys
is "mrmpi-policy(5) has every key, with its range and default, and no others" "$(diff schema.keys page.keys)" ""

# ---- predictions
plan() { fabricctl policy plan "$top/etc/policies/simple.yaml" "$@"; }
known=low=8,high=8,mtu=2048,rate=16000,hops=2,bus_read=1500,bus_write=1650
plan --json --fabric $known --load bulk --load many-to-one --load 'aggressor batch/8' >plan.json 2>plan.err
of_plan() { python3 -c "import json; p = json.load(open('plan.json')); print($1)"; }
is "three loads are predicted" "$(of_plan "[l['load'] for l in p['loads']]")" "['bulk', 'many-to-one', 'aggressor batch/8']"
is "each with its narrow place" "$(of_plan "[l['limit'] for l in p['loads']]")" "['sender', 'receiver', 'sender']"
is "bulk has its shares" "$(of_plan "[round(c['share']) for c in p['loads'][0]['classes']]")" "[60, 30, 10]"
is "the library divides a receiver's bus by shares" "$(of_plan "[round(c['share']) for c in p['loads'][1]['classes']]")" "[60, 30, 10]"
is "which is said" "$(of_plan "[l['paced'] for l in p['loads']], p['warnings']")" "[False, True, False] []"
is "an aggressor gets no more than its share" "$(of_plan "p['loads'][2]['classes'][2]['share'] < 12")" True
plan --json --fabric low=8,high=8,mtu=2048,rate=8000,hops=2,bus_read=876,bus_write=800 --load many-to-one >plan.json 2>plan.err
is "old adapters' gives every lane the same: they write" "$(of_plan "[round(c['share']) for c in p['loads'][0]['classes']]")" "[50, 25, 25]"
like "which is warned of" 'simple.yaml: warning: adapters take in 800 MB/s and their cables carry 1000' plan.err
is "in JSON, too" "$(of_plan "len(p['warnings'])")" 1
printf -- '- {class: urgent, sizes: [8, 64K], jobs: 2}\n- {class: batch, size: 1M}\n' >load.yaml
exits 2 plan --load load.yaml >out 2>&1
like "a load's errors are told by place" "^load.yaml:2:18: error: unknown key 'size' in a stream, did you mean 'sizes'" out
for wrong in "--load nobody" "--load /dev/zero" "--fabric mtu" "--fabric mtu=2048;" "--fabric lanes=8"; do
  ok "refused: $wrong" exits 2 plan $wrong
done
ok "check predicts nothing" exits 2 fabricctl policy check "$top/etc/policies/simple.yaml" --load bulk
refuses() { # OPTION COMMAND...: says so, and for which commands the option is
  local option=$1
  shift
  fabricctl --socket /nonexistent "$@" >q 2>err </dev/null
  local rc=$?
  cat err
  [ $rc = 2 ] && grep -q "fabricctl: .* does not take $option, which is for: " err
}
ok "nor does it take what is for other commands" refuses --load policy check "$top/etc/policies/simple.yaml" --load bulk
ok "status counts nothing" refuses --count status --count 3
ok "all jobs are listed" refuses --user job list --user root
ok "a job of a whole cluster stays its user's" refuses --user job set 1 batch --cluster --user root
ok "another class leaves the lease alone" refuses --lease job give 1 batch --lease 5
ok "what is chosen is chosen on this host" refuses --cluster job choose 1 batch --cluster
ok "the end of a job has no class to wish" refuses --wish job del 1 --wish batch
ok "top is not for some job" refuses --run top --run 1
is "they are named" "$(refuses --run job show 1 --run 2)" "fabricctl: job show does not take --run, which is for: job set, job del, job join, job leave"
says() { # WORDS...: what fabricctl says of a wrong command
  fabricctl "$@" 2>&1
  [ $? = 2 ] || echo "exit status"
}
is "an unknown command lists all" "$(says nonsense --run 1)" \
  "fabricctl: no such command: 'nonsense'; there are: status, policy, job, rail, paths, top, metrics, cluster. Try 'fabricctl --help'."
is "no command, too" "$(says)" \
  "fabricctl: no command; there are: status, policy, job, rail, paths, top, metrics, cluster. Try 'fabricctl --help'."
is "a misspelt one has its neighbour named" "$(says polcy aply x)" "fabricctl: no such command: 'polcy aply'; did you mean 'policy apply'?"
is "of one word, too" "$(says stauts)" "fabricctl: no such command: 'stauts'; did you mean 'status'?"
is "an unknown verb lists those of its noun" "$(says rail nonsense)" "fabricctl: no such command: 'rail nonsense'; 'rail' has: list, show, drain, undrain"
is "a missing word is told" "$(says policy apply)" "fabricctl: 'policy apply' has too few words or too many. Try 'fabricctl --help'."

# ---- answers for programs
ok "a policy is right" answers check 0 policy check "$good"
is "and this large" "$(cat answer)" '{"exit": 0, "messages": [], "classes": 3, "vls": 8, "lmc": 0}'
echo 'version: 3' >wrong.yaml
ok "one is wrong" answers check 2 policy check wrong.yaml
fabricctl policy check wrong.yaml --json >again 2>err
is "and the same is said to programs and people" "$(python3 -c 'import json; print("\n".join(json.load(open("answer"))["messages"]))')" "$(cat err)"
ok "so is one that is not there" answers check 2 policy check nowhere.yaml
like "which is said, too" '"messages": \["nowhere.yaml: No such file or directory"\]' answer
ok "the plan of a wrong policy ends as that" answers check 2 policy plan wrong.yaml
ok "fabricctl(1) has what answers have" python3 "$top/tests/fabricd/answers.py" page "$top/man/fabricctl.1"

done_testing
