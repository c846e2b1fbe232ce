# SPDX-License-Identifier: BSD-3-Clause
# libmrmpi.so is the library proper; libmpi.so.12 and libmpi_abi.so.1 are the thin shells on top, with the binary interfaces
# of MPICH and of the standard, of the same sources.

LIBRARIES += libmrmpi.so
LIBMRMPI_ROOMS := $(addprefix libmrmpi/,api/init io rma rma/winlock rma/winmem coll/comm coll coll/schedule coll/node core p2p/derived p2p p2p/fault p2p/rndv p2p/payload p2p/request p2p/progress p2p/choice p2p/match core/pieces net net/bulk net/zcopy net/stripe conn net/view conn/peer conn/cm conn/route conn/reliable channel verbs/link verbs/memory verbs launch conn/fabric base)
libmrmpi.so_SRCS := $(sort $(wildcard $(LIBMRMPI_ROOMS:%=%/*.c)))
libmrmpi.so_PKGS := libibverbs pmix hwloc
# Exports are the map's business (mr_* for the ABI shells), so visibility must not hide them before the map is read.
$(foreach r,$(LIBMRMPI_ROOMS),$(eval CFLAGS.$(r) := -fvisibility=default -fno-semantic-interposition))
# What every short message passes: canaries where characters are gathered, not in each function that gives an address away
LIBMRMPI_PATH := $(addprefix libmrmpi/,base/copier.c coll/node p2p p2p/rndv p2p/payload p2p/request p2p/progress p2p/choice p2p/match channel net conn/reliable verbs/link verbs)
$(foreach r,$(LIBMRMPI_PATH),$(eval CFLAGS.$(r) += -fstack-protector -fno-plt))
# Loops that are compiled once for each level of vector instructions (base/vectors.h). No fused products: all levels
# give the same bits.
$(foreach l,base avx2 avx512,$(eval VECTORS.$(l) := -O3 -ffp-contract=off -fno-trapping-math))
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
VECTORS.avx2 += -mavx2
VECTORS.avx512 += -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
endif
$(foreach l,base avx2 avx512,$(foreach f,core/op core/move base/copy,$(eval CFLAGS.libmrmpi/$(f)_$(l).c := $(VECTORS.$(l)))))
# Loops over a few bytes are not to become calls of memcpy: gcc's, clang leaves these alone and does not know the option.
LOOPS_STAY := -fno-tree-loop-distribute-patterns
CFLAGS.libmrmpi/core/move.c := $(shell $(CC) $(LOOPS_STAY) -x c -fsyntax-only /dev/null 2>/dev/null && echo $(LOOPS_STAY))
# nodelete: the C library's functions may have been led here (memory/calls.h)
libmrmpi.so_LDFLAGS := -Wl,-Bsymbolic -Wl,-z,nodelete
libmrmpi.so_MAP := libmrmpi/mrmpi.map
libmrmpi.so_LDLIBS := -lpthread -lm

# what only one of the two interfaces has
ONLY_MPICH := abi_mpich.c fault.c fortran.c language.c mpix.c removed.c
ONLY_STANDARD := abi_standard.c part_large.c

LIBRARIES += libmpi.so.12
libmpi.so.12_SRCS := $(filter-out $(addprefix libmrmpi/api/,$(ONLY_STANDARD)),$(sort $(wildcard libmrmpi/api/*.c)))
libmpi.so.12_DEPS := libmrmpi.so
libmpi.so.12_LINKS := libmpi.so libmpich.so.12 libmpich.so
CFLAGS.libmrmpi/api := -Ilibmrmpi/include -fvisibility=default -fno-semantic-interposition -fstack-protector -fno-plt
# A rank that hangs names its MPI function (api/inquiry.c): none leaves the stack by a tail call, or is cut in two
CFLAGS.libmrmpi/api += -fno-optimize-sibling-calls
IN_ONE_PIECE := -fno-reorder-blocks-and-partition
CFLAGS.libmrmpi/api += $(shell $(CC) -Werror $(IN_ONE_PIECE) -x c -fsyntax-only /dev/null 2>/dev/null && echo $(IN_ONE_PIECE))
libmpi.so.12_LDFLAGS := -Wl,-Bsymbolic-functions
libmpi.so.12_MAP := libmrmpi/api/mpich.map

LIBRARIES += libmpi_abi.so.1
libmpi_abi.so.1_VARIANT := standard
VARIANT_FLAGS.standard := -DMRMPI_ABI_STANDARD -Ilibmrmpi/include/standard
libmpi_abi.so.1_SRCS := $(filter-out $(addprefix libmrmpi/api/,$(ONLY_MPICH)),$(sort $(wildcard libmrmpi/api/*.c)))
libmpi_abi.so.1_DEPS := libmrmpi.so
libmpi_abi.so.1_LINKS := libmpi_abi.so
libmpi_abi.so.1_LDFLAGS := -Wl,-Bsymbolic-functions
libmpi_abi.so.1_MAP := libmrmpi/api/standard.map

# where mrcc looks for the header
all: $(BUILD)/libexec/mrmpi/include
$(BUILD)/libexec/mrmpi/include:
	$(Q)mkdir -p $(@D) && ln -sfn "$$(realpath --relative-to=$(@D) libmrmpi/include)" $@
