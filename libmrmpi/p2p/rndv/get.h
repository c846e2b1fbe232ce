/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages inside this node, which the ranks themselves copy: by the receiver (get.c), by the sender in packets while
 * the receiver may read (share.c), or by both at once (split.c). The receiver learns which is fastest (near.c,
 * p2p/choice/copy_mode.h). Here: what these files share.
 */
#ifndef MRMPI_RNDV_GET_H
#define MRMPI_RNDV_GET_H

#include "libmrmpi/p2p/rndv/protocols.h"

bool mr_near_is_guest(const struct mr_vc *vc);
bool mr_near_refuses(const struct mr_vc *vc); /* the kernel, single copy */
void mr_near_note_refusal(const struct mr_vc *vc);
/* Receiver: reads [offset, offset + len) of the sender's data into the buffer. 0 or negative errno, -EPERM: refused. */
int mr_near_get(struct mr_rndv *r, uint64_t offset, size_t len);
void mr_near_get_failed(struct mr_rndv *r, int err); /* and not with -EPERM */
void mr_near_in_packets(struct mr_rndv *r);          /* takes the copy protocol instead */
void mr_get_begin(struct mr_rndv *r);

/* Chunks claimed by the two ranks, in the memory of ours or the peer's. NULL: there are none. */
static inline struct mr_claims *mr_near_claims(struct mr_vc *vc, bool ours)
{
    return mr_shm_reaches(vc) ? mr_shm_claims(vc, ours) : NULL;
}

#endif
