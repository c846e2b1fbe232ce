# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by the scripts of this folder, after which they stand in the scratch directory.

. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$tmp" || exit 1
export FABRICD_SOCKET=$tmp/fabricd.sock
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/bus # not this machine's

# stop PID: ask it to end and wait, but not for ever
stop() {
  kill "$1" 2>/dev/null || return 0
  for _ in $(seq 60); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.05
  done
  kill -9 "$1" 2>/dev/null
  wait "$1" 2>/dev/null
}

# started: the last background process is stopped at the end, after those started later
started() { on_exit "stop $!"; }

# status_has REGEX: a line of fabricctl status matches
status_has() {
  fabricctl status >"$tmp/status" && grep -Eq -- "$1" "$tmp/status" && return 0
  cat "$tmp/status"
  return 1
}

# old_state DIR: what is in force there, as a version before there were generations kept it
old_state() {
  cp "$1/policy.yaml" "$tmp/old.yaml" && cp "$1/policy.lock" "$tmp/old.lock" && rm -r "$1"/{current,generations,policy.yaml,policy.lock} &&
    mv "$tmp/old.yaml" "$1/policy.yaml" && mv "$tmp/old.lock" "$1/policy.lock" &&
    sed -n 's/^policy generation=\([0-9]*\) .*/\1/p' "$1/policy.lock" >"$1/generation"
}

# exits STATUS COMMAND...
exits() {
  local want=$1 got=0
  shift
  "$@" || got=$?
  [ "$got" = "$want" ] || { echo "exit status $got, expected $want"; return 1; }
}

# answers KIND EXIT COMMAND...: its answer in JSON is as answers.py has it, and so is its exit status
answers() {
  exits "$2" fabricctl "${@:3}" --json >"$tmp/answer" && python3 "$top/tests/fabricd/answers.py" check "$1" <"$tmp/answer" &&
    return 0
  cat "$tmp/answer"
  return 1
}

# bus_conf PATH: prints the configuration of a bus at this socket, as Debian's system bus, with what fabricd adds to it
bus_conf() {
  cat <<END
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=$1</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
  </policy>
  <policy user="root">
    <allow own="org.freedesktop.PolicyKit1"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
  </policy>
  <include>$top/etc/dbus/org.mrmpi.Fabric1.conf</include>
</busconfig>
END
}
