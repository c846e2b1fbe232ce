/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that are made of sends and receives of p2p/: both under one request, buffered sends, partitioned
 * communication. Called with the library's lock held. Requests are owned as those of mr_isend and mr_irecv.
 */
#ifndef MRMPI_DERIVED_H
#define MRMPI_DERIVED_H

#include "libmrmpi/p2p/pt2pt.h"

/* Once, at the end, when no message is under way any more. */
void mr_derived_finalize(void);

/* Both under one request, whose status is the receive's. The second sends and receives in the same buffer. */
struct mr_message_args {
    const void *buf; /* a receive writes to it */
    size_t count;
    struct mr_type *type;
    int peer, tag;
};
enum mr_err mr_isendrecv(const struct mr_message_args *send, const struct mr_message_args *recv, struct mr_comm *comm,
                         struct mr_request **req);
enum mr_err mr_isendrecv_replace(void *buf, size_t count, struct mr_type *type, int dest, int stag, int src, int rtag,
                                 struct mr_comm *comm, struct mr_request **req);

/*
 * Partitioned communication (part.c). An operation is made once and started many times; the requests under way are of
 * kind MR_REQ_PART. info on the arguments as for mr_isend; `count` elements in each partition.
 */
struct mr_part;
struct mr_part_args {
    const void *buf; /* a receive writes to it */
    int partitions;
    size_t count;
    struct mr_type *type;
    int peer, tag;
};
enum mr_err mr_part_new(bool sender, const struct mr_part_args *args, struct mr_comm *comm, struct mr_request **req);
void mr_part_free(struct mr_part *p); /* not under way */
enum mr_err mr_part_start(struct mr_part *p, struct mr_request **req);
int mr_part_count(const struct mr_part *p); /* partitions */
bool mr_part_is_send(const struct mr_part *p);
enum mr_err mr_part_ready(struct mr_part *p, int partition);
bool mr_part_arrived(struct mr_part *p, int partition); /* true while it is not under way */

/*
 * Attached buffers (bsend.c). A buffered send takes its bytes + MR_BSEND_OVERHEAD at most of the buffer of its
 * communicator, else of the session that the communicator comes from, else of the process. `slot` is where a buffer is
 * attached: comm->buffer, session->buffer or mr_bsend_process. Detaching and flushing wait until the messages in the
 * buffer are gone.
 */
#define MR_BSEND_OVERHEAD 96
struct mr_buffer {
    void *at;
    size_t bytes;
    bool automatic; /* no memory of the program's, but as much of ours as the messages need */
};
extern struct mr_bsend *mr_bsend_process;
enum mr_err mr_buffer_attach(struct mr_bsend **slot, struct mr_buffer buffer);
struct mr_buffer mr_buffer_detach(struct mr_bsend **slot); /* what was attached; nothing: of 0 bytes */
void mr_buffer_flush(struct mr_bsend **slot);
/* Complete when the messages that are in the buffer now are gone. */
enum mr_err mr_buffer_iflush(struct mr_bsend **slot, struct mr_request **req);
enum mr_err mr_bsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx);
enum mr_err mr_ibsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                      uint32_t ctx, struct mr_request **req);
/* Let go of messages in buffers that are gone. They refer to their communicators until then. */
void mr_bsend_reap(void);

#endif
