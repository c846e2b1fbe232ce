#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The pipeline of `make figures`: a small figure from its description to table, data, plot and page, twice the same; what
# cannot be measured says so. gnuplot draws if it is there; table and data do not need it.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
unset ONLY
ok "terms, claims and jobs" python3 tests/bench/terms.py

cp -r bench "$tmp/bench"
ln -s "$PWD/etc" "$PWD/terminal" "$tmp"
rm "$tmp"/bench/figures/*.toml
cat >"$tmp/bench/figures/900-small.toml" <<'TOML'
paper = "a paper of this test"
[defaults]
model = "sdr-pcix"
topology = "two-hosts-two-rails"
program = "streams"
ranks = 2
ranks_per_host = 1
[[figure]]
id = "900-fig1"
title = "Bandwidth"
y = "MB/s"
args = "one:{x}"
line = "one"
at = [1024, 65536, 1048576]
curve = [
  {name = "one", label = "one rail", env = {MRMPI_RAILS_MAX = "1"}},
  {name = "two", label = "two rails"},
  {name = "never", label = "what there is not", env = {MRMPI_NO_SUCH_SETTING = "1"}},
  {name = "refused", label = "what is refused", env = {MRMPI_RAILS_MAX = "many"}},
]
level = [{label = "peak", y = 884, section = "section 1"}]
claim = [
  {what = "two : one", says = "twice", of = "two 64K", to = "one 64K", paper = 2, target = "> 1.8", kind = "prediction", section = "1"},
  {what = "one : two", says = "half", of = "one 64K", to = "two 64K", target = "> 1", kind = "prediction", section = "1"},
  {what = "never", says = "something", of = "never 64K", target = "> 1", kind = "prediction", section = "1"},
]
[[figure]]
id = "900-fig2"
title = "Bars, and unequal rails"
long = true
y = "us"
model_lines = "ports:\n- {node: \"h? mlx5_1\", width: 1}\n"
args = "{x}"
pick = 'latency \d+ ([\d.]+)'
cases = {small = "latency:8", "4" = "latency:4"}
curve = [
  {name = "bound", label = "bound to the second rail", rank_env = {MRMPI_DEVICES = "mlx5_1"}},
  {name = "paper", label = "paper", values = {small = 6}},
]
TOML
cat >"$tmp/bench/figures/901-classes.toml" <<'TOML'
paper = "another paper of this test"
[policies]
two = """
version: 1
mtu: 2048
classes: [{name: first, share: 60}, {name: second, share: 40, priority: low}]
jobs: {default: second}
"""
newer = "version: 1\nclasses: [{name: a, share: 100, no_such_key: 1}]\njobs: {default: a}\n"
[defaults]
model = "ddr-connectx"
topology = "star --hosts 3"
program = "contend"
ranks = 2
mrrun = "--hosts h1,h2"
[[figure]]
id = "901-fig1"
title = "Latency beside a load"
y = "us"
args = "latency:{x}"
line = "latency"
at = [8, 65536]
curve = [
  {name = "quiet", label = "quiet"},
  {name = "load", label = "beside a load", policy = "two", class = "first", background = [{args = "load:both:65536:4", ranks = 2, mrrun = "--hosts h1,h3", class = "second"}]},
  {name = "broken", label = "a load that fails", background = [{args = "load:none:1:1", ranks = 2}]},
  {name = "unknown", label = "a class that there is not", policy = "two", class = "third"},
  {name = "newer", label = "a later policy", policy = "newer", class = "a"},
]
claim = [
  {what = "8 bytes, load : quiet", says = "longer", of = "load 8", to = "quiet 8", target = "> 1", kind = "prediction", section = "1"},
]
[[figure]]
id = "901-live"
title = "A change of class"
y = "us"
x = "ms"
args = "series:8:100:20:500"
policy = "two"
class = "second"
change = "first"
background = [{args = "load:both:65536:4", ranks = 2, mrrun = "--hosts h1,h3", class = "second"}]
curve = [
  {name = "series", label = "latency", line = "series"},
  {name = "changed", label = "ends changed", pick = '^changed ([0-9]+)', at = [0]},
  {name = "resent", label = "sent again", pick = '^resent ([0-9]+)', at = [0]},
]
claim = [{what = "ends", says = "both", of = "changed 0", target = ">= 2", kind = "prediction", section = "1"}]
TOML
small() { "$tmp/bench/figures/run" --out "$1" "${@:2}" >"$tmp/said" 2>&1; }

small "$tmp/a" 900
is "a job whose setting is refused fails, and the run with it" $? 1
like "the table has the numbers" '^64K +[0-9]' "$tmp/a/900-fig1.txt"
like "and says that they are simulated" 'simulated' "$tmp/a/900-fig1.txt"
like "and what the paper says" 'paper: peak: 884' "$tmp/a/900-fig1.txt"
like "a target that is met" 'two : one: [12]\.[0-9]+; paper 2.000, ratio .*target > 1.8, met' "$tmp/a/claims.txt"
like "a target that is missed" 'one : two: 0\.[0-9]+; target > 1, MISSED' "$tmp/a/claims.txt"
like "a setting that the library lacks is named" 'never: not measured: needs MRMPI_NO_SUCH_SETTING' "$tmp/a/claims.txt"
like "a value that it refuses is, too" 'not measured: what is refused: failed: .*MRMPI_RAILS_MAX=many' "$tmp/a/900-fig1.txt"
like "data for two curves" "^65536	[0-9.]+	[0-9.]+$" "$tmp/a/900-fig1.tsv"
like "the page has the claim" '<td>1\.[0-9]+</td>|two : one: [12]\.' "$tmp/a/index.html"
like "and what was not run" 'make figures ONLY=900-fig2' "$tmp/a/index.html"
ok "the same data in a second run, and a figure that takes long by its name" sh -c '
  "$1/bench/figures/run" --out "$1/b" 900-fig1 900-fig2; cmp "$1/a/900-fig1.tsv" "$1/b/900-fig1.tsv"' sh "$tmp"
like "a job for each case" '^small +[0-9.]+ +6' "$tmp/b/900-fig2.txt"
not_ok "a run with jobs in the background, of which one fails" small "$tmp/d" 901
like "latency beside a load is longer, in a class of the policy" 'load : quiet: [0-9.]+; target > 1, met' "$tmp/d/claims.txt"
like "a load that fails is told" 'a load that fails: failed: .*' "$tmp/d/901-fig1.txt"
like "and a class that the policy has not" 'a class that there is not: failed: .*third' "$tmp/d/901-fig1.txt"
like "a policy with a key that is not known yet is not measured" "a later policy: needs a policy's key no_such_key" "$tmp/d/901-fig1.txt"
like "a running job has changed its class at both ends" 'ends: [0-9.]+; target >= 2, met' "$tmp/d/claims.txt"
if command -v gnuplot >/dev/null; then
  like "a plot" '</svg>' "$tmp/a/900-fig1.svg"
  like "its last x has a label" '>1M<' "$tmp/a/900-fig1.svg"
  like "bars" '</svg>' "$tmp/b/900-fig2.svg"
else
  ok "no plot without gnuplot # SKIP it is not installed" test ! -e "$tmp/a/900-fig1.svg"
fi
ok "every description of the tree can be read" bench/figures/run --list
not_ok "a name that no figure has" bench/figures/run --out "$tmp/c" nothing
done_testing
