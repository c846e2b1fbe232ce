# SPDX-License-Identifier: BSD-3-Clause
# mrrun, the local launcher, and the compiler wrappers.

PROGRAMS += mrrun
# --explain reads settings and rules, looks at ports and allocators and pairs rails as the library does
mrrun_SRCS := $(wildcard mrrun/*.c) $(addprefix libmrmpi/,base/config.c base/config_table.c base/log.c base/clock.c base/model.c base/stats.c verbs/link/kinds.c verbs/memory/image.c verbs/memory/objects.c conn/route/rules.c conn/route/policy.c conn/fabric/client.c \
    conn/route/ahead.c conn/route/pair.c conn/route/sched.c verbs/distance.c verbs/gid.c verbs/pkey.c verbs/port.c verbs/select.c \
    launch/triplets.c)
mrrun_PKGS := pmix libibverbs hwloc
mrrun_LDLIBS := -lpthread
SCRIPTS += mrrun/mrcc mrrun/mrc++
ALIASES += mpiexec:mrrun mpirun:mrrun mpicc:mrcc mpicxx:mrcc mpic++:mrcc mpiCC:mrcc mpifort:mrcc mpif77:mrcc mpif90:mrcc
