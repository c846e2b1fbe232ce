#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What mrrun shows of the rails of a job: --stats as a table and as JSON, --rails-trace. On simulated hosts, whose ports count, too.
# timeout: 400
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$here/lsan.supp:print_suppressions=0}
net=$here/../../etc/topologies/two-hosts-two-rails.net
links=$BUILD/tests/mpi/failover h2='simfab fault link "h2 mlx5_0" 1'
fabric() { timeout -k 5 100 simfab run --topology "$net" -- "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
with() { local setting=$1; shift; (export "${setting?}"; fabric "$@"); } # NAME=VALUE COMMAND
ask() { python3 -c "import json; d = json.load(open('$tmp/stats.json')); print($1)"; } # EXPRESSION of the document
has() { timeout 20 python3 "$here/timeline.py" "$tmp/trace.json" >"$tmp/events" || sed 's/^/# /' "$tmp/events"; }
events() { awk -v w="$1" '$1 == w {n = $2} END {print n + 0}' "$tmp/events"; } # WORD
table() { awk -v h="$1" -v r="$2" -v c="$3" '$1 == h && $2 == r {print $c}' "$tmp/err"; } # HOST RAIL COLUMN

# ---- all rails work
cat >"$tmp/job" <<SH
mrrun -n 4 --stats "$links" 6 true || exit
simfab status --counters >$tmp/ports
SH
export MRMPI_LOG_LEVEL=0
ok "a job with a table of its rails" fabric bash "$tmp/job"
is "of each port of each host" "$(sed -n 's/^  \(h[12]\)  *\(mlx5_[01]:1\) .*/\1 \2/p' "$tmp/err" | tr '\n' ';')" \
  "h1 mlx5_0:1;h1 mlx5_1:1;h2 mlx5_0:1;h2 mlx5_1:1;"
like "which says that they are simulated" '^mrrun: rails, .*\(simulated\)' "$tmp/err"
for d in 0 1; do
  is "what h1 mlx5_$d sent in bytes came to h2" "$(table h1 mlx5_$d:1 6)" "$(table h2 mlx5_$d:1 7)"
  is "and packets" "$(table h1 mlx5_$d:1 4)" "$(table h2 mlx5_$d:1 5)"
  # the port's own counter has headers and acknowledgements beside it
  port=$(awk -v d=mlx5_$d '$1 == "h1" && $2 == d {s += $7} END {print s}' "$tmp/ports")
  ok "and the port has counted the same and headers ($(table h1 mlx5_$d:1 6) MB, $port bytes)" \
    awk -v a="$(table h1 mlx5_$d:1 6)" -v b="$port" 'BEGIN {exit !(a > 1 && b >= a * 1e6 * 0.999 && b <= a * 1e6 * 1.1)}'
  ok "half of large messages" awk -v s="$(table h1 mlx5_$d:1 9)" 'BEGIN {exit !(s > 45 && s < 55)}'
done
like "ranks print their counters, too" 'counters: .*eager_sent=' "$tmp/err"

# ---- a cable is pulled while large messages are under way, and put back
for way in read write; do
  ok "a cable is pulled, large messages by $way" with MRMPI_RNDV=$way mrrun -n 2 --ppn 1 --stats="json:$tmp/stats.json" \
    --rails-trace "$tmp/trace.json" "$links" 11 "$h2 down" true "$h2 up; sleep 0.3"
  is "nothing but the document" "$(cat "$tmp/err")" ""
  is "for machines" "$(ask 'd["version"], d["simulated"], d["num_ranks"], len(d["rails"]), [r["rank"] for r in d["ranks"]]')" \
    "1 True 2 4 [0, 1]"
  is "hosts and rails" "$(ask '*[r["host"] + "/" + r["rail"] for r in d["rails"]]')" \
    "h1/mlx5_0:1 h1/mlx5_1:1 h2/mlx5_0:1 h2/mlx5_1:1"
  is "paths of the first rail broke, at both ends" \
    "$(ask '*[(r["broken"] > 0) == (r["rail"] == "mlx5_0:1") and r["opened"] > r["broken"] - 1 for r in d["rails"]]')" "True True True True"
  is "the port of one of them was down" "$(ask '*[r["port_downs"] > 0 for r in d["rails"]]')" "False False True False"
  is "for a while" "$(ask '*[r["down_ns"] > 0 for r in d["rails"]]')" "False False True False"
  ok "parts moved, or packets went again" test "$(ask 'sum(r["moved"] + r["resent"] for r in d["rails"])')" -gt 0
  is "parts were done by $way" "$(ask "*[sum(r['stripes_' + w] for r in d['rails']) > 0 for w in ('read', 'written')]")" \
    "$([ $way = read ] && echo True False || echo False True)"
  is "each rank finalized, has all rails and counters" \
    "$(ask '*[r["finalized"] and len(r["rails"]) == 2 and r["counters"]["net_sent"] > 0 for r in d["ranks"]]')" "True True"
  is "what counters of the job say is the sum of its rails" \
    "$(ask '*[sum(x[k] for r in d["ranks"] for x in r["rails"]) == sum(r["counters"][k] for r in d["ranks"]) for k in ("broken", "moved")]')" "True True"
  ok "the timeline is well-formed" has
  is "in simulated time, of both ranks" "$(events simulated) $(events ranks) $(events dropped)" "1 2 0"
  is "the port was down, as often as it says" "$(events B.port)" "$(ask 'sum(r["port_downs"] for r in d["rails"])')"
  ok "paths broke, were closed and opened ($(events i.broken), $(events i.closed), $(events i.open))" \
    test "$(events i.broken)" -gt 0 -a "$(events i.closed)" -gt 0 -a "$(events i.open)" -gt 4
  is "as the counters say" "$(events i.broken) $(events i.open)" \
    "$(ask 'sum(r["broken"] for r in d["rails"]), sum(r["opened"] for r in d["rails"])')"
  is "parts that were not broken off are all bytes of large messages" "$(events bytes_of_parts)" \
    "$(ask "sum(r['bytes_read'] + r['bytes_written'] for r in d['rails']) - $(python3 - "$tmp/trace.json" <<'PY'
import json, sys
print(sum(e["args"]["bytes"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X" and e["args"].get("broken")))
PY
)")"
  # a rank that writes may wait for its peer's word when the cable goes
  [ $way = write ] || ok "some were broken off ($(events broken))" test "$(events broken)" -gt 0
  ok "bytes and weights over time ($(events counters), $(events weights))" test "$(events weights)" -ge 6 -a "$(events counters)" -gt "$(events weights)"
done

# ---- datagrams and unreliable connections
for kind in uc ud; do
  ok "the same over $kind" with MRMPI_LINKS=$kind mrrun -n 2 --ppn 1 --stats="json:$tmp/stats.json" --rails-trace "$tmp/trace.json" \
    "$links" 3 true
  is "all that was sent arrived" \
    "$(ask '*[sum(r[a] for r in d["rails"]) == sum(r[b] for r in d["rails"]) for a, b in (("bytes_out", "bytes_in"), ("packets_sent", "packets_received"))]')" \
    "True True"
  ok "large messages, too" test "$(ask 'sum(r["bytes_written"] for r in d["rails"])')" -gt 1000000
  ok "the timeline is well-formed" has
  ok "and shows their parts ($(events parts), $(events bytes_of_parts) bytes)" test "$(events parts)" -gt 10
done

# ---- the end of a job that does not end well, and bounds
ok "a timeline of few events" with MRMPI_RECORD_EVENTS=50 mrrun -n 2 --ppn 1 --rails-trace "$tmp/trace.json" "$links" 4 true
ok "is well-formed" has
ok "says what was dropped ($(events dropped)), and has no more ($(events most_of_a_rank))" \
  test "$(events dropped)" -gt 10 -a "$(events most_of_a_rank)" -le 52
fabric mrrun -n 2 --ppn 1 --stats="json:$tmp/stats.json" --rails-trace "$tmp/trace.json" "$links" 6 true 'kill -9 $PPID'
is "a job whose rank is killed" $? 137
is "leaves figures of both, not finalized" "$(ask '*[r["finalized"] for r in d["ranks"]]')" "False False"
ok "with bytes" test "$(ask 'min(r["bytes_out"] for r in d["rails"])')" -gt 1000
ok "and a timeline that is well-formed" has
ok "with parts of messages" test "$(events parts)" -gt 10

fabric mrrun -n 2 --hosts h1 --stats=json "$links" 1 true
is "a job on one host" "$(python3 -c 'import json, sys; print(*[len(r["rails"]) for r in json.load(sys.stdin)["ranks"]])' <"$tmp/err")" "0 0"
fabric mrrun -n 2 --hosts h1 --stats "$links" 1 true
like "has no rails" '^mrrun: no rails were in use: between ranks of one host' "$tmp/err"
mrrun -n 2 --stats=xml true 2>"$tmp/err"
is "another form is refused" "$? $(cat "$tmp/err")" "2 mrrun: option --stats: 'xml' is neither json nor json:FILE"
mrrun -n 2 --stats="json:$tmp/none/x" touch "$tmp/started" 2>"$tmp/err"
is "so is a file that cannot be written, before anything is started" "$? $(ls "$tmp/started" 2>/dev/null)" "2 "
mrrun -n 2 --rails-trace "$tmp/none/x" touch "$tmp/started" 2>"$tmp/err"
like "for a timeline, too" "^mrrun: cannot write '.*none/x'" "$tmp/err"
mrrun -n 1 --stats="json:/dev/full" true 2>"$tmp/err"
is "one that is full is said at the end" "$? $(cat "$tmp/err")" "1 mrrun: the figures of --stats could not be written: No space left on device"
is "programs that are not MPI have left nothing" "$(mrrun -n 1 --stats true 2>&1)" "mrrun: no rails were in use: no rank has left figures"
done_testing
