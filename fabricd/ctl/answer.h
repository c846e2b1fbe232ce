/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabricctl's output at the end of a request: documents as the daemon has written them, results as lines; as JSON on
 * request. Exit statuses are decided here.
 */
#ifndef FABRICD_ANSWER_H
#define FABRICD_ANSWER_H

#include "fabricd/proto/proto.h"
#include "fabricd/base/text.h"

struct answer_to {
    const char *socket; /* the daemon's */
    bool json;
};

/* Sends a message and prints the answer. Returns the exit status. */
int answer_request(const struct answer_to *to, enum fd_type type, void *msg, size_t len);

/* The daemon could not be talked to (rc, a negative errno): says so on standard error. The exit status. */
int answer_fail(const struct answer_to *to, int rc);

/* Prints a YAML document unchanged or as JSON; false: JSON is impossible. The text is freed. */
bool answer_document(const struct answer_to *to, char *text, size_t len);

/*
 * Prints an outcome as JSON, if requested: one object with the exit status, the error (or NULL), the lines of messages
 * and the members of found, a mapping in YAML that may be empty. Returns the exit status.
 */
int answer_outcome(const struct answer_to *to, int status, const char *error, const char *messages, const char *found);

#endif
