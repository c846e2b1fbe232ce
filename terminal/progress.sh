# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by scripts: a line about long work on standard error, if that is a terminal.
#
#   progress TEXT...   replaces the line before; cut to the width of the terminal
#   progress_erase     before anything else is written, and at the end

progress_on= progress_shown=
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then progress_on=1; fi

progress() {
  local width
  [ -n "$progress_on" ] || return 0
  width=$(stty size <&2 2>/dev/null)
  width=${width#* }
  [ "${width:-0}" -gt 1 ] || width=80
  printf '\r\033[K%.*s' $((width - 1)) "$*" >&2
  progress_shown=1
}
progress_erase() {
  [ -n "$progress_shown" ] || return 0
  printf '\r\033[K' >&2
  progress_shown=
}
