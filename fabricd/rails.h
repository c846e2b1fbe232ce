/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of this host's adapters, read from sysfs whenever asked. */
#ifndef FABRICD_RAILS_H
#define FABRICD_RAILS_H

#include "fabricd/proto.h"
#include "fabricd/text.h"

struct rails {
    unsigned n;
    struct fd_rail rail[FD_RAILS_MAX]; /* by device name, then port */
};

void rails_read(struct rails *r);
bool rails_equal(const struct rails *a, const struct rails *b);
/* One line of YAML for each. */
void rails_text(struct text *out, const struct rails *r, const char *indent);
/* What has changed from a to b, one line for each, for the log. */
void rails_changes_text(struct text *out, const struct rails *a, const struct rails *b);

#endif
