# SPDX-License-Identifier: BSD-3-Clause
# Man pages: one line per page (or let the folder that owns the program append its own).
MANPAGES += man/mrrun.1
MANPAGES += man/mrcc.1

# The library's page is made of its text and of the tables of settings and counters.
MANPAGES += $(BUILD)/man/libmrmpi.7
TESTPROGS += man/page
man/page_SRCS := man/page.c libmrmpi/base/config.c libmrmpi/base/config_table.c libmrmpi/base/stats.c libmrmpi/base/log.c
all: $(BUILD)/man/libmrmpi.7
$(BUILD)/man/libmrmpi.7: man/libmrmpi.7.in $(BUILD)/man/page
	$(call say,MAN,$@)
	$(Q)$(BUILD)/man/page man/libmrmpi.7.in >$@.part && mv $@.part $@

# The table of functions is made of the header.
MANPAGES += $(BUILD)/man/mrmpi-functions.7
all: $(BUILD)/man/mrmpi-functions.7
$(BUILD)/man/mrmpi-functions.7: man/functions.sh libmrmpi/include/mpi.h
	$(call say,MAN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)man/functions.sh libmrmpi/include/mpi.h >$@
