#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A static function's name is unique in its program or library: gdb, perf and grep see the bare name. So is the tag of a
# struct mr_*.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2

names=tests/house/names.py
# of the two shells, each is in a program of its own
for other in abi_mpich abi_standard; do
  is "libmrmpi without $other: each static function has a name of its own" "$(python3 "$names" -x $other libmrmpi)" ""
done
for program in fabricd simfab/engine simfab/preload simfab/tsc simfab/cmd mrrun; do
  is "$program: each static function has a name of its own" "$(python3 "$names" "$program")" ""
done
is "libmrmpi: each struct mr_* is defined once" "$(python3 "$names" -t libmrmpi)" ""
is "branch hints are defined in base/idioms.h only" "$(grep -rlE '^# *define +(un)?likely\b' libmrmpi simfab fabricd mrrun)" libmrmpi/base/idioms.h

# The check names both places, whatever stands between static and the name, and nothing but definitions counts.
mkdir -p "$tmp/program/part"
cat >"$tmp/program/a.c" <<'C'
static int find(int n); /* declared */
static __attribute__((noinline)) struct mr_list *
find(int n)
{
    return 0;
}
#if ONE
static void store(void)
{
}
#else
static void store(void)
{
}
#endif
static int (*drop)(void) = (0);
/*
static void told(void)
{
}
*/
struct mr_list {
    int n;
};
C
cat >"$tmp/program/part/b.c" <<'C'
static inline const char *find(const char *in,
                               int (*fits)(char c))
{
    return told(store()) + drop();
}
static void told(void)
{
}
static int drop(void)
{
    return 0;
}
struct mr_list {
    struct mr_list *next;
};
C
is "two static functions of one name: both places" "$(python3 "$names" "$tmp/program")" "find $tmp/program/a.c:2 $tmp/program/part/b.c:1"
is "two structs of one tag: both places" "$(python3 "$names" -t "$tmp/program")" "mr_list $tmp/program/a.c:22 $tmp/program/part/b.c:13"
not_ok "a folder without names is an error" python3 "$names" "$tmp"/nothing
done_testing
