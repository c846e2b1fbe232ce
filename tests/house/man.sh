#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Man pages against the programs: settings, defaults, counters, options, variables of the environment; and groff likes them.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 2

plain() { sed 's/\\-/-/g; s/\\(dq/"/g; s/\\f[A-Z]//g' "$1"; } # a page's source without escapes
section() { # PAGE TITLE: the lines of a section
  plain "$1" | awk -v title="$2" '/^\.SH / { inside = ($0 == ".SH " title) } inside'
}

# ---- libmrmpi(7), which is made of its text and of the library's tables
library=$BUILD/man/libmrmpi.7
page() { "$BUILD/man/page" "$1" >"$tmp/page" 2>"$tmp/err"; } # TEXT
text_without() { sed "/^@$1\$/d" man/libmrmpi.7.in >"$tmp/text"; }
is "libmrmpi(7) tells a setting's type, bounds, unit and default" \
  "$(grep -c '^\.BR MRMPI_EAGER_MAX " (size, 64 to 64K bytes, default 8K)"$' "$library")" 1
ok "and what it does" grep -qx 'Largest packet between hosts\. .*Where two ranks differ the smaller value counts\.' "$library"
ok "and what a counter counts" grep -qx 'Packets that overtook others and were held back\.' "$library"
ok "and which settings can be written at any time" grep -qE '^\.BR .*\bMRMPI_LOG_LEVEL "[,]? ' "$library"
is "nothing of the text is left to fill in" "$(grep -c '^@' "$library")" 0
twice() { # PAGE...: sentences that a paragraph has twice
  awk '
    function paragraph(  n, i, s, seen) {
      n = split(text, s, /[.;] +/)
      for (i = 1; i <= n; i++) {
        sub(/[. ]+$/, "", s[i])
        if (length(s[i]) > 5 && s[i] in seen) print last ": " s[i]
        seen[s[i]] = 1
      }
      text = ""
    }
    /^\.(TP|SH|SS|PP)/ || FNR == 1 { paragraph() }
    { text = text " " $0; last = FILENAME }
    END { paragraph() }' "$@"
}
is "no paragraph says a thing twice" "$(twice "$library" man/*.[1-8])" ""
text_without MRMPI_RAILS_MAX
not_ok "a text without one of the settings is refused" page "$tmp/text"
like "by name" 'says nothing of MRMPI_RAILS_MAX' "$tmp/err"
text_without connects
not_ok "so is one without one of the counters" page "$tmp/text"
{ cat man/libmrmpi.7.in; echo @MRMPI_NONSENSE; } >"$tmp/text"
not_ok "and one with a setting that is not there" page "$tmp/text"
like "by line" "text:$(wc -l <"$tmp/text"): no setting or counter, .*MRMPI_NONSENSE" "$tmp/err"

# ---- the table of functions and what the library exports
functions=$BUILD/man/mrmpi-functions.7
sed -nE 's/^(MPIX?_[A-Za-z_0-9]+)\t.*/\1/p' "$functions" | sort >"$tmp/listed"
nm -D --defined-only "$BUILD/lib/libmpi.so.12" | awk '$2 ~ /[TW]/ && $3 ~ /^MPIX?_/ { print $3 }' | sort >"$tmp/exported"
is "mrmpi-functions(7) lists every function of the library once" "$(diff "$tmp/listed" "$tmp/exported")" ""
led=$(sed -n '/^} led\[\] = {/,/^};/p' libmrmpi/verbs/memory/calls.c | grep -oE '\{"[a-z0-9]+"' | tr -d '{"' | grep -v '^mmap64$' | sort)
for f in $led; do
  section "$library" NOTES | grep -qw "$f" || echo "$f"
done >"$tmp/missing"
is "libmrmpi(7) names every call of the C library that is watched" "$(cat "$tmp/missing")" ""
ok "which are some" test "$(echo "$led" | wc -w)" -ge 8

# ---- each program and its page
options() { grep -oE '(^|[^-A-Za-z0-9])--?[A-Za-z][-A-Za-z]*' | sed -E 's/^[^-]//' | sort -u; }
helps() { # PROGRAM: all that it says of itself
  case $1 in
  simfab) simfab --help; for s in $(simfab --help | sed -n 's/^  simfab \([a-z]*\) .*/\1/p'); do simfab $s --help; done ;;
  mrcc) mrcc -help ;;
  *) "$1" --help ;;
  esac
}
page_options() { # PAGE: options where a page describes or shows them, not in examples or sentences
  plain "$1" | awk '/^\.SH / { on = !/EXAMPLE|DESCRIPTION|SEE ALSO|ON A SIMULATED|CONFIGURATION|STATE/ } on && /^\.B|^\.RB/' | options
}
compare() { # PROGRAM SECTION [options that only the page may have [that only the help may have]]
  local page=man/$1.$2 only_page only_help
  helps "$1" 2>&1 | sed 's/kill -[A-Z]*//' | options >"$tmp/help"
  page_options "$page" | grep -vxE -- "${3:-NONE}" >"$tmp/page"
  only_help=$(comm -23 "$tmp/help" <(plain "$page" | options) | grep -vxE -- "${4:-NONE}" | tr '\n' ' ')
  only_page=$(comm -13 "$tmp/help" "$tmp/page" | tr '\n' ' ')
  is "$1($2) has every option of --help" "$only_help" ""
  is "--help of $1 has every option of $1($2)" "$only_page" ""
}
compare mrrun 1 '--mpi'
compare mrcc 1 '-[cSEM]|-MM|-fsyntax-only'
compare simfab 1
compare fabricd 8 '-F'
compare fabricctl 1

# ---- variables of the environment
variables() { # every name that a source asks the environment for, but the library's, which are in its table
  grep -rhoE '\bgetenv\("(MRMPI|SIMFAB|SIM|FABRICD)_[A-Z_]+"\)' simfab fabricd mrrun | grep -oE '[A-Z]+_[A-Z_]+'
  grep -hoE '\$\{MRMPI_[A-Z]+\b' mrrun/mrcc | grep -v LANG | tr -d '${'
}
variables | sort -u >"$tmp/variables"
ok "programs read the environment" grep -qx SIMFAB_DIR "$tmp/variables"
while read -r v; do
  for p in man/*.[1-8] "$library"; do plain "$p"; done | grep -E "^\.BR? .*\b$v\b" >/dev/null || echo "$v"
done <"$tmp/variables" >"$tmp/missing"
is "every variable is in a man page" "$(cat "$tmp/missing")" ""

# ---- the pages themselves
for p in man/*.[1-8] "$library" "$functions"; do
  ok "${p##*/} is installed" grep -rqE "MANPAGES.*/${p##*/}" --include=module.mk .
  if command -v groff >/dev/null; then
    is "${p##*/} has no groff warnings" "$(groff -man -Tutf8 -ww "$p" 2>&1 >/dev/null)" ""
  fi
  while read -r name sec; do
    if ls {man,"$BUILD"/man}/"$name".[1-8] >/dev/null 2>&1; then
      [ -f "man/$name.$sec" ] || [ -f "$BUILD/man/$name.$sec" ] || echo "$name($sec)"
    fi
  done < <(plain "$p" | sed -nE 's/^\.BR ([a-z-]+) \(([0-9])\).*/\1 \2/p') >"$tmp/missing"
  is "${p##*/} refers to pages by their sections" "$(cat "$tmp/missing")" ""
done

done_testing
