/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the engine of the fabric at dir. */
#ifndef SIMFAB_CMD_QUERY_H
#define SIMFAB_CMD_QUERY_H

#include "simfab/proto.h"

/* The text belongs to the caller; NULL and errno on failure. */
char *query_text(const char *dir, const char *host, enum sf_op op, const char *body);
/* The same, passing a descriptor. */
char *query_with_fd(const char *dir, const char *host, enum sf_op op, const char *body, int pass);
/* For a caller with other work: NULL and EAGAIN if the engine takes more than half a second. */
char *query_soon(const char *dir, enum sf_op op, const char *body);
/* Prints the engine's answer to a command on stdout, errors on stderr. Returns the exit status. */
int ask_engine(enum sf_op op, int argc, char **argv);

#endif
