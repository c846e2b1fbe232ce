#!/usr/bin/env bash
# The verbs suite on simulated adapters: both sides on one, addressed by LID; what needs both, on two hosts, by LID and by GID.
. "$(dirname "$0")/../tap.sh"
if [ "${1:-}" != inside ]; then
  command -v opensm >/dev/null || skip_all "opensm is not installed"
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology two-hosts-two-rails --model sdr-pcix -- bash "$0" inside
fi
suite=$BUILD/tests/verbs/verbs_suite

# two ARGS: the second side on h1, the first on h2, whose output is printed
two() {
  local port i server rc
  port=$(free_port)
  timeout 100 simfab exec h1 -- "$suite" -l $port "$@" >"$tmp/second" 2>&1 &
  server=$!
  wait_for 60 listening $port
  timeout 100 simfab exec h2 -- "$suite" -c h1:$port "$@"
  rc=$?
  wait $server || rc=1
  cat "$tmp/second"
  return $rc
}
# judge NAME: every case of the output in $tmp/NAME is a result here
judge() {
  local line n=0
  while IFS= read -r line; do
    case "$line" in
      "ok "*) n=$((n + 1)); tap_result 0 "$1: ${line#*- }" ;;
      "not ok "*) n=$((n + 1)); tap_result 1 "$1: ${line#*- }" ;;
      "1.."*) ;;
      *) echo "# $line" ;;
    esac
  done <"$tmp/$1"
  is "$1: as many results as cases" "$n" "$(sed -n 's/^1\.\.//p' "$tmp/$1")"
}
timeout 100 simfab exec h1 -- "$suite" >"$tmp/one adapter" 2>&1
judge "one adapter"
two -p >"$tmp/two hosts" 2>&1
judge "two hosts"
two -p -g 0 >"$tmp/two hosts by GID" 2>&1
judge "two hosts by GID"
done_testing
