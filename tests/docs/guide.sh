#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The guide: its commands run, on simulated hosts, and print what it says; its links lead somewhere; the messages that it
# explains are the programs'; it is a site without a warning.
#
# A block of code after the line "<!-- run -->" is run, those of a page one after the other in one shell, as a reader would type
# them (behind `simfab run ... -- bash` they go to that shell). "<!-- expect: REGEX -->": a line of the page's output matches;
# "<!-- refuse: REGEX -->": none does.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 2
for v in $(compgen -e | grep -E '^(MRMPI|SIMFAB|FABRICD)_'); do unset "$v"; done

commands() { # PAGE
  awk '/^<!-- run -->$/ { wanted = 1; next }
    /^```/ { if (inside) { inside = 0; next } if (wanted) { inside = 1; wanted = 0; next } }
    inside' "$1"
}
# a page waits as long as its commands take on a quiet machine
sleep() {
  local load
  read -r load _ </proc/loadavg
  command sleep "$(awk -v s="$1" -v load="$load" -v processors="$(nproc)" 'BEGIN {print s * (1 + load / (2 * processors))}')"
}
export -f sleep
ran=0
for page in docs/*.md README.md; do
  name=$(basename "$page" .md)
  commands "$page" >"$tmp/$name.sh"
  [ -s "$tmp/$name.sh" ] || continue
  ran=$((ran + 1))
  mkdir "$tmp/$name" && ln -s "$top/etc" "$tmp/$name/etc"
  (cd "$tmp/$name" && timeout 240 bash <"$tmp/$name.sh") >"$tmp/$name.out" 2>&1
  is "$page: its commands end well" $? 0
  is "$page: each is there, and is used as it may be" \
    "$(grep -iE '^(bash|sh|[a-z]+): (line [0-9]+: )?.*(command not found|unknown|usage|No such file)|^usage: ' "$tmp/$name.out")" ""
  while IFS= read -r wanted; do
    like "$page: prints $wanted" "$wanted" "$tmp/$name.out"
  done < <(sed -n 's/^<!-- expect: \(.*\) -->$/\1/p' "$page")
  while IFS= read -r refused; do
    is "$page: does not print $refused" "$(grep -E -- "$refused" "$tmp/$name.out")" ""
  done < <(sed -n 's/^<!-- refuse: \(.*\) -->$/\1/p' "$page")
done
ok "pages have commands" test $ran -ge 3

pages=(docs/*.md docs/design/*.md ARCHITECTURE.md README.md CHANGELOG.md)
is "links lead to pages and headings" "$(python3 tests/house/docs.py links "${pages[@]}")" ""

explained=0
while IFS= read -r message; do
  explained=$((explained + 1))
  case $message in
  state:*) grep -rqE "\"?${message#state: }\"?" fabricd --include='*.c' ;;
  *) grep -rqF -- "$message" libmrmpi mrrun fabricd simfab --include='*.c' --include='mrcc' ;;
  esac || echo "$message"
done < <(sed -n 's/^### `\([^`]*\)`.*/\1/p' docs/trouble.md) >"$tmp/unknown"
is "messages that are explained are those of the programs" "$(cat "$tmp/unknown")" ""
ok "which are some" test "$(grep -c '^### `' docs/trouble.md)" -ge 15
for o in $(sed -n '/^Your options/,/^The .eager limit/p' docs/users.md | awk -F '|' '{print $6}' | grep -oE '(^|[ `])--?[a-z][a-z-]*' | tr -d ' `' | sort -u); do
  mrrun --help | grep -qE -- "(^|[ ,])$o\b" || echo "$o"
done >"$tmp/unknown"
is "options that the table for users names are mrrun's" "$(cat "$tmp/unknown")" ""
for v in $(grep -ohE '\bMRMPI_[A-Z_]+' docs/*.md README.md | sort -u); do
  grep -qE "\b$v\b" "$BUILD/man/libmrmpi.7" man/*.1 || echo "$v"
done >"$tmp/unknown"
is "variables that the guide names are in the man pages" "$(cat "$tmp/unknown")" ""
is "lines of pages have at most 100 columns, but for tables and commands" "$(python3 tests/house/docs.py columns "${pages[@]}")" ""
if command -v mkdocs >/dev/null; then
  ok "mkdocs makes a site of it" mkdocs build --quiet --strict --config-file packaging/mkdocs.yml --site-dir "$tmp/site"
else
  ok "mkdocs makes a site of it # SKIP mkdocs is not installed" true
fi
done_testing
