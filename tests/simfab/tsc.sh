#!/usr/bin/env bash
# How simfab catches the time stamp counter: by the kernel's trap, by replacing the instructions, or not at all; and that the
# figures of programs are the same whichever it is. --all: of more programs.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
unset SIMFAB_TSC
on_exit fabric_end
reads=$BUILD/tests/simfab/tsc_reads refuse=$BUILD/tests/simfab/tsc_refuse
export tmp
san=$(sanitizers)

ok "a fabric comes up" fabric sdr-pcix
log=$SIMFAB_DIR/engine.log
counts() { simfab status | sed -nE 's/^time stamp counter: trapped in ([0-9]+) processes so far, patched in ([0-9]+), left real in ([0-9]+), not caught in ([0-9]+)$/\1 \2 \3 \4/p'; }
# CMD...: what it prints on a host, and by how much the numbers of processes have grown
sees() {
  local before
  before=$(counts)
  printf '%s: ' "$(simfab exec h1 -- "$@" 2>&1 | sed 's/, [0-9]* later$//')"
  echo "$before $(counts)" | awk '{n = split("trapped patched left missed", name); for (i = 1; i <= n; i++) if ($(i + 4) > $i) printf "%s %d", name[i], $(i + 4) - $i; print ""}'
}

# ---- what it says -----------------------------------------------------------------------------------------------------

is "nobody has read anything" "$(counts)" "0 0 0 0"
ways=()
if [ "$(SIMFAB_TSC=trap sees "$reads")" = "the counter: virtual: trapped 1" ]; then
  ways+=(trap)
else
  echo "# the kernel's trap does nothing here"
  is "and status says so" "$(SIMFAB_TSC=trap sees "$reads")" "the counter: real: missed 1"
  like "and the log what to do" 'time stamp counter stays real .*SIMFAB_TSC=trap.*unset it' "$log"
fi
if [ "$(SIMFAB_TSC=patch sees "$reads")" = "the counter: virtual: patched 1" ]; then
  ways+=(patch)
else
  echo "# code cannot be patched here"
  is "and status says so" "$(SIMFAB_TSC=patch sees "$reads")" "the counter: real: missed 1"
fi
is "SIMFAB_TSC=real leaves it real" "$(SIMFAB_TSC=real sees "$reads")" "the counter: real: left 1"
is "so does a real clock" "$(SIMFAB_CLOCK=real sees "$reads")" "the counter: real: left 1"
case ${ways[*]} in
  trap*) is "by itself simfab uses the trap" "$(sees "$reads")" "the counter: virtual: trapped 1" ;;
  patch) is "by itself simfab patches" "$(sees "$reads")" "the counter: virtual: patched 1" ;;
esac
is "another word is refused" "$(SIMFAB_TSC=on simfab exec h1 -- true 2>&1)" "simfab: SIMFAB_TSC=on: it may be trap, patch or real, or unset"
not_ok "at the beginning, too" env SIMFAB_TSC=on simfab run --topology two-hosts-two-rails --no-opensm -- true

# ---- machines that lack something -------------------------------------------------------------------------------------

if [[ " ${ways[*]} " == *" patch "* ]]; then
  is "the kernel's trap does nothing: code is patched" "$(sees "$refuse" trap -- "$reads")" "the counter: virtual: patched 1"
  is "without writing by force" "$(sees "$refuse" trap force -- "$reads")" "the counter: virtual: patched 1"
  is "without memory that is writable and executable" "$(sees "$refuse" trap exec -- "$reads")" "the counter: virtual: patched 1"
fi
is "no way is left: the counter is real, and status says so" "$(sees "$refuse" trap force exec -- "$reads")" "the counter: real: missed 1"
like "and the log what to do about it" 'time stamp counter stays real .*proc_mem.force_override' "$log"
is "only the trap is allowed, and does nothing" "$(SIMFAB_TSC=trap sees "$refuse" trap -- "$reads")" "the counter: real: missed 1"
like "so says the log" 'time stamp counter stays real .*SIMFAB_TSC=trap.*unset it' "$log"
mkdir -p "$tmp/half/bin" "$tmp/half/lib" "$tmp/half/libexec/mrmpi"
ln -s ../../lib "$tmp/half/libexec/mrmpi/lib"
cp "$BUILD"/bin/simfab* "$tmp/half/bin/"
cp "$BUILD/lib/libsimfab.so" "$tmp/half/lib/"
is "libsimfab-tsc.so is missing" "$("$tmp/half/bin/simfab" exec h1 -- "$refuse" trap -- "$reads")" "the counter: real"
like "and the log says where it belongs" 'libsimfab-tsc.so, .* cannot be loaded: it belongs beside libsimfab.so' "$log"

# ---- threads, children, what is loaded later --------------------------------------------------------------------------

cat >"$tmp/object.c" <<'C'
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
int constructor_saw;
uint64_t object_reads(void)
{
    uint32_t lo, hi;
    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi) : : "rcx");
    return (uint64_t)hi << 32 | lo;
}
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
__attribute__((constructor)) static void constructor(void)
{
    if (getenv("QUICK"))
        return;
    uint64_t start = cpu_ns(), first = object_reads();
    while (cpu_ns() - start < 5000000)
        ;
    constructor_saw = object_reads() - first < 100000;
}
C
gcc -shared -fPIC -O1 -o "$tmp/object.so" "$tmp/object.c"
cat >"$tmp/wanted" <<'END'
before a device is used: real
rdtsc: virtual
rdtscp: virtual
with a prefix: virtual
a constant: whole
a thread: virtual
a thread from before: real
a handler with all signals blocked: virtual
a child: virtual
its constructor: virtual
what was loaded later: virtual
its constructor: virtual
what was loaded later: virtual
a fault of its own: handled
rdtsc: virtual
another program, before a device is used: real
and after: virtual
END
for way in "${ways[@]}"; do
  SIMFAB_TSC=$way timeout 60 simfab exec h1 -- "$reads" all "$tmp/object.so" >"$tmp/reads.$way" 2>&1
  ok "$way: who reads it sees virtual time, from the first use of a device on" diff <(sed 's/, [0-9]* later$//' "$tmp/reads.$way") "$tmp/wanted"
done
for i in 1 2 3 4; do cp "$tmp/object.so" "$tmp/copy$i.so"; done
for way in "${ways[@]}"; do
  is "$way: threads that load, unload, fork and read, all at once" \
    "$(QUICK=1 SIMFAB_TSC=$way timeout 120 simfab exec h1 -- "$reads" storm "$tmp"/copy?.so 2>&1)" "240 readings, 0 wrong"
done

# ---- the figures ------------------------------------------------------------------------------------------------------

# WAY CMD...: what both ends print, but for numbers and keys that differ from run to run
figures() {
  local way=$1
  shift
  SIMFAB_TSC=$way pair "$@" && grep -hvE 'QPN|LKey|GID|[Pp]ort' "$tmp/client" "$tmp/server" >"$tmp/figures.$way"
}
# On a machine where others take the processor away, two that no launcher starts may find each other a nanosecond later: once more, then.
same_figures() { # CMD...
  local i
  for i in 1 2 3; do
    figures trap "$@" && figures patch "$@" && grep -qE '^ *[0-9]+ +[0-9]+ +[0-9.]+ ' "$tmp/figures.patch" || return 1
    patched=$((patched + 2))
    diff "$tmp/figures.trap" "$tmp/figures.patch" && return 0
  done
  return 1
}
if [ "${ways[*]}" = "trap patch" ]; then
  is "both ways give the same readings" "$(diff "$tmp/reads.trap" "$tmp/reads.patch")" ""
  if command -v ib_send_lat >/dev/null; then
    before=$(counts) patched=0
    # not ib_write_lat, which spins on memory
    programs=("ib_send_lat -n 100 -s 4" "ib_send_lat -n 100 -s 4 -c UD" "ib_atomic_lat -n 50 -A FETCH_AND_ADD" "ib_write_bw -n 100 -b")
    [ "${1:-}" != --all ] || programs+=("ib_read_lat -n 50 -s 4" "ib_send_bw -n 100" "ib_read_bw -n 50" "ib_atomic_bw -n 100")
    for c in "${programs[@]}"; do
      # shellcheck disable=SC2086
      ok "$c prints the same both ways, to the last digit" same_figures $c
    done
    is "two processes for each program, trapped and patched" \
      "$(echo "$before $(counts)" | awk '{print $5 - $1, $6 - $2, $8 - $4}')" "$patched $patched 0"
  fi
fi

# ---- what is found, against a disassembler ----------------------------------------------------------------------------

objects=()
for f in /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/lib{c.so.6,m.so.6,ucs.so.0,uct.so.0,ucp.so.0,mlx5.so.1,open-pal.so.40} \
  /usr/lib/x86_64-linux-gnu/ucx/libuct_ib.so.0; do
  [ -e "$f" ] && objects+=("$f")
done
disassembled() {
  local f
  for f in "${objects[@]}"; do
    objdump -d --no-show-raw-insn "$f" | awk -v f="$(readlink -f "$f")" '$2 ~ /^rdtscp?$/ {sub(":", "", $1); print f, $1}'
  done | sort
}
if [[ -z $san && " ${ways[*]} " == *" patch "* ]] && command -v objdump >/dev/null; then
  ok "what is patched are readings of the counter, none of them twice" \
    bash -c '"$0" "$@" >"$tmp/patched"' "$BUILD/tests/simfab/tsc_find" "$BUILD/lib/libsimfab-tsc.so" "${objects[@]}"
  while read -r f at; do echo "$(readlink -f "$f") $at"; done <"$tmp/patched" | sort >"$tmp/resolved"
  for f in "${objects[@]}"; do readlink -f "$f"; done | sort >"$tmp/files"
  is "all that objdump sees" "$(grep -Ff "$tmp/files" "$tmp/resolved" | diff - <(disassembled))" ""
  ok "which are many" test "$(disassembled | wc -l)" -ge 20
fi

# ---- the engine, which has the trap as well where actors have it -------------------------------------------------------

# it reads no counter itself: something that it is linked or preloaded with may
cat >"$tmp/reader.c" <<'END'
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>
int epoll_pwait2(int fd, struct epoll_event *ev, int max, const struct timespec *ts, const sigset_t *set)
{
    __rdtsc();
    return (int)syscall(SYS_epoll_pwait2, fd, ev, max, ts, set, 8);
}
END
if [[ -z $san && " ${ways[*]} " == *" trap "* ]] && "${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -o "$tmp/reader.so" "$tmp/reader.c"; then
  fabric_end
  ok "a fabric whose engine reads the counter" env LD_PRELOAD="$tmp/reader.so" simfab run --topology two-hosts-two-rails -- \
    bash -c 'env -u LD_PRELOAD mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi" >"$tmp/engine_reads"'
  simfab run --topology two-hosts-two-rails -- mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi" >"$tmp/engine_does_not" 2>/dev/null
  is "gives it up, and the figures are the same" "$(cat "$tmp/engine_reads")" "$(cat "$tmp/engine_does_not")"
fi
done_testing
