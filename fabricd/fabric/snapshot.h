/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that ports have, to be put back. opensm leaves them as they are when its configuration does not speak of
 * them any more; so if the first policy is not taken, what ports had before it is written by datagrams from here.
 */
#ifndef FABRICD_FABRIC_SNAPSHOT_H
#define FABRICD_FABRIC_SNAPSHOT_H

#include "fabricd/fabric/verify.h"

struct snapshot;

/* SL2VL, VLArb, VLHighLimit and, with a policy that has partitions with members, P_Keys of every port of the whole
 * subnets of o. Free it with snapshot_free. */
struct snapshot *snapshot_take(const struct verify_options *o);
void snapshot_free(struct snapshot *s); /* or NULL */

/* As text, for a file, and from it. NULL: the text is not what snapshot_text has written. */
void snapshot_text(const struct snapshot *s, struct text *out);
struct snapshot *snapshot_parse(const char *text);

/*
 * Writes back what has changed since, of all subnets or of the one that this port of the host is in. How many blocks it
 * wrote; failed: how many could not be read or written.
 */
unsigned snapshot_put_back(const struct snapshot *s, const struct smp_port *of, unsigned *failed);

#endif
