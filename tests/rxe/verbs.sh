#!/usr/bin/env bash
# The verbs suite on soft-RoCE: between rxa0 and rxb0, by GID. What this driver does otherwise than the specification
# is listed, with reasons, in tests/verbs/DIFFERENCES.md: those cases, and no others, must fail here.
# timeout: 600
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 580 'verbs 500: bash tests/rxe/verbs.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
list=$(dirname "$0")/../verbs/DIFFERENCES.md

gid_index() { # DEVICE: of its IPv4 address
  local g
  for g in /sys/class/infiniband/"$1"/ports/1/gids/*; do
    case "$(cat "$g" 2>/dev/null)" in 0000:0000:0000:0000:0000:ffff:*) echo "${g##*/}"; return ;; esac
  done
}

g=$(gid_index rxa0)
is "both devices have the same index for their address" "$(gid_index rxb0)" "${g:-none}"
timeout 480 "$BUILD/tests/verbs/verbs_suite" -d rxa0,rxb0 -g "$g" >"$tmp/out" 2>&1
n=0
while IFS= read -r line; do
  name=${line#*- } name=${name%% # SKIP*}
  case "$line" in
    "ok "* | "not ok "*) n=$((n + 1)) ;;&
    "ok "*)
      if grep -qF -- "- \`$name\`:" "$list" && [[ $line != *"# SKIP"* ]]; then
        tap_result 1 "$name: no longer differs, mend DIFFERENCES.md"
      else
        tap_result 0 "${line#*- }"
      fi ;;
    "not ok "*)
      if grep -qF -- "- \`$name\`:" "$list"; then
        tap_result 0 "$name: differs as DIFFERENCES.md says"
      else
        tap_result 1 "$name"
      fi ;;
    "1.."*) ;;
    *) echo "# $line" ;;
  esac
done <"$tmp/out"
is "as many results as cases" "$n" "$(sed -n 's/^1\.\.//p' "$tmp/out")"
done_testing
