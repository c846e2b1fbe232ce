# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by test scripts after tap.sh: hosts that are this machine, by a launcher that greets as a login shell may.
#
#   far ARGS...             mrrun --launcher with it; its output goes to $tmp/out and $tmp/err. The status
#   agents_of HOST          the agent's pid, of the job that runs or ran last
#   gone                    waits until all that ran on the hosts has gone: agents, ranks that wrote their pids to $tmp/pids
#   forget                  what is known of them

on_host=$tmp/on
mkdir "$tmp/agents" "$tmp/scratch"
export TMPDIR=$tmp/scratch
cat >"$on_host" <<END
#!/bin/sh
echo "Welcome to \$1"
echo \$\$ >"$tmp/agents/\$1"
shift
exec "\$@"
END
chmod +x "$on_host"
far() { timeout "${LIMIT:-60}" mrrun --launcher "$on_host" "$@" >"$tmp/out" 2>"$tmp/err"; }
agent_of() { cat "$tmp/agents/$1"; }
lives() { [ -e "/proc/$1" ] && ! grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null; }
left() {
  local p
  for p in $(cat "$tmp/agents/"* "$tmp/pids" 2>/dev/null); do lives "$p" && echo "process $p"; done
  ls -A "$TMPDIR"
}
gone() { wait_for "${1:-30}" eval '[ -z "$(left)" ] || { left; false; }'; }
forget() { rm -f "$tmp/agents/"* "$tmp/pids"; }
