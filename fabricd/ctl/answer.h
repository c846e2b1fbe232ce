/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fabricctl says of a request's end: documents as the daemon has written them, what was done or not as lines; as
 * JSON if that is wanted. Exit statuses are decided here.
 */
#ifndef FABRICD_ANSWER_H
#define FABRICD_ANSWER_H

#include "fabricd/proto/proto.h"
#include "fabricd/base/text.h"

struct answer_to {
    const char *socket; /* the daemon's */
    bool json;
};

/* Send a message and print what comes: the exit status. */
int answer_request(const struct answer_to *to, enum fd_type type, void *msg, size_t len);

/* The daemon could not be talked to (rc, a negative errno): says so on standard error. The exit status. */
int answer_fail(const struct answer_to *to, int rc);

/* A document in YAML, as it is or as JSON; false: it cannot be that. The text is freed. */
bool answer_document(const struct answer_to *to, char *text, size_t len);

/*
 * An outcome, if JSON is wanted: one object with the exit status, what is wrong (error, or NULL), the lines of messages
 * and the members of found, a mapping in YAML that may be empty. Gives the exit status back.
 */
int answer_outcome(const struct answer_to *to, int status, const char *error, const char *messages, const char *found);

#endif
