/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor of `simfab run` (run.h). */
#ifndef SIMFAB_CMD_SUPERVISE_H
#define SIMFAB_CMD_SUPERVISE_H

#include "simfab/cmd/run.h"

/* Brings the fabric up in dir, runs the command, takes all down. Returns the exit status. guard: struct run. */
int supervise(const struct options *opt, const char *dir, int guard);

#endif
