# SPDX-License-Identifier: BSD-3-Clause
# Man pages: one line per page (or let the folder that owns the program append its own).
MANPAGES += man/mrrun.1
MANPAGES += man/mrcc.1
MANPAGES += man/libmrmpi.7

# The table of functions is made of the header and of the list of what is not supported.
MANPAGES += $(BUILD)/man/mrmpi-functions.7
all: $(BUILD)/man/mrmpi-functions.7
$(BUILD)/man/mrmpi-functions.7: man/functions.sh libmrmpi/include/mpi.h libmrmpi/api/absent.c
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)man/functions.sh libmrmpi/include/mpi.h libmrmpi/api/absent.c >$@
