#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# bash's completions, which the build makes of --help: each option and verb is offered where it may stand, and nothing else.
. "$(dirname "$0")/../tap.sh"
completions=$BUILD/share/bash-completion
for p in mrrun fabricctl simfab; do . "$completions/$p"; done

offered() { # WORD...: the last of them is being written
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  "_mrmpi_$1"
  echo "${COMPREPLY[*]}"
}
options() { grep -oE '(^|[^-A-Za-z0-9])--?[A-Za-z][-A-Za-z]*' | sed -E 's/^[^-]//' | sort -u; }
lacks() { comm -23 - <(offered "$@" | tr ' ' '\n' | sort -u) | tr '\n' ' '; }
is "every option of mrrun is offered" "$(mrrun --help | sed -n 's/^  -/-/p' | sed 's/  .*//' | options | lacks mrrun -)" ""
is "and none twice" "$(offered mrrun - | tr ' ' '\n' | sort | uniq -d)" ""
is "one that has begun" "$(offered mrrun --bind)" --bind-to
is "behind a value the next" "$(offered mrrun -n 2 --bind)" --bind-to
is "values of mrrun's are not made up" "$(offered mrrun --bind-to c)" ""
compgen -c uniq | sort -u >"$tmp/commands"
is "the program is a command" "$(offered mrrun -n 2 -env A B uniq | tr ' ' '\n' | sort -u)" "$(cat "$tmp/commands")"
_command_offset() { COMPREPLY=("from $1"); } # bash-completion's
is "its arguments are its own" "$(offered mrrun -n 2 uniq --bind)" "from 3"
is "behind -- as well" "$(offered simfab exec h1 -- uniq -)" "from 4"
unset -f _command_offset

fabricctl --help | sed -nE 's/^  ([a-z]+) ([a-z]+)( .*|$)/\1 \2/p' | sort >"$tmp/verbs"
ok "fabricctl has verbs" test "$(wc -l <"$tmp/verbs")" -ge 20
for v in $(cut -d ' ' -f 1 "$tmp/verbs" | sort -u); do
  is "fabricctl $v: its verbs" "$(offered fabricctl "$v" "" | tr ' ' '\n' | sort)" "$(sed -n "s/^$v //p" "$tmp/verbs")"
done
is "every option of fabricctl is offered somewhere" "$(fabricctl --help | grep -E '^ +\[?-|^  top ' | grep -oE '(\[|^ *|, )-.*' | sed 's/   .*//' | options |
  comm -23 - <(while read -r v; do offered fabricctl $v -; done < <(cat "$tmp/verbs"; fabricctl --help | sed -nE 's/^  ([a-z]+) [ [].*/\1/p') | tr ' ' '\n' | sort -u))" ""
is "options of a verb, not of another" "$(offered fabricctl policy apply --dry) $(offered fabricctl policy plan --dry)" "--dry-run "
is "behind the verb's arguments, too" "$(offered fabricctl -s /x job set 4711 urgent --part)" --partition

is "simfab's verbs" "$(offered simfab "" | tr ' ' '\n' | sort | xargs)" "$(simfab --help | sed -n 's/^  simfab \([a-z]*\) .*/\1/p' | sort | xargs)"
for v in $(offered simfab ""); do
  is "every option of simfab $v is offered" "$(simfab "$v" --help | sed -n '/^usage:/,/^$/p; /^  --/p' | sed -E 's/^( *[^ ]+( [^ ]+)*)  .*/\1/' | options | lacks simfab "$v" -)" ""
done
is "shapes of topologies" "$(offered simfab topology f) $(offered simfab topology --hosts 8 r) $(offered simfab topology fat-tree --radi)" "fat-tree ring --radix"
is "verbs of verbs" "$(offered simfab flow "" | xargs); $(offered simfab opensm w)" "--help add del list run; wait"
simfab() { [ "$*" = "status --hosts" ] && printf 'h1\nh2\n'; }
export SIMFAB_DIR=$tmp
is "inside a fabric its hosts" "$(offered mrrun --hosts h1,); $(offered simfab exec h)" "h1,h1 h1,h2; h1 h2"
unset -f simfab
if [ -r /usr/share/bash-completion/bash_completion ]; then
  mkdir -p "$tmp/user/completions" && cp "$completions"/* "$tmp/user/completions/"
  is "bash-completion loads them by name" "$(BASH_COMPLETION_USER_DIR=$tmp/user bash -c '
    . /usr/share/bash-completion/bash_completion; __load_completion fabricctl; complete -p fabricctl')" \
    "complete -o bashdefault -o default -F _mrmpi_fabricctl fabricctl"
fi
done_testing
