/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of fabricctl, and which command takes which. An option that a command would ignore is refused: whoever
 * gave it meant something else than would be done.
 */
#ifndef FABRICD_TAKES_H
#define FABRICD_TAKES_H

#include <getopt.h>
#include <stdbool.h>

#define TAKES_OPTIONS_MAX 32

extern const struct option takes_options[]; /* for getopt_long(), whose answers are the letters here */

/* command: "job set"; given: letters, each once. False: one is not for that command, which was printed. */
bool takes_all(const char *command, bool cluster, const char *given);

#endif
