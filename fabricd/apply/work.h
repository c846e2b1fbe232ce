/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work of the manager's thread: one task, from begin to end. Slow or blocking work is here: the fabric, and the
 * disk. A policy put in force is kept in the state directory before the outcome is reported, and its lock is written
 * beside the configured file, for the hosts that follow the file.
 */
#ifndef FABRICD_WORK_H
#define FABRICD_WORK_H

#include "fabricd/apply/manager.h"

manager_work work_run; /* progress goes out by manager_say */

#endif
