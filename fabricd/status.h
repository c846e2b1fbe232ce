/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state, as YAML for `fabricctl status`. */
#ifndef FABRICD_STATUS_H
#define FABRICD_STATUS_H

#include "fabricd/daemon.h"

/* Parts to print besides the daemon's own state. */
struct status_view {
    unsigned clients;           /* connections */
    unsigned on_paths;          /* clients that have asked for LID paths */
    const struct text *reading; /* of classes over a slow bus (readers_text) */
    uid_t jobs_of;              /* jobs of this user only; FD_UID_ANY: all */
};

const char *status_role(const struct daemon *d);         /* "manager", "server" */
const char *status_policy_state(const struct daemon *d); /* "none", "verified", ...: fabricctl(1) */
extern const char *const status_policy_states[];         /* all of them, and NULL */
void status_text(const struct daemon *d, const struct status_view *v, struct text *out);

#endif
