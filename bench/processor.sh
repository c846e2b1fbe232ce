# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# For scripts of this folder, which source it: the machine that figures are from. What pays on one processor may cost on
# another.

processor() { # vendor, family, model and name of the processor, as Linux has them, and how many are to be used
  awk -F'[ \t]*: *' -v num="$(nproc)" '
    !($1 in of) { of[$1] = $2 }
    END { printf "processor: %s family %s model %s (%s), %d of them\n", of["vendor_id"], of["cpu family"], of["model"], of["model name"], num }
  ' /proc/cpuinfo
}

hops() { # NODE [BIND...]: how long a word takes from core to core, by bench/node.c as a program of MPICH's interface
  local program=$1
  shift
  mrrun -n 2 "$@" "$program" latency 8 2>&1 </dev/null | awk '
    NF == 5 { hop[++n] = $4; hop[++n] = $5 }
    END {
      for (i = 2; i <= n; i++) for (j = i; j > 1 && hop[j - 1] > hop[j]; j--) { t = hop[j]; hop[j] = hop[j - 1]; hop[j - 1] = t }
      if (n) printf "a word from core to core: median %.0f ns, %.0f to %.0f\n", hop[int((n + 1) / 2)], hop[1], hop[n]
      exit !n
    }'
}
