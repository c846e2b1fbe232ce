/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths for people: the node of a host's name, and the switches on paths by name. Pure. */
#ifndef FABRICD_FABRIC_PATHS_TEXT_H
#define FABRICD_FABRIC_PATHS_TEXT_H

#include "fabricd/base/text.h"
#include "fabricd/fabric/routes.h"

struct paths_question;

struct paths_name {
    uint16_t lid;
    bool adapter;
    char text[65];
};

/* The nodes of a subnet: ports of adapters, and switches. */
struct paths_names {
    unsigned num;
    struct paths_name *name; /* by LID */
};

/* num node records of size bytes. 0 or -ENOMEM. */
int paths_names_take(struct paths_names *n, const uint8_t *record, size_t num, size_t size);
void paths_names_free(struct paths_names *n);
/* The base LIDs of both ends: the first port of each name. -ENOENT: a name has no port; why says which. */
int paths_names_find(const struct paths_names *n, const struct fd_ends *ends, uint16_t *from, uint16_t *to,
                     struct text *why);

/* A document of YAML. */
void paths_text(struct text *out, const struct paths_names *n, const struct paths_question *q,
                const struct routes_pair *pair);

#endif
