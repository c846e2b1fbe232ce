/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of services (MPI_Publish_name) that the processes of a user on this host tell each other, whatever jobs these
 * belong to. A name ends with the connection of the client that has published the name, or is withdrawn by the job. A
 * user sees the own names only, and may have NAMES_PER_UID of them.
 */
#ifndef FABRICD_NAMES_H
#define FABRICD_NAMES_H

#include "fabricd/proto/proto.h"

#include <stdint.h>

#define NAMES_PER_UID 256

struct name;
struct names {
    struct name *first;
};

/* Answers m, of a client with this id and user, by a status and, of a look-up, the value. */
void names_answer(struct names *all, uint64_t client, uint32_t uid, struct fd_name *m);
/* The client has left. */
void names_left(struct names *all, uint64_t client);
void names_free(struct names *all);

#endif
