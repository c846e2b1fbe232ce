# mrmpi: one non-recursive make. Every folder has a module.mk that declares what it builds:
#
#   PROGRAMS  += simfab            a program in $(BUILD)/bin;    simfab_SRCS, _LDFLAGS, _LDLIBS, _DEPS, _PKGS
#   LIBRARIES += libmrmpi.so       a library in $(BUILD)/lib;    same variables, plus _SONAME, _MAP and _LINKS (extra names)
#   TESTPROGS += tests/x/test_y    a program in $(BUILD)/tests/; same variables, with the target's name as the prefix
#   SCRIPTS, ALIASES          scripts that are programs; other names of programs
#   LIBEXECS                  scripts that programs of ours call
#   $(call unit_test,...)          a unit test, see below;       SCRIPT_TESTS: scripts that `make check` runs; LONG_TESTS, RXE_TESTS: others
#   CFLAGS.simfab/preload          flags of the sources of a folder, CFLAGS.tests/x/test_y.c of one source
#
# _DEPS are libraries of ours that the target links with (libmrmpi.so), _PKGS are pkg-config names.
# A source is compiled once, whatever number of targets link its object; so flags belong to sources, not to targets. But targets
# with a _VARIANT have objects of their own, in obj/VARIANT, compiled with VARIANT_FLAGS.NAME before all other flags.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules
# all cores, unless the command line says otherwise (it wins) or an outer make has decided
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
.SUFFIXES:
.DELETE_ON_ERROR:

CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
DESTDIR  ?=
SAN      ?=
WERROR   ?=
BUILD    ?= build$(if $(SAN),$(if $(filter thread,$(SAN)),/tsan,/san))
# One name for one directory, however it is given: below the tree a relative one, else an absolute one. With two names
# the dependencies of an object would be those of another target.
override BUILD := $(shell realpath -m --relative-base=. -- $(BUILD))
OPT      ?= $(if $(SAN),-O1,-O2)
# Code of tests compiles in half the time.
TEST_OPT ?= $(if $(filter file,$(origin OPT)),$(if $(SAN),-O1,-Og),$(OPT))
# Functions and lines, for backtraces and profiles. DEBUG_INFO=-g adds variables and types, and takes a fifth longer.
DEBUG_INFO ?= $(if $(SAN),-g,-g1)
# None in code of tests, which then compiles in three quarters of the time.
TEST_DEBUG_INFO ?= $(if $(SAN),-g,$(if $(filter file,$(origin DEBUG_INFO)),-g0,$(DEBUG_INFO)))
V        ?= 0
ONLY     ?= %

VERSION  := 0.1.0

CPPFLAGS_ALL := -D_GNU_SOURCE -I. -DMRMPI_VERSION='"$(VERSION)"' $(CPPFLAGS)
CFLAGS_ALL   := -std=gnu17 -Wall -Wextra -Wshadow -Wno-unused-parameter -Wstrict-prototypes -Wmissing-prototypes \
                -fno-common -fvisibility=hidden -fstack-protector-strong $(if $(WERROR),-Werror) $(CFLAGS)
LDFLAGS_ALL  := -Wl,--as-needed -Wl,-z,defs $(LDFLAGS)
ifneq ($(SAN),)
CFLAGS_ALL   += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
LDFLAGS_ALL  := $(filter-out -Wl$(comma)-z$(comma)defs,$(LDFLAGS_ALL)) -fsanitize=$(SAN)
ifeq ($(SAN),thread)
# fences order what two processes see, of which the thread sanitizer knows nothing anyway
CFLAGS_ALL   += -Wno-tsan
endif
endif
comma := ,

Q := $(if $(filter 0,$(V)),@)
# by make itself, not by a shell for each
say = $(if $(filter 0,$(V)),$(info $()  $(1)	$(2)))

PROGRAMS :=
LIBRARIES :=
TESTPROGS :=
SCRIPTS :=
ALIASES :=
LIBEXECS :=
UNIT_TESTS :=
SCRIPT_TESTS :=
LONG_TESTS :=
RXE_TESTS :=
MANPAGES :=
DATA :=
COMPLETIONS :=

# weak stubs (tests/stubs), which each unit test links last
STUBS := $(BUILD)/tests/libstubs.a
# $(call unit_test,NAME,SOURCES,PACKAGES): the program of NAME.c in the folder of the module.mk and of SOURCES, which `make check` runs
unit_test = $(call add_unit_test,$(dir $(lastword $(MAKEFILE_LIST)))$(1),$(2),$(3))
define add_unit_test
$(eval TESTPROGS += $(1))
$(eval UNIT_TESTS += $(1))
$(eval $(1)_SRCS := $(1).c $(2))
$(eval $(1)_PKGS := check $(3))
$(eval $(1)_LDLIBS := $(STUBS) -lpthread -lm)
endef

MODULES := $(sort $(wildcard */module.mk */*/module.mk))
include $(MODULES)

ifeq ($(SAN),thread)
# simfab stands between programs and their locks, which hides them from the thread sanitizer
SCRIPT_TESTS := tests/mpi/shm.sh
LONG_TESTS :=
endif

ALL_TARGETS := $(PROGRAMS) $(LIBRARIES) $(TESTPROGS)

STUB_SRCS   := $(wildcard tests/stubs/*.c)
objects_of   = $(patsubst %.c,$(BUILD)/obj/$(addsuffix /,$($(1)_VARIANT))%.o,$($(1)_SRCS))
PLAIN_OBJS  := $(sort $(foreach t,$(ALL_TARGETS),$(if $($(t)_VARIANT),,$(call objects_of,$(t)))) $(STUB_SRCS:%.c=$(BUILD)/obj/%.o))
VARIANTS    := $(sort $(foreach t,$(ALL_TARGETS),$($(t)_VARIANT)))
$(foreach v,$(VARIANTS),$(eval $(v)_OBJS := $(sort $(foreach t,$(ALL_TARGETS),$(if $(filter $(v),$($(t)_VARIANT)),$(call objects_of,$(t)))))))
ALL_OBJS    := $(PLAIN_OBJS) $(foreach v,$(VARIANTS),$($(v)_OBJS))

# Packages are asked once. One that is not installed yet has no flags; `deps` installs it before a second make compiles.
PKGS := $(sort $(foreach t,$(ALL_TARGETS),$($(t)_PKGS)))
PKG_CFLAGS := $(sort $(foreach p,$(PKGS),$(shell pkg-config --cflags $(p) 2>/dev/null)))
$(foreach p,$(PKGS),$(eval PKG_LIBS.$(p) := $(shell pkg-config --libs $(p) 2>/dev/null)))

# Position independent, since one object may go into a program and into a library. VARIANT: none, or its name.
define compile_rules
$(2): $(BUILD)/obj/$(addsuffix /,$(1))%.o: %.c
	$$(call say,CC,$(addsuffix /,$(1))$$<)
	$(Q)$(CC) $$(VARIANT_FLAGS.$(1)) $$(if $$(filter tests/%,$$<),$(TEST_OPT) $(TEST_DEBUG_INFO),$(OPT) $(DEBUG_INFO)) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) -fPIC $$(PKG_CFLAGS) $$(CFLAGS.$$(patsubst %/,%,$$(dir $$<))) $$(CFLAGS.$$<) -MMD -MP -c -o $$@ $$<
endef
$(eval $(call compile_rules,,$(PLAIN_OBJS)))
$(foreach v,$(VARIANTS),$(eval $(call compile_rules,$(v),$($(v)_OBJS))))

define target_rules
$(1)_OBJS := $(call objects_of,$(1))
$(1)_OURS := $$(addprefix $(BUILD)/lib/,$$($(1)_DEPS))
$(1)_LIBS := $$(foreach p,$$($(1)_PKGS),$$(PKG_LIBS.$$(p))) $$($(1)_LDLIBS)
endef

define program_rules
$(call target_rules,$(1))
$(2)/$(1): $$($(1)_OBJS) $$($(1)_OURS)
	$$(call say,LD,$$@)
	$(Q)$(CC) -pie $(LDFLAGS_ALL) $$($(1)_LDFLAGS) -o $$@ $$($(1)_OBJS) $$($(1)_OURS) \
	    $$(if $$($(1)_DEPS),-Wl$$(comma)-rpath$$(comma)$(3)) $$($(1)_LIBS)
endef

define library_rules
$(call target_rules,$(1))
$(BUILD)/lib/$(1): $$($(1)_OBJS) $$($(1)_OURS) $$($(1)_MAP)
	$$(call say,LD,$$@)
	$(Q)$(CC) -shared $(LDFLAGS_ALL) $$(if $$($(1)_MAP),-Wl$$(comma)--version-script=$$($(1)_MAP)) $$($(1)_LDFLAGS) \
	    -Wl,-soname,$$(or $$($(1)_SONAME),$(1)) -o $$@ $$($(1)_OBJS) $$($(1)_OURS) \
	    $$(if $$($(1)_DEPS),-Wl$$(comma)-rpath$$(comma)'$$$$ORIGIN') $$($(1)_LIBS)
	$(Q)for l in $$($(1)_LINKS); do ln -sfn $(1) $(BUILD)/lib/$$$$l; done
endef

$(foreach p,$(PROGRAMS),$(eval $(call program_rules,$(p),$(BUILD)/bin,'$$$$ORIGIN/../lib')))
$(foreach l,$(LIBRARIES),$(eval $(call library_rules,$(l))))
$(foreach t,$(TESTPROGS),$(eval $(call program_rules,$(t),$(BUILD),'$(abspath $(BUILD)/lib)')))

$(addprefix $(BUILD)/,$(UNIT_TESTS)): $(STUBS)
$(STUBS): $(STUB_SRCS:%.c=$(BUILD)/obj/%.o)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^

# scripts are installed as they are: SCRIPTS += mrrun/mrcc
$(foreach s,$(SCRIPTS),$(eval $(BUILD)/bin/$(notdir $(s)): $(s) ; $$(Q)mkdir -p $$(@D) && install -m 755 $$< $$@))

# names that other MPIs give to our programs, in a folder of their own: ALIASES += mpiexec:mrrun
$(foreach a,$(ALIASES),$(eval $(BUILD)/libexec/mrmpi/bin/$(firstword $(subst :, ,$(a))): ; $$(Q)mkdir -p $$(@D) && ln -sfn ../../../bin/$(lastword $(subst :, ,$(a))) $$@))

$(foreach s,$(LIBEXECS),$(eval $(BUILD)/libexec/mrmpi/$(notdir $(s)): $(s) ; $$(Q)mkdir -p $$(@D) && install -m 755 $$< $$@))

# libexec/mrmpi is laid out as other MPIs' prefixes are: bin, include, lib. There programs find libraries and header, relative
# to themselves; `make install` makes the same links, wherever LIBDIR is (include: libmrmpi/module.mk).
$(BUILD)/libexec/mrmpi/lib:
	$(Q)mkdir -p $(@D) && ln -sfn ../../lib $@

PROGRAM_FILES := $(addprefix $(BUILD)/bin/,$(PROGRAMS) $(notdir $(SCRIPTS)))
LIBEXEC_FILES := $(addprefix $(BUILD)/libexec/mrmpi/,$(notdir $(LIBEXECS)))
ALIAS_FILES := $(foreach a,$(ALIASES),$(BUILD)/libexec/mrmpi/bin/$(firstword $(subst :, ,$(a))))
LIBRARY_FILES := $(addprefix $(BUILD)/lib/,$(LIBRARIES))
TESTPROG_FILES := $(addprefix $(BUILD)/,$(TESTPROGS))

# directories, all at once
DIRS := $(sort $(dir $(ALL_OBJS) $(PROGRAM_FILES) $(LIBRARY_FILES) $(TESTPROG_FILES)))
$(ALL_OBJS) $(PROGRAM_FILES) $(LIBRARY_FILES) $(TESTPROG_FILES): | $(DIRS)
$(DIRS) &:
	$(Q)mkdir -p $(DIRS)

COMMANDS := help check check-all check-san check-rxe demo demo-failover bench figures install uninstall deb docs clean
.PHONY: all programs libraries tests deps compile_commands.json $(COMMANDS)
ifneq ($(and $(filter $(COMMANDS),$(MAKECMDGOALS)),$(filter-out 1,$(words $(MAKECMDGOALS)))),)
# `make clean check`: one after the other; the makes that they start use all cores
.NOTPARALLEL:
endif
#? make               builds the programs and libraries; make tests: and the tests' programs
all: libraries programs
libraries: $(LIBRARY_FILES) | $(BUILD)/libexec/mrmpi/lib
programs: $(PROGRAM_FILES) $(ALIAS_FILES) $(LIBEXEC_FILES)
tests: all $(TESTPROG_FILES)

# lines of this file that begin with #?, each beside its target
help:
	@sed -n 's/^#? //p' Makefile

#? make deps          installs the Debian packages that are missing
deps:
	@packaging/install-deps

#? make check         builds and runs the tests; ONLY=tests/simfab/% those of one room, TEST_JOBS=1 one at a time
check: deps
	+@$(MAKE) --no-print-directory tests
	@BUILD=$(abspath $(BUILD)) tests/run $(filter $(ONLY),$(UNIT_TESTS) $(SCRIPT_TESTS))

#? make check-all     and those that take long
check-all: deps
	+@$(MAKE) --no-print-directory tests
	@BUILD=$(abspath $(BUILD)) tests/run $(filter $(ONLY),$(UNIT_TESTS) $(SCRIPT_TESTS) $(LONG_TESTS))

#? make check-san     the tests in a build that watches for undefined behaviour, wrong addresses and leaks
check-san:
	+@$(MAKE) --no-print-directory SAN=address,undefined check

#? make check-rxe     the library on the kernel's soft-RoCE, in a virtual machine
check-rxe: deps
	+@$(MAKE) --no-print-directory tests
	@BUILD=$(abspath $(BUILD)) tests/run $(RXE_TESTS)

#? make demo          the main job on a simulated fabric of two hosts with two rails
demo: deps
	+@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(BUILD)) tests/demo/demo

#? make demo-failover programs go on while cables are pulled and put back
demo-failover: deps
	+@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(BUILD)) tests/demo/failover

#? make bench         figures beside Debian's MPICH and beside the papers
bench: deps
	+@$(MAKE) --no-print-directory tests
	@BUILD=$(abspath $(BUILD)) bench/run

#? make figures       the papers' figures on simulated hosts; ONLY=000-fig8 one of them, ONLY=000 those of one paper
figures:
	@packaging/install-deps gnuplot-nox
	+@$(MAKE) --no-print-directory all
	@BUILD=$(abspath $(BUILD)) bench/figures/run --out $(abspath $(BUILD))/figures $(if $(subst %,,$(ONLY)),'$(ONLY)')

#? make install       PREFIX=/usr/local, LIBDIR=PREFIX/lib, DESTDIR=
install: all
	@$(INSTALL) install $(INSTALLED)

#? make uninstall     removes what `make install` with the same variables installed
uninstall:
	@$(INSTALL) uninstall $(INSTALLED)

INSTALL = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' BUILD='$(BUILD)' VERSION='$(VERSION)' packaging/install
INSTALLED = --bin '$(PROGRAM_FILES)' --alias '$(ALIAS_FILES)' --libexec '$(LIBEXEC_FILES)' --lib '$(LIBRARY_FILES)' \
            --man '$(MANPAGES)' --data '$(DATA)' --completion '$(COMPLETIONS)'

#? make deb           Debian's packages, in build/deb
deb:
	@packaging/install-deps debhelper dpkg-dev mkdocs
	@packaging/deb $(BUILD)/deb

#? make compile_commands.json    how each source is compiled, for clangd and clang-tidy
compile_commands.json:
	$(Q)+$(MAKE) --no-print-directory --always-make --dry-run V=1 tests | awk -v dir='$(CURDIR)' -f packaging/compile_commands.awk >$@

#? make docs          the guide (docs/) as pages of HTML, in build/site
docs:
	@packaging/install-deps mkdocs
	@mkdocs build --quiet --strict --clean --config-file packaging/mkdocs.yml --site-dir $(abspath $(BUILD))/site
	@echo $(BUILD)/site/index.html

#? make clean         removes build/
clean:
	rm -rf build

-include $(ALL_OBJS:.o=.d)
