#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# A new kind of link is one file and one row: toy/toy.c, which loses every eighth packet, is added to a copy of the library by
# that alone. All that asks for kinds of links then knows it, and a job runs over it. So is a new protocol for large messages,
# toy/pushed.c, and a new way of bytes into packets, toy/spelled.c.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
copy=$tmp/copy mrrun=$tmp/copy/build/bin/mrrun
for v in $(compgen -e | grep '^MRMPI_'); do unset "$v"; done
export MRMPI_LOG_LEVEL=2 MRMPI_LEAKS=yes

mkdir -p "$copy" && cp -a "$root"/{Makefile,libmrmpi,mrrun} "$copy" || exit 2
(cd "$root" && find fabricd -name '*.h' -exec cp -a --parents -t "$copy" {} +) || exit 2
# what does not know the kinds of links is not compiled again, where it was compiled under the names that the copy has
if [ "$BUILD" = "$root/build" ]; then
  mkdir -p "$copy/build/obj" && cp -a "$BUILD"/obj/{libmrmpi,mrrun,standard} "$copy/build/obj" || exit 2
fi
cp "$root/tests/libmrmpi/toy/toy.c" "$copy/libmrmpi/verbs/link/"
echo 'MR_KIND(TOY, "toy", mr_link_toy, MR_IS_CONNECTED, "connections that lose every eighth packet")' >>"$copy/libmrmpi/verbs/link/kinds.def"
cp "$root/tests/libmrmpi/toy/pushed.c" "$copy/libmrmpi/p2p/rndv/"
sed -i '0,/^MR_PROTOCOL/s//MR_PROTOCOL(mr_toy_protocol)\n&/' "$copy/libmrmpi/p2p/rndv/protocols.def"
cp "$root/tests/libmrmpi/toy/spelled.c" "$copy/libmrmpi/p2p/payload/"
sed -i '0,/^MR_PAYLOAD/s//MR_PAYLOAD(spelled, len \&\& p->type->contiguous)\n&/' "$copy/libmrmpi/p2p/payload/payloads.def"
changes() { diff -r "$root/libmrmpi" "$copy/libmrmpi"; diff -r "$root/mrrun" "$copy/mrrun"; }
is "one file and one row are new, for each" \
  "$(changes | sed 's/^> MR_[A-Z]*(.*/a row/; s/^Only in .*: \(toy\|pushed\|spelled\)\.c/a file/; /^diff /d; s/^[0-9]*a[0-9]*$/added/' | sort | uniq -c | xargs)" \
  "3 a file 3 a row 3 added"
build() { # without the flags of the make that runs this; its code is not what is measured
  env -u BUILD -u SAN -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u CFLAGS -u LDFLAGS \
    make -j2 -C "$copy" OPT=-O0 DEBUG_INFO=-g0 libraries build/bin/mrrun >"$tmp/made" 2>&1 || { tail -n 20 "$tmp/made"; return 1; }
}
ok "the library is built" build
not_ok "without a warning of the compiler" grep -E '^[^ ]+\.(c|h|def):[0-9:]+ warning' "$tmp/made"

# ---- what knows it -----------------------------------------------------------------------------------------------
explain() { timeout 20 "$mrrun" --explain "$@" >"$tmp/out" 2>"$tmp/err" </dev/null; }
ok "a list of kinds" explain -x MRMPI_LINKS=rc,Toy
like "has it" '^  toy  connections that lose every eighth packet made reliable: the receiver acknowledges$' "$tmp/out"
ok "alone" explain -x MRMPI_LINKS=toy -x MRMPI_RELIABLE=no
like "it is known to be unsafe" '^  toy  connections that lose every eighth packet, native: WHAT IS LOST IS LOST$' "$tmp/out"
like "and to have no RDMA" '^   1  any: toy$' "$tmp/out"
like "but connections" '^  connections: to every rank of another host' "$tmp/out"
not_ok "a name that is none" explain -x MRMPI_LINKS=toys
like "the message has its name" 'is not auto, or a comma list of rc, uc, ud, ring and toy, each at most once' "$tmp/out"
ok "rules" explain -x MRMPI_LINKS=rc,toy -x 'MRMPI_RULES=eager size<=64: toy; any: rc'
like "name it" '^   1  eager size<=64: toy$' "$tmp/out"
not_ok "rules that are wrong" explain -x 'MRMPI_RULES=any: toys'
like "say that they may" 'here comes a kind of link: rc, uc, ud, ring or toy' "$tmp/out"

# ---- jobs --------------------------------------------------------------------------------------------------------
job() { # -x NAME=VALUE...: of failover, without a command; "toy: links=..." is what toy.c says of itself
  timeout -k 5 200 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- \
    "$mrrun" -n 2 --ppn 1 --stats "$@" "$BUILD/tests/mpi/failover" 3 >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  sed 's/^/# /' "$tmp/out" | cut -c 1-200 | tail -n 30
  [ $rc = 0 ] && grep -q '^3 rounds, 0 errors' "$tmp/out" && ! grep -q 'leak:' "$tmp/out"
}
most() { sed -n "s/.*toy: .*$1=\([0-9]*\).*/\1/p" "$tmp/out" | sort -n | tail -n 1; }          # of either rank
counted() { sed -n "s/.* counters: .*\b$1=\([0-9]*\).*/\1/p" "$tmp/out" | awk '{n += $1} END {print n + 0}'; } # COUNTER
ok "a job over it alone: nothing is lost, doubled or changed" job -x MRMPI_LINKS=toy
is "a link for each rail" "$(most links)" 2
ok "it carried all packets ($(most carried)) but those that it lost ($(most lost))" \
  test "$(most carried)" -gt 1000 -a "$(most lost)" -eq 100
ok "which were sent again ($(counted resent))" test "$(counted resent)" -ge "$(most lost)"
is "no large message went by RDMA, and no link broke" "$(counted net_stripes) $(counted broken)" "0 0"
ok "a job by rules: short messages over it" job -x MRMPI_LINKS=rc,toy -x 'MRMPI_RULES=eager size<=64: toy; any: rc'
ok "it carried those ($(most carried)), and large ones went by RDMA ($(counted net_stripes))" \
  test "$(most carried)" -gt 10 -a "$(most carried)" -lt 1000 -a "$(counted net_stripes)" -gt 0

# ---- a protocol, by which one of two large messages goes, and a way of bytes into packets
large() { # LAUNCH...: what they say of themselves
  "$@" "$mrrun" -n 2 "$BUILD/tests/mpi/p2p_sizes" >"$tmp/out" 2>&1 </dev/null
  echo "$? $(grep -c 'toy: received=[1-9]' "$tmp/out") $(grep -c 'toy: spelled=[1-9]' "$tmp/out") $(grep -c 'leak:' "$tmp/out")"
}
is "a job in memory: both ranks received by it, and spelled" "$(large timeout 60)" "0 2 2 0"
is "a job on two hosts, too" \
  "$(large timeout 100 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" --)" "0 2 2 0"
done_testing
