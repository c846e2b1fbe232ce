/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of the manager's thread: one task, from begin to end. It may take as long as the configuration allows. */
#ifndef FABRICD_APPLY_H
#define FABRICD_APPLY_H

#include "fabricd/manager.h"

/* Progress goes out by manager_say; the outcome is filled into out. */
void apply_run(struct manager *m, const struct conf *conf, struct task *t, struct manager_event *out);

#endif
