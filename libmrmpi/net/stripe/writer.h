/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short writes into memory of a window that a peer has advertised: they are collected, and posted as lists.
 * mr_net_writer_open() makes a writer, as the first member of its own struct. Its owner reads the first three members,
 * and adds to the list being filled.
 *
 * Memory may be withdrawn by the peer before its owner here is told (MR_VC_ATTACHED). The owner sets withdrawn then:
 * writes refused by the peer's adapter are given to withdrawn, once for each list; it may do them by other means, but
 * not wait. Their data lasts until it returns. Without withdrawn, such a refusal is an error of the peer, which is
 * lost.
 */
#ifndef MRMPI_NET_WRITER_H
#define MRMPI_NET_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/packet.h"

struct mr_vc;
struct mr_net_writer;

#define MR_WRITER_MOST 256u /* most bytes of a write */

typedef void mr_net_withdrawn_fn(struct mr_net_writer *w, const struct mr_short_write *write, unsigned num,
                                 uint32_t serial);

struct mr_net_writer {
    uint32_t most;               /* bytes of a write, up to MR_WRITER_MOST */
    unsigned open;               /* lists not in the peer's memory yet, including the list being filled */
    int error;                   /* negative errno of a failed writer; its owner takes it back */
    uint64_t addr;               /* of the memory there */
    unsigned left;               /* writes that still fit into the list; 0: there is none, too */
    struct mr_short_write *last; /* of the list, which ends at ... there, */
    uint64_t end;
    unsigned char *to; /* and data of the next one goes here: there is room for left writes of most bytes */
    uint32_t serial;   /* the owner's name for the memory */
    mr_net_withdrawn_fn *withdrawn;
    void *owner;
};

/*
 * Adds to the list. A write that begins at the end of the last write is joined. False: the list is full, or there is
 * none.
 */
static inline bool mr_net_writer_add(struct mr_net_writer *w, uint64_t at, const void *data, size_t len)
{
    struct mr_short_write *last = w->last;
    uint64_t addr = w->addr + at;

    if (addr == w->end && last->len + len <= w->most) {
        last->len += (uint32_t)len;
    } else {
        if (unlikely(!w->left || len > w->most))
            return false;
        w->left--;
        w->last = ++last;
        *last = (struct mr_short_write){.addr = addr, .data = w->to, .len = (uint32_t)len};
    }
    w->end = addr + len;
    if (len == sizeof(uint64_t)) /* a short write often goes alone */
        memcpy(w->to, data, sizeof(uint64_t));
    else
        memcpy(w->to, data, len);
    w->to += len;
    return true;
}

/*
 * For short writes to memory that the peer has advertised as a window's (MR_VC_WINDOW, MR_VC_ATTACHED). They have been
 * copied on return, and are posted as lists: at once if nothing of this writer is under way, when a list is full, by
 * mr_net_writer_post, and by the next mr_vc_poll(). Adjacent writes may become one. NULL: not to this peer. Until the
 * writer is closed, the caller keeps w->open small. Afterwards writes under way go on, without reports.
 */
struct mr_net_writer *mr_net_writer_open(struct mr_vc *vc, const struct mr_remote *remote);
/* The list is full, or there is none: posts it, and begins another with this write. Errors as of mr_net_write_short. */
int mr_net_writer_begin(struct mr_net_writer *w, uint64_t at, const void *data, size_t len);
/* At byte `at` of the memory, within its bounds. 0 < len <= w->most. Negative errno: not possible by the writer. */
static inline int mr_net_write_short(struct mr_net_writer *w, uint64_t at, const void *data, size_t len)
{
    return likely(mr_net_writer_add(w, at, data, len)) ? 0 : mr_net_writer_begin(w, at, data, len);
}
/*
 * Directs later writes to other memory of the peer, which the owner calls serial. False: not there; nothing has
 * changed.
 */
bool mr_net_writer_aim(struct mr_net_writer *w, const struct mr_remote *remote, uint32_t serial);
void mr_net_writer_post(struct mr_net_writer *w); /* posts collected writes, without waiting for more */
void mr_net_writer_close(struct mr_net_writer *w);

#endif
