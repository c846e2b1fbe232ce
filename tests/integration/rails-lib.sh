# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by rails.sh and rails_table.sh after lib.sh: a job (rail_load) that goes on while rails are drained or fail, in phases.

phase() { # N SECONDS: it begins, and lasts so long at least. A subnet manager may have time stand still before that
  echo "$1" >"$tmp/phase"
  wait_for 60 grep -q "^phase $1 begins" "$tmp/out"
  sleep "$2"
}
begin() { # BYTES WINDOW: the job begins, with phase 0
  echo 0 >"$tmp/phase"
  rm -f "$tmp/out"
  MRMPI_LOG_LEVEL=3 timeout -k 5 "${limit:-120}" mrrun -n 2 --hosts "${ends:-h1,h2}" --job-id "$job" --stats "$BUILD/tests/mpi/rail_load" "$1" "$2" "$tmp/phase" \
    >"$tmp/out" 2>&1 </dev/null &
  running=$!
  on_exit "kill $running 2>/dev/null"
  wait_for 30 grep -q 'connected to rank' "$tmp/out"
}
end() { # it ends well
  echo end >"$tmp/phase"
  wait $running
  local rc=$?
  sed 's/^/# /' "$tmp/out" | cut -c 1-300 >&2
  return $rc
}
figure() { awk -v p="$1" -v f="$2" '$1 == "phase" && $2 == p {for (i = 3; i < NF; i++) if ($i == f) print $(i + 1)}' "$tmp/out"; } # PHASE NAME
at_least() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 >= b + 0)}' || { echo "$1, wanted at least $2"; return 1; }; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a != "" && b != "" && a + 0 <= b + 0)}' || { echo "$1, wanted at most $2"; return 1; }; }
times() { awk -v a="$1" -v b="$2" 'BEGIN {if (a != "") print a * b}'; }
health() { ctl "$1" rail list | sed -n "s/.*device: $2,.* health: \([a-z]*\),.*/\1/p"; } # HOST DEVICE
is_now() { [ "$(health "$1" "$2")" = "$3" ]; }                                          # HOST DEVICE STATE
data() { simfab status --counters | awk -v d="$1" '$1 == "h1" && $2 == d {for (i = 1; i < NF; i++) if ($i == "xmit_data") x += $(i + 1)} END {printf "%.0f\n", x / 1e6}'; } # DEVICE: MB that it has sent
not_healthy() { [[ " degraded bad " = *" $(health "$1" "$2") "* ]]; } # HOST DEVICE
