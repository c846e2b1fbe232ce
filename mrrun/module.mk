# SPDX-License-Identifier: BSD-3-Clause
# mrrun, the local launcher, and the compiler wrappers.

PROGRAMS += mrrun
mrrun_SRCS := $(wildcard mrrun/*.c)
CFLAGS.mrrun := -DMRMPI_LIBDIR='"$(LIBDIR)"'
mrrun_PKGS := pmix
mrrun_LDLIBS := -lpthread
SCRIPTS += mrrun/mrcc mrrun/mrc++
