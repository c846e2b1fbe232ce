# SPDX-License-Identifier: BSD-3-Clause
$(call unit_test,test_placement,mrrun/placement.c libmrmpi/launch/mapping.c libmrmpi/launch/nodemap.c)

$(call unit_test,test_doubts,mrrun/doubts.c)

$(call unit_test,test_options, \
    $(addprefix mrrun/,options.c others.c ranges.c binding.c outfiles.c output.c hostlist.c words.c environment.c) \
    libmrmpi/launch/triplets.c)

$(call unit_test,test_output,mrrun/output.c mrrun/verdict.c)

$(call unit_test,test_records,mrrun/records.c mrrun/stats.c mrrun/timeline.c \
    $(addprefix libmrmpi/,base/config.c base/config_table.c base/log.c base/record.c base/stats.c verbs/link/kinds.c))

$(call unit_test,test_peer,mrrun/peer.c)

$(call unit_test,test_processes,mrrun/processes.c)

$(call unit_test,test_waits,mrrun/waits.c)

$(call unit_test,test_wire,$(addprefix mrrun/,wire.c watch.c link.c channel.c tree.c allocation.c))

# An MPI program whose ranks wait for ever.
TESTPROGS += tests/mrrun/hangs
tests/mrrun/hangs_SRCS := tests/mrrun/hangs.c
tests/mrrun/hangs_DEPS := libmpi.so.12
CFLAGS.tests/mrrun/hangs.c := -fPIE -Ilibmrmpi/include

# A rank for the scripts: it talks to the launch room alone.
TESTPROGS += tests/mrrun/test_launch_client
tests/mrrun/test_launch_client_SRCS := tests/mrrun/test_launch_client.c
tests/mrrun/test_launch_client_DEPS := libmrmpi.so

# An MPI rank of a job of several programs
TESTPROGS += tests/mrrun/part
tests/mrrun/part_SRCS := tests/mrrun/part.c
tests/mrrun/part_DEPS := libmpi.so.12

# An MPI rank that ends at a chosen step of MPI_Init or MPI_Finalize.
TESTPROGS += tests/mrrun/dies
tests/mrrun/dies_SRCS := tests/mrrun/dies.c
tests/mrrun/dies_DEPS := libmpi.so.12
tests/mrrun/dies_LDFLAGS := -rdynamic

# An MPI rank that dies of a signal.
TESTPROGS += tests/mrrun/crash
tests/mrrun/crash_SRCS := tests/mrrun/crash.c
tests/mrrun/crash_DEPS := libmpi.so.12
tests/mrrun/crash_LDFLAGS := -rdynamic
CFLAGS.tests/mrrun/crash.c := -g -O0 -fPIE -Ilibmrmpi/include -Wno-infinite-recursion

SCRIPT_TESTS += tests/mrrun/launch.sh tests/mrrun/mpiexec.sh tests/mrrun/failure.sh tests/mrrun/output.sh tests/mrrun/signals.sh \
                tests/mrrun/cleanup.sh tests/mrrun/explain.sh tests/mrrun/simulated.sh tests/mrrun/mrcc.sh tests/mrrun/view.sh tests/mrrun/pairs.sh \
                tests/mrrun/deaths.sh tests/mrrun/hangs.sh tests/mrrun/crash.sh \
                tests/mrrun/agents.sh tests/mrrun/ssh.sh
LONG_TESTS += tests/mrrun/deaths.sh:--all tests/mrrun/agents_many.sh tests/mrrun/ssh.sh:--all tests/mrrun/fuzz.sh
