#!/usr/bin/env bash
# However BUILD is written, it is one directory with one set of targets: a header that changes is seen by all of them.
. "$(dirname "$0")/../tap.sh"
cd "$(dirname "$0")/../.." || exit 2
unset SAN
tree=$tmp/tree
mkdir -p "$tree/room"
cp Makefile "$tree"
ln -s tree "$tmp/link"
cd "$tree" || exit 2
echo 'PROGRAMS += hello
hello_SRCS := room/hello.c' >room/module.mk
echo '#include "room/hello.h"
#include <stdio.h>
int main(void) { return puts(HELLO) < 0; }' >room/hello.c

# FORM...: the header changes before each; "-" is make without BUILD
says() {
  local form said
  rm -rf build
  for form; do
    echo "#define HELLO \"changed for $form\"" >room/hello.h
    if [ "$form" = - ]; then
      env -u BUILD make --no-print-directory all || return
    else
      BUILD=$form make --no-print-directory all || return
    fi
    said=$(build/bin/hello)
    [ "$said" = "changed for $form" ] || { echo "after BUILD=$form it says: $said"; return 1; }
  done
}
given() { # by the command line, which wins over the Makefile
  local said
  echo '#define HELLO "changed for the command line"' >room/hello.h
  make --no-print-directory all BUILD="$tree/build" || return
  said=$(build/bin/hello)
  echo "$said"
  [ "$said" = "changed for the command line" ]
}
outside() { # it is left where it was asked for
  BUILD=$tmp/other make --no-print-directory all && [ -x "$tmp/other/bin/hello" ]
}

ok "BUILD=\$PWD/build and no BUILD are the same targets" says "$tree/build" - "$tree/build" -
ok "BUILD=./build, build/ and one with dots too" says ./build - build/ "$tree/./room/../build/" -
ok "BUILD through a symbolic link too" says "$tmp/link/build" - "$tmp/link/build"
ok "BUILD on the command line too" given
ok "BUILD outside of the tree stays there" outside

unnamed() { # commands that have no line of their own in `make help`
  local c
  make --no-print-directory help >"$tmp/help" || echo "make help fails"
  for c in $(sed -n 's/^COMMANDS := help //p' Makefile); do grep -q "^make $c " "$tmp/help" || echo "$c"; done
}
is "make help names every command" "$(unnamed)" ""
done_testing
