/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of the manager's thread: one task, from begin to end. */
#ifndef FABRICD_APPLY_H
#define FABRICD_APPLY_H

#include "fabricd/manager.h"

manager_work apply_run; /* progress goes out by manager_say */

#endif
