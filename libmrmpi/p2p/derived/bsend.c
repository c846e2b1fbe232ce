/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends (MPI-4.1 section 3.6). An attached buffer holds blocks, each a header and the packed message. In
 * memory of the program they lie in the order of their addresses; a new block goes behind the latest one, or, without
 * room there, into the first gap that is large enough. A message that leaves at once gives its block back at once, but
 * must have found room, so that a program with too small a buffer always gets the error. An automatic buffer allocates
 * each block.
 *
 * All blocks are looked at when room is missing, and else when they are twice as many as were left the last time: the
 * time of a send does not depend on the number of messages under way.
 *
 * A buffer lives until it is detached and its messages are no longer waited for. Before its communicator, session or
 * process goes, it is detached, because the blocks are in memory that the program will use again.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/derived/internal.h"

#define ALIGN      16
#define BLOCKS_FEW 64 /* blocks that are not worth a look at all */

struct block {
    struct block *next, *before;
    size_t bytes;           /* with the header, rounded up */
    struct mr_request *req; /* NULL: about to be sent */
    uint64_t number;        /* counts the blocks of the buffer */
};
_Static_assert(sizeof(struct block) + 2 * ALIGN <= MR_BSEND_OVERHEAD, "what a user adds for each message is enough");

struct flush {
    struct flush *next;
    struct mr_request *req;
    uint64_t last; /* complete when this block and those before it are gone */
};

struct mr_bsend {
    struct mr_bsend *next; /* of all */
    struct mr_buffer given;
    char *start, *end; /* the aligned part */
    struct block *first;
    struct block *latest;  /* the one behind which the next goes; NULL: before all */
    struct block *late;    /* a block that was not complete when it was looked at; or NULL */
    uint64_t blocks;       /* blocks made so far, */
    size_t num, num_check; /* now, and how many there are at the next look at all */
    struct flush *flushes;
    int waiting; /* waiters for blocks to go */
    bool detached;
};

struct mr_bsend *mr_bsend_process;
static struct mr_bsend *all;
static bool polled; /* for flushes under way */

/* ---- blocks ---- */

static void block_remove(struct mr_bsend *b, struct block *old)
{
    *(old->before ? &old->before->next : &b->first) = old->next;
    if (old->next)
        old->next->before = old->before;
    b->num--;
    if (old == b->latest)
        b->latest = old->before;
    if (old == b->late)
        b->late = NULL;
    if (old->req)
        mr_request_put(old->req);
    if (b->given.automatic)
        free(old);
}

static bool is_block_complete(const struct block *k)
{
    return k->req && k->req->complete;
}

static void reap(struct mr_bsend *b)
{
    for (struct block *k = b->first, *next; k; k = next) {
        next = k->next;
        if (is_block_complete(k))
            block_remove(b, k);
    }
    b->num_check = 2 * b->num + BLOCKS_FEW;
}

/* True if the first n blocks are gone. The last of them is looked at first: it probably goes last. */
static bool are_blocks_gone(struct mr_bsend *b, uint64_t n)
{
    if (b->late && b->late->number <= n && !is_block_complete(b->late))
        return false;
    reap(b);
    b->late = NULL;
    for (struct block *k = b->first; k; k = k->next)
        if (k->number <= n && (!b->late || k->number > b->late->number))
            b->late = k;
    return !b->late;
}

/* A gap of so many bytes behind a block, or before all (NULL): its address, or NULL. */
static struct block *gap_behind(const struct mr_bsend *b, const struct block *k, size_t bytes)
{
    const struct block *next = k ? k->next : b->first;
    char *from = k ? (char *)(uintptr_t)k + k->bytes : b->start;

    return (size_t)((next ? (char *)(uintptr_t)next : b->end) - from) < bytes ? NULL : (struct block *)from;
}

/* The first such gap; *before: the block before it, or NULL. */
static struct block *find_gap(const struct mr_bsend *b, size_t bytes, struct block **before)
{
    struct block *gap = gap_behind(b, NULL, bytes);

    *before = NULL;
    for (struct block *k = b->first; k && !gap; k = k->next) {
        gap = gap_behind(b, k, bytes);
        *before = k;
    }
    return gap;
}

static bool some_leave(const struct mr_bsend *b)
{
    for (struct block *k = b->first; k; k = k->next)
        if (k->req && mr_send_leaves(k->req))
            return true;
    return false;
}

/*
 * A program depends on the room of a message known to have been received, but our notice of the receive may not have
 * been polled yet. Unreceived messages are not waited for.
 */
static struct block *find_room(struct mr_bsend *b, size_t bytes, struct block **before)
{
    struct block *k;

    if (b->num >= b->num_check)
        reap(b);
    *before = b->given.automatic ? NULL : b->latest;
    if (b->given.automatic)
        return malloc(bytes);
    k = gap_behind(b, b->latest, bytes);
    if (k)
        return k;
    reap(b);
    while (!(k = find_gap(b, bytes, before)) && b->first && (mr_progress() || some_leave(b)))
        reap(b);
    return k;
}

/* Takes the room found for it; no other message gets it from now on, whatever runs during the send. */
static void block_insert(struct mr_bsend *b, struct block *k, size_t bytes, struct block *before)
{
    struct block **link = before ? &before->next : &b->first;

    *k = (struct block){.next = *link, .before = before, .bytes = bytes, .number = ++b->blocks};
    if (k->next)
        k->next->before = k;
    *link = b->latest = k;
    b->num++;
}

/* ---- sending ---- */

static struct mr_bsend *buffer_of(const struct mr_comm *comm)
{
    if (comm->buffer)
        return comm->buffer;
    if (comm->group->session && comm->group->session->buffer)
        return comm->group->session->buffer;
    return mr_bsend_process;
}

static enum mr_err no_room(const struct mr_bsend *b, size_t len)
{
    if (!b)
        mr_error_detail("no buffer is attached to the communicator, its session or the process");
    else if (b->given.automatic)
        mr_error_detail("no memory for a buffered message of %zu bytes", len);
    else
        mr_error_detail("no room for %zu bytes in the attached buffer of %zu bytes", len, b->given.bytes);
    return b && b->given.automatic ? MR_ERR_NO_MEM : MR_ERR_BUFFER;
}

/* *message, unless message is NULL: the message itself, for the caller to put (NULL: to MPI_PROC_NULL). */
static enum mr_err send_buffered(const void *buf, size_t count, struct mr_type *type, int dest, int tag,
                                 struct mr_comm *comm, uint32_t ctx, struct mr_request **message)
{
    struct mr_bsend *b = buffer_of(comm);
    size_t len = count * type->size;
    size_t bytes = (sizeof(struct block) + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct block *k, *before;
    enum mr_err err;

    if (message)
        *message = NULL;
    if (dest == MR_PROC_NULL)
        return mr_no_peer_fate(comm, ctx);
    k = b ? find_room(b, bytes, &before) : NULL;
    if (!k)
        return no_room(b, len);
    block_insert(b, k, bytes, before);
    mr_type_pack(buf, count, type, 0, k + 1, len);
    err = mr_isend(k + 1, len, mr_type_byte, dest, tag, comm, ctx, MR_SEND_STANDARD, &k->req);
    if (!err && message)
        *message = mr_request_get(k->req);
    if (err || k->req->complete)
        block_remove(b, k);
    return err;
}

enum mr_err mr_bsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx)
{
    return send_buffered(buf, count, type, dest, tag, comm, ctx, NULL);
}

/* Complete for the caller: its request is one to MPI_PROC_NULL, which is complete. */
enum mr_err mr_ibsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                      uint32_t ctx, struct mr_request **out)
{
    struct mr_request *behind;
    enum mr_err err = send_buffered(buf, count, type, dest, tag, comm, ctx, &behind);

    *out = NULL;
    if (err)
        return err;
    err = mr_isend(buf, count, type, MR_PROC_NULL, tag, comm, ctx, MR_SEND_STANDARD, out);
    if (!err)
        (*out)->behind = behind;
    else if (behind)
        mr_request_put(behind);
    return err;
}

/* ---- buffers ---- */

static void buffer_free(struct mr_bsend *b)
{
    struct mr_bsend **at = &all;

    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    free(b);
}

static void free_if_unused(struct mr_bsend *b)
{
    if (b->detached && !b->waiting && !b->flushes)
        buffer_free(b);
}

/* Detached buffers that other threads waited for. */
static void free_unused(void)
{
    for (struct mr_bsend *b = all, *next; b; b = next) {
        next = b->next;
        free_if_unused(b);
    }
}

void mr_bsend_reap(void)
{
    for (struct mr_bsend *b = all; b; b = b->next)
        reap(b);
    free_unused();
}

enum mr_err mr_buffer_attach(struct mr_bsend **slot, struct mr_buffer buffer)
{
    size_t skip = -(uintptr_t)buffer.at & (ALIGN - 1);
    struct mr_bsend *b;

    free_unused();
    if (*slot) {
        mr_error_detail("a buffer is attached already; detach it first");
        return MR_ERR_BUFFER;
    }
    b = calloc(1, sizeof(*b));
    if (!b)
        return MR_ERR_NO_MEM;
    b->given = buffer;
    if (!buffer.automatic) {
        b->start = (char *)buffer.at + (skip < buffer.bytes ? skip : buffer.bytes);
        b->end = (char *)buffer.at + buffer.bytes;
    }
    b->next = all;
    all = b;
    *slot = b;
    return MR_SUCCESS;
}

struct wait {
    struct mr_bsend *b;
    uint64_t last;
};

static bool blocks_have_gone(void *arg)
{
    struct wait *w = arg;

    return are_blocks_gone(w->b, w->last);
}

static void wait_for_blocks(struct mr_bsend *b)
{
    b->waiting++;
    mr_progress_until(blocks_have_gone, &(struct wait){b, b->blocks});
    b->waiting--;
}

/* Other threads may have sent more while we waited. */
struct mr_buffer mr_buffer_detach(struct mr_bsend **slot)
{
    struct mr_bsend *b = *slot;
    struct mr_buffer was = {0};

    while (*slot && *slot == b && !are_blocks_gone(b, b->blocks))
        wait_for_blocks(b);
    if (!b || *slot != b) /* none was, or another thread has freed it */
        return was;
    was = b->given;
    *slot = NULL;
    b->detached = true;
    free_if_unused(b);
    return was;
}

void mr_buffer_flush(struct mr_bsend **slot)
{
    struct mr_bsend *b = *slot;

    if (!b)
        return;
    wait_for_blocks(b);
    free_if_unused(b);
}

/* ---- nonblocking flushes ---- */

static int end_flushes(struct mr_bsend *b)
{
    int ended = 0;

    for (struct flush **at = &b->flushes, *f; (f = *at);) {
        if (!are_blocks_gone(b, f->last)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        mr_request_complete(f->req);
        mr_request_put(f->req);
        free(f);
        ended++;
    }
    return ended;
}

static int poll_flushes(void)
{
    int ended = 0;

    for (struct mr_bsend *b = all, *next; b; b = next) {
        next = b->next;
        if (!b->flushes)
            continue;
        ended += end_flushes(b);
        free_if_unused(b);
    }
    return ended;
}

static enum mr_err add_flush(struct mr_bsend *b, struct mr_request *req)
{
    struct flush *f = malloc(sizeof(*f));

    if (!f)
        return MR_ERR_NO_MEM;
    *f = (struct flush){b->flushes, mr_request_get(req), b->blocks};
    b->flushes = f;
    if (!polled)
        mr_progress_register(MR_PROGRESS_IN_MPI, (void *const *)&all, poll_flushes);
    polled = true;
    return MR_SUCCESS;
}

enum mr_err mr_buffer_iflush(struct mr_bsend **slot, struct mr_request **out)
{
    struct mr_bsend *b = *slot;
    struct mr_request *req = mr_request_new(MR_REQ_FLUSH, NULL);
    enum mr_err err = MR_SUCCESS;

    *out = NULL;
    if (!req)
        return MR_ERR_NO_MEM;
    req->status.source = MR_ANY_SOURCE;
    if (!b || are_blocks_gone(b, b->blocks))
        mr_request_complete(req);
    else
        err = add_flush(b, req);
    if (err)
        mr_request_put(req);
    else
        *out = req;
    return err;
}

/* ---- the end ---- */

/* The memory is the program's; messages sent from it have arrived by now, or never will. */
void mr_bsend_finalize(void)
{
    while (all) {
        struct mr_bsend *b = all;

        for (struct flush *f = b->flushes, *next; f; f = next) {
            next = f->next;
            mr_request_put(f->req);
            free(f);
        }
        reap(b);
        for (struct block *k = b->first, *next; k && b->given.automatic; k = next) {
            next = k->next;
            free(k);
        }
        buffer_free(b);
    }
    mr_bsend_process = NULL;
    polled = false;
}
