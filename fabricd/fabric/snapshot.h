/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of ports, to be put back later. opensm leaves tables alone that its configuration no longer mentions. If
 * the first policy fails, the ports' earlier tables are therefore written by datagrams from here.
 */
#ifndef FABRICD_FABRIC_SNAPSHOT_H
#define FABRICD_FABRIC_SNAPSHOT_H

#include "fabricd/fabric/verify.h"

struct snapshot;

/*
 * SL2VL, VLArb, VLHighLimit and, with a policy that has partitions with members, P_Keys of every port of the whole
 * subnets of o. Free it with snapshot_free.
 */
struct snapshot *snapshot_take(const struct verify_options *o);
void snapshot_free(struct snapshot *s); /* or NULL */

/* As text, for a file, and from text. NULL: not a text of snapshot_text. */
void snapshot_text(const struct snapshot *s, struct text *out);
struct snapshot *snapshot_parse(const char *text);

unsigned snapshot_blocks(const struct snapshot *s);
/*
 * Writes back all tables changed since, of all subnets or of the subnet of this port of the host. count is called with
 * the number of blocks that have been looked at; NULL: nobody wants to know. Returns the number of blocks written;
 * failed: the number that could not be read or written.
 */
unsigned snapshot_put_back(const struct snapshot *s, const struct smp_port *of, void (*count)(void *arg, unsigned done),
                           void *arg, unsigned *failed);

#endif
