/* SPDX-License-Identifier: BSD-3-Clause */
/* `simfab opensm` and its socket in the supervisor, $SIMFAB_DIR/control.sock. */
#ifndef SIMFAB_CMD_CONTROL_H
#define SIMFAB_CMD_CONTROL_H

#include "simfab/cmd/run.h"

bool control_open(struct run *r); /* false: complained */
void control_serve(struct run *r);
/* VERB [standby] [N] about opensm, for the supervisor. help: printed for wrong words. Returns the exit status. */
int control_command(const char *verb, int argc, char **argv, const char *help);

#endif
