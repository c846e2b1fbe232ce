#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Examples, man pages and units against the programs.

. "$(dirname "$0")/lib.sh"

for f in "$top"/etc/policies/*.yaml; do
  ok "etc/policies/${f##*/} is a good policy" fabricctl policy check "$f"
done
sed -n '/^\.SH EXAMPLE/,/^\.fi/p' "$top/man/mrmpi-policy.5" | grep -v '^\.' >example.yaml
ok "the example of mrmpi-policy(5) is a good policy" fabricctl policy check example.yaml
ok "etc/fabricd/fabricd.yaml is a good configuration" fabricd --test --config "$top/etc/fabricd/fabricd.yaml"
ok "etc/fabricd/simfab.yaml is, in a simulated fabric" env SIMFAB_DIR=/x fabricd --test --config "$top/etc/fabricd/simfab.yaml"
not_ok "and not outside" env -u SIMFAB_DIR fabricd --test --config "$top/etc/fabricd/simfab.yaml"
printf 'opensm:\n  confg: /a\n  pid_file: b\nclients: {per_uid: 0}\n' >bad.yaml
exits 2 fabricd --test --config bad.yaml >out 2>&1
like "a wrong configuration is told by place" "^bad.yaml:2:3: error: unknown key 'confg' in opensm, did you mean 'config'" out
like "all of it at once" "^bad.yaml:4:20: error: per_uid is '0'" out

undocumented() { # PROGRAM PAGE: long options that --help tells and the page does not
  "$1" --help | grep -oE -- '--[a-z]+' | sort -u | while read -r o; do
    sed 's/\\-/-/g' "$top/man/$2" | grep -q -- "$o" || echo "$o"
  done
}
is "fabricd(8) has every option" "$(undocumented fabricd fabricd.8)" ""
is "fabricctl(1) has every option" "$(undocumented fabricctl fabricctl.1)" ""
for v in check schema plan diff apply rollback history show verify list set show del; do
  ok "fabricctl(1) has the verb $v" grep -qE "^\.(B|BI) \"?[a-z]+ $v" "$top/man/fabricctl.1"
done

if command -v systemd-analyze >/dev/null; then
  sed "s|@BINDIR@|$BUILD/bin|; /^Documentation/d" "$top/systemd/fabricd.service" >fabricd.service
  sed '/^Documentation/d' "$top/systemd/fabricd.socket" >fabricd.socket
  ok "the daemon is shut in: its exposure is at most 2.0" \
    systemd-analyze security --offline=true --threshold=20 "$tmp/fabricd.service"
  ok "the units are good" systemd-analyze verify "$tmp/fabricd.service" "$tmp/fabricd.socket"
  sed "s|@LIBEXECDIR@|$BUILD/libexec/mrmpi|; /^Documentation/d; s/^Requisite=.*//" "$top/systemd/fabric-slurm.service" >fabric-slurm.service
  ok "Slurm's, too" systemd-analyze verify "$tmp/fabric-slurm.service"
fi

if command -v systemd-tmpfiles >/dev/null; then
  ok "the directories are good" systemd-tmpfiles --root="$tmp" --create "$top/systemd/mrmpi.tmpfiles"
  is "and only the daemon's own is private" "$(stat -c '%a %n' run/fabricd etc/fabricd var/lib/fabricd | xargs)" \
    "755 run/fabricd 755 etc/fabricd 700 var/lib/fabricd"
fi
ids() { grep -oE '\b[0-9a-f]{32}\b' "$1" | sort; }
is "the catalog explains every message that has an id" "$(ids "$top/systemd/mrmpi.catalog")" "$(ids "$top/fabricd/base/log.h")"
if command -v journalctl >/dev/null; then
  mkdir -p usr/lib/systemd/catalog var/lib/systemd/catalog
  cp "$top/systemd/mrmpi.catalog" usr/lib/systemd/catalog
  journalctl --root="$tmp" --update-catalog
  is "and the journal can read it" "$(journalctl --root="$tmp" --list-catalog | grep -c ' mrmpi: ')" "$(ids "$top/fabricd/base/log.h" | wc -l)"
fi

done_testing
