# SPDX-License-Identifier: BSD-3-Clause
TESTPROGS += tests/mrrun/test_placement
tests/mrrun/test_placement_SRCS := tests/mrrun/test_placement.c mrrun/placement.c libmrmpi/launch/mapping.c \
                                   libmrmpi/launch/nodemap.c
tests/mrrun/test_placement_PKGS := check

TESTPROGS += tests/mrrun/test_options
tests/mrrun/test_options_SRCS := tests/mrrun/test_options.c $(addprefix mrrun/,options.c others.c ranges.c binding.c outfiles.c output.c hostlist.c words.c environment.c)
tests/mrrun/test_options_PKGS := check

TESTPROGS += tests/mrrun/test_output
tests/mrrun/test_output_SRCS := tests/mrrun/test_output.c mrrun/output.c mrrun/verdict.c
tests/mrrun/test_output_PKGS := check

TESTPROGS += tests/mrrun/test_records
tests/mrrun/test_records_SRCS := tests/mrrun/test_records.c mrrun/records.c mrrun/stats.c mrrun/timeline.c \
    $(addprefix libmrmpi/,base/config.c base/config_table.c base/log.c base/record.c base/stats.c verbs/link/kinds.c)
tests/mrrun/test_records_PKGS := check

TESTPROGS += tests/mrrun/test_waits
tests/mrrun/test_waits_SRCS := tests/mrrun/test_waits.c mrrun/waits.c
tests/mrrun/test_waits_PKGS := check

TESTPROGS += tests/mrrun/test_wire
tests/mrrun/test_wire_SRCS := tests/mrrun/test_wire.c $(addprefix mrrun/,wire.c watch.c link.c channel.c tree.c allocation.c)
tests/mrrun/test_wire_PKGS := check

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

UNIT_TESTS += tests/mrrun/test_placement tests/mrrun/test_options tests/mrrun/test_output tests/mrrun/test_records \
              tests/mrrun/test_waits tests/mrrun/test_wire
SCRIPT_TESTS += tests/mrrun/launch.sh tests/mrrun/mpiexec.sh tests/mrrun/failure.sh tests/mrrun/output.sh tests/mrrun/signals.sh \
                tests/mrrun/cleanup.sh tests/mrrun/explain.sh tests/mrrun/simulated.sh tests/mrrun/mrcc.sh tests/mrrun/view.sh tests/mrrun/pairs.sh \
                tests/mrrun/deaths.sh tests/mrrun/hangs.sh tests/mrrun/agents.sh
LONG_TESTS += tests/mrrun/deaths_all.sh tests/mrrun/agents_all.sh tests/mrrun/fuzz.sh
