# SPDX-License-Identifier: BSD-3-Clause
# mrrun, the local launcher, and the compiler wrappers.

PROGRAMS += mrrun
# --explain reads settings and rules as the library does
mrrun_SRCS := $(wildcard mrrun/*.c) $(addprefix libmrmpi/,base/config.c base/log.c base/clock.c link/kinds.c rail/rules.c fabric/client.c)
CFLAGS.mrrun := -DMRMPI_LIBDIR='"$(LIBDIR)"'
mrrun_PKGS := pmix
mrrun_LDLIBS := -lpthread
SCRIPTS += mrrun/mrcc mrrun/mrc++
