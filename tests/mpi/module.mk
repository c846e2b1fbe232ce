# SPDX-License-Identifier: BSD-3-Clause
# The MPI programs of programs.list, and the scripts that run them.

MPI_TESTS := $(patsubst tests/mpi/%.c,%,$(wildcard tests/mpi/*.c))
TESTPROGS += $(addprefix tests/mpi/,$(MPI_TESTS))
define mpi_test
tests/mpi/$(1)_SRCS := tests/mpi/$(1).c
tests/mpi/$(1)_DEPS := libmpi.so.12
tests/mpi/$(1)_LDLIBS := -lpthread -lm
endef
$(foreach t,$(MPI_TESTS),$(eval $(call mpi_test,$(t))))

# functions of theirs take the place of the C library's
tests/mpi/slow_card_LDFLAGS := -rdynamic
tests/mpi/file_views_LDFLAGS := -rdynamic
tests/mpi/p2p_freed_LDFLAGS := -rdynamic

# compiled as users compile: a program's references to the library's variables become copies
CFLAGS.tests/mpi := -fPIE -Ilibmrmpi/include

# programs that spend their time on filling and comparing buffers
FILLS := coll_node coll_ready failover p2p_batches p2p_freed p2p_modes p2p_order p2p_sizes p2p_zcopy rma_sizes rma_types steps
$(foreach t,$(if $(SAN),,$(FILLS)),$(eval CFLAGS.tests/mpi/$(t).c := -O3))

# Every function with its arguments
$(BUILD)/tests/mpi/functions.h: tests/mpi/functions.awk $(BUILD)/man/mrmpi-functions.7 libmrmpi/include/mpi.h
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)awk -f $^ >$@
CFLAGS.tests/mpi/arguments.c := -I$(BUILD)/tests/mpi
$(BUILD)/obj/tests/mpi/arguments.o: $(BUILD)/tests/mpi/functions.h

# the standard's binary interface; further programs are compiled by standard/abi.sh
TESTPROGS += tests/mpi/standard/objects
tests/mpi/standard/objects_VARIANT := standard
tests/mpi/standard/objects_SRCS := tests/mpi/standard/objects.c
tests/mpi/standard/objects_DEPS := libmpi_abi.so.1
CFLAGS.tests/mpi/standard := -fPIE

SCRIPT_TESTS += tests/mpi/standard/abi.sh
LONG_TESTS += tests/mpi/standard/abi.sh:--all tests/mpi/no_mpich.sh tests/mpi/coll_bits.sh:--all
SCRIPT_TESTS += tests/mpi/abi_check.sh tests/mpi/standard.sh tests/mpi/algorithms.sh tests/mpi/coll_table.sh tests/mpi/fatal.sh tests/mpi/leaks.sh tests/mpi/lost.sh tests/mpi/parted.sh tests/mpi/binary.sh tests/mpi/languages.sh tests/mpi/fortran.sh tests/mpi/shm.sh tests/mpi/shm_stream.sh tests/mpi/net1.sh tests/mpi/net2.sh tests/mpi/read.sh tests/mpi/remap.sh tests/mpi/costs.sh tests/mpi/allocators.sh tests/mpi/threads_net.sh
SCRIPT_TESTS += tests/mpi/flow.sh tests/mpi/bursts.sh tests/mpi/failover.sh tests/mpi/steps.sh tests/mpi/ways.sh tests/mpi/mixed.sh tests/mpi/lossy.sh tests/mpi/eager_max.sh tests/mpi/uc_zcopy.sh tests/mpi/ud_zcopy.sh tests/mpi/connect.sh tests/mpi/lids.sh tests/mpi/pkeys.sh tests/mpi/soak.sh tests/mpi/links.sh tests/mpi/budget.sh tests/mpi/rules.sh tests/mpi/rings.sh tests/mpi/scale.sh tests/mpi/rma_rails.sh tests/mpi/rma_async.sh tests/mpi/rma_attach.sh tests/mpi/rma_far.sh tests/mpi/coarrays.sh tests/mpi/hdf5.sh tests/mpi/recover.sh tests/mpi/survive.sh tests/mpi/survive_far.sh tests/mpi/survive_ud.sh tests/mpi/unheard.sh tests/mpi/texts.sh
SCRIPT_TESTS += tests/mpi/ports.sh tests/mpi/spawn.sh tests/mpi/coll_bits.sh tests/mpi/cold.sh tests/mpi/near.sh
LONG_TESTS += tests/mpi/shm.sh:--all tests/mpi/net1.sh:--all tests/mpi/net2.sh:--all tests/mpi/eager_max.sh:--all tests/mpi/huge.sh tests/mpi/ranks.sh tests/mpi/ranks_net1.sh tests/mpi/ranks_net2.sh tests/mpi/mutants.sh tests/mpi/steps.sh:--all
LONG_TESTS += tests/mpi/failover.sh:--all tests/mpi/bursts.sh:--all tests/mpi/pkeys.sh:--all tests/mpi/rma_rails.sh:--all tests/mpi/rma_far.sh:--all tests/mpi/ways.sh:--all tests/mpi/mixed.sh:--all tests/mpi/lossy.sh:--all tests/mpi/stopped.sh tests/mpi/flapping.sh tests/mpi/soak.sh:--all tests/mpi/links.sh:--all tests/mpi/ud_zcopy.sh:--all tests/mpi/scale_1024.sh tests/mpi/rings.sh:--all tests/mpi/remap.sh:--all tests/mpi/allocators.sh:--all tests/mpi/coarrays.sh:--all tests/mpi/recover.sh:--all tests/mpi/survive.sh:--all tests/mpi/survive_far.sh:--all tests/mpi/survive_ud.sh:--all tests/mpi/ports.sh:--all tests/mpi/spawn.sh:--all tests/mpi/budget.sh:--all tests/mpi/cold.sh:--all tests/mpi/read.sh:--all
