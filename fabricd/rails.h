/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of this host's adapters, read from sysfs whenever asked. */
#ifndef FABRICD_RAILS_H
#define FABRICD_RAILS_H

#include "fabricd/proto_state.h"
#include "fabricd/text.h"

struct rails {
    unsigned n;
    struct fd_rail rail[FD_RAILS_MAX]; /* by device name, then port */
    unsigned data_mbps[FD_RAILS_MAX];  /* of the rate, what is left of it by the line code: 4X DDR is 16000 */
    unsigned bus_mbytes[FD_RAILS_MAX]; /* 10^6 bytes of data a second that the adapter's bus carries; 0: not known */
};

void rails_read(struct rails *r);
bool rails_equal(const struct rails *a, const struct rails *b);
/* "down", "init", "armed", "active", by fd_rail.state. */
const char *rails_state_name(unsigned state);
/* One line of YAML for each. */
void rails_text(struct text *out, const struct rails *r, const char *indent);
/* What has changed from a to b, one line for each, for the log. */
void rails_changes_text(struct text *out, const struct rails *a, const struct rails *b);

#endif
