/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose bytes the ranks themselves copy: in packets, by the receiver from the sender's memory, or by both at
 * once (protocol.h: copy, get, shared, split copy). Inside a node the receiver learns the fastest
 * (p2p/choice/copy_mode.h).
 */
#ifndef MRMPI_RNDV_NODE_COPY_H
#define MRMPI_RNDV_NODE_COPY_H

#include "libmrmpi/p2p/rndv/rndv.h"

/* Sent with GO when both shall move the message. */
struct mr_split_copy {
    uint64_t addr;  /* the receiver's buffer, */
    int32_t pid;    /* and its process */
    uint32_t chunk; /* bytes */
    uint16_t claim, ticket;
    uint32_t rest; /* 0 */
};

/* ---- receiver ---- */
/* An offer of the sender's memory (MR_FLAG_GET). False: it cannot be used; nothing has happened. */
bool mr_node_copy_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_node_copy_data(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len); /* DATA */
void mr_node_copy_left(struct mr_rndv *r);    /* LEFT: the sender stops its part */
void mr_node_copy_refused(struct mr_rndv *r); /* FAIL: the sender cannot write into our memory */
int mr_node_copy_progress(struct mr_rndv *r); /* GETTING, SHARING, HALVING */

void mr_node_copy_report(void); /* to the log: the learnt modes */

/* ---- sender ---- */
void mr_node_copy_write(struct mr_rndv *r, const struct mr_split_copy *split); /* GO, to write as well */
int mr_node_copy_write_some(struct mr_rndv *r);                                /* WRITING */

#endif
