# shellcheck shell=bash
# Sourced by the tests here: jobs in one machine of the laboratory, each of which prints TAP, as one test's TAP.
#
# Where the laboratory cannot be built the test is skipped, with the reason; LAB_REQUIRED=1 in the environment makes that a
# failure, for machines that are there to run it.
lab_tap() { # SECONDS [OPTION VALUE]... JOB...
  local here rc options=(--seconds "$1")
  shift
  while [[ $1 == --* ]]; do options+=("$1" "$2"); shift 2; done
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  "$here/lab" "${options[@]}" "$@" 2>&1 | awk -v jobs=$# '
    function result(good, text) { n++; bad += !good; print (good ? "ok " : "not ok ") n " - " text }
    { text = $0; sub(/^(not )?ok [0-9]+( - )?/, "", text) }
    /^ok /     { good_here++; result(1, text); next }
    /^not ok / { bad_here++; result(0, text); next }
    /^1\.\./   { planned += substr($0, 4); next }
    /^job [^ ]*: exit / {
      ended++
      job = substr($2, 1, length($2) - 1)
      if ($NF != 0 && !bad_here || !good_here || planned != good_here + bad_here)
        result(0, "job " job " gave " good_here + bad_here " results of " planned + 0 " and exit status " $NF)
      good_here = bad_here = planned = 0
    }
    { print "# " $0 }
    END {
      if (ended != jobs) result(0, ended + 0 " of " jobs " jobs ended")
      print "1.." n
      exit bad > 0
    }' >"$tap_out"
  rc=${PIPESTATUS[0]}
  if [ "$rc" -eq 77 ] && [ -z "${LAB_REQUIRED:-}" ]; then
    echo "1..0 # SKIP $(sed -n 's/^# lab: //p' "$tap_out")"
    exit 0
  fi
  cat "$tap_out"
  ! grep -q '^not ok' "$tap_out"
  exit
}
tap_out=$(mktemp)
trap 'rm -f "$tap_out"' EXIT
