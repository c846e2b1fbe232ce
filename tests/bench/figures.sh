#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The pipeline of `make figures`: a small figure from its description to table, data, plot and page, twice the same; what
# cannot be measured says so. gnuplot draws if it is there; table and data do not need it.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
unset ONLY
ok "terms, claims and jobs" python3 tests/bench/terms.py

cp -r bench "$tmp/bench"
ln -s "$PWD/etc" "$tmp/etc"
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
at = [1024, 65536]
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
small() { "$tmp/bench/figures/run" --out "$1" "${@:2}" >"$tmp/said" 2>&1; }

small "$tmp/a"
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
if command -v gnuplot >/dev/null; then
  like "a plot" '</svg>' "$tmp/a/900-fig1.svg"
  like "bars" '</svg>' "$tmp/b/900-fig2.svg"
else
  ok "no plot without gnuplot # SKIP it is not installed" test ! -e "$tmp/a/900-fig1.svg"
fi
ok "every description of the tree can be read" bench/figures/run --list
not_ok "a name that no figure has" bench/figures/run --out "$tmp/c" nothing
done_testing
