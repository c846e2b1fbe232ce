# SPDX-License-Identifier: BSD-3-Clause
# Fortran's interface: libmpifort.so.12 above libmpi.so.12, mpif.h and modules. C code, so that only the modules need a
# Fortran compiler; without one there are none.

LIBRARIES += libmpifort.so.12
libmpifort.so.12_SRCS := $(sort $(wildcard libmrmpi/fortran/*.c))
libmpifort.so.12_DEPS := libmpi.so.12
libmpifort.so.12_LINKS := libmpifort.so libmpichfort.so.12 libmpichfort.so
libmpifort.so.12_MAP := libmrmpi/fortran/fortran.map
FORTRAN_MADE := $(BUILD)/obj/libmrmpi/fortran
CFLAGS.libmrmpi/fortran := -I$(FORTRAN_MADE) -fvisibility=default -fno-semantic-interposition -fno-plt

FORTRAN_FROM := $(wildcard libmrmpi/fortran/*.py) libmrmpi/fortran/functions.txt libmrmpi/include/mpi.h
$(addprefix $(FORTRAN_MADE)/,f77.inc f08.inc data.inc): $(FORTRAN_FROM)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && python3 -B libmrmpi/fortran/generate.py $@
$(FORTRAN_MADE)/f77.o: $(FORTRAN_MADE)/f77.inc
$(FORTRAN_MADE)/f08.o $(FORTRAN_MADE)/f08_profile.o: $(FORTRAN_MADE)/f08.inc
$(FORTRAN_MADE)/data.o: $(FORTRAN_MADE)/data.inc

# where mrcc and `make install` look for mpif.h and the modules
GFORTRAN ?= gfortran
FORTRAN_FILES := $(BUILD)/libexec/mrmpi/fortran/mpif.h
ifneq ($(shell command -v $(GFORTRAN)),)
FORTRAN_FILES += $(BUILD)/libexec/mrmpi/fortran/mpi.mod $(BUILD)/libexec/mrmpi/fortran/mpi_f08.mod
endif
# flang's modules: of a flang that knows arguments of type(*)
FLANG ?= $(shell for f in flang-new-22 flang-22 flang-new-21 flang-21 flang-new-20 flang-20 flang-new-19 flang-new flang; do command -v $$f && break; done)
ifneq ($(FLANG),)
ifeq ($(shell test "$$($(FLANG) --version | sed -nE '1s/.*version ([0-9]+).*/\1/p')" -ge 19 2>/dev/null && echo yes),yes)
FORTRAN_FILES += $(BUILD)/libexec/mrmpi/fortran/flang/mpi.mod $(BUILD)/libexec/mrmpi/fortran/flang/mpi_f08.mod
endif
endif
all: $(FORTRAN_FILES)
$(addprefix $(BUILD)/libexec/mrmpi/fortran/,mpif.h mpi.f90 mpi_f08.f90): $(FORTRAN_FROM)
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && python3 -B libmrmpi/fortran/generate.py $@
$(BUILD)/libexec/mrmpi/fortran/%.mod: $(BUILD)/libexec/mrmpi/fortran/%.f90
	$(call say,FC,$<)
	$(Q)cd $(@D) && $(GFORTRAN) -fsyntax-only $(<F) && touch $(@F)
$(BUILD)/libexec/mrmpi/fortran/flang/%.mod: $(BUILD)/libexec/mrmpi/fortran/%.f90
	$(call say,FC,flang/$(<F))
	$(Q)mkdir -p $(@D) && cd $(@D) && $(FLANG) -fsyntax-only ../$(<F) && touch $(@F)
