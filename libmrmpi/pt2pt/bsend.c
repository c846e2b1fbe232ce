/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffered sends (MPI-3.1 section 3.6). The attached buffer holds blocks in the order of their addresses, each a header
 * and the packed message; a new one goes into the first gap that is large enough. A message that leaves at once gives
 * its block back at once, but must have found room, so that a program that attached too little learns it always.
 */
#include <string.h>

#include "libmrmpi/pt2pt/internal.h"

#define ALIGN 16

struct block {
    struct block *next;
    size_t bytes; /* with the header, rounded up */
    struct mr_request *req;
    uint64_t pad;
};
_Static_assert(sizeof(struct block) + 2 * ALIGN <= MR_BSEND_OVERHEAD, "what a user adds for each message is enough");

static struct {
    void *given; /* as attached */
    size_t given_bytes;
    char *start, *end; /* the aligned part */
    struct block *first;
} buffer;

static void reap(void)
{
    struct block **at = &buffer.first;

    while (*at) {
        struct block *b = *at;

        if (b->req->complete) {
            mr_request_put(b->req);
            *at = b->next;
        } else {
            at = &b->next;
        }
    }
}

/* The first gap of so many bytes: where the block goes into the list, and its address; NULL if there is none. */
static struct block *find_gap(size_t bytes, struct block ***link)
{
    struct block **at = &buffer.first;
    char *from = buffer.start;

    for (; *at; at = &(*at)->next) {
        if ((size_t)((char *)*at - from) >= bytes)
            break;
        from = (char *)*at + (*at)->bytes;
    }
    if ((size_t)((*at ? (char *)*at : buffer.end) - from) < bytes)
        return NULL;
    *link = at;
    return (struct block *)from;
}

/* The adapter has it: it ends soon, whatever the receiver's program does. */
static bool some_leave(void)
{
    for (struct block *b = buffer.first; b; b = b->next)
        if (b->req->proto && b->req->proto->state == MR_RNDV_PUTTING)
            return true;
    return false;
}

/*
 * A program counts on the room of a message that it knows to have been received, but what tells us so may not have been
 * looked at yet. What nobody has received is not waited for.
 */
static struct block *find_room(size_t bytes, struct block ***link)
{
    struct block *b;

    reap();
    while (!(b = find_gap(bytes, link)) && buffer.first && (mr_progress() || some_leave()))
        reap();
    return b;
}

enum mr_err mr_bsend(const void *buf, size_t count, struct mr_type *type, int dest, int tag, struct mr_comm *comm,
                     uint32_t ctx, struct mr_request **message)
{
    size_t len = count * type->size;
    size_t bytes = (sizeof(struct block) + len + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct block *b, **link;
    struct mr_request *req;
    enum mr_err err;

    if (message)
        *message = NULL;
    if (dest == MR_PROC_NULL)
        return MR_SUCCESS;
    b = find_room(bytes, &link);
    if (!b) {
        mr_error_detail("no room for %zu bytes in the attached buffer of %zu bytes", len, buffer.given_bytes);
        return MR_ERR_BUFFER;
    }
    mr_type_pack(buf, count, type, 0, b + 1, len);
    err = mr_isend(b + 1, len, mr_type_byte, dest, tag, comm, ctx, MR_SEND_STANDARD, &req);
    if (err)
        return err;
    if (message)
        *message = mr_request_get(req);
    if (req->complete) {
        mr_request_put(req);
        return MR_SUCCESS;
    }
    *b = (struct block){.next = *link, .bytes = bytes, .req = req};
    *link = b;
    return MR_SUCCESS;
}

bool mr_bsend_idle(void)
{
    reap();
    return !buffer.first;
}

/* The buffer is the program's; what was sent from it has arrived by now, or never will. */
void mr_bsend_finalize(void)
{
    reap();
    memset(&buffer, 0, sizeof(buffer));
}

enum mr_err mr_buffer_attach(void *buf, size_t bytes)
{
    size_t skip = -(uintptr_t)buf & (ALIGN - 1);

    if (buffer.given) {
        mr_error_detail("a buffer is attached already; detach it first");
        return MR_ERR_BUFFER;
    }
    buffer.given = buf;
    buffer.given_bytes = bytes;
    buffer.start = (char *)buf + (skip < bytes ? skip : bytes);
    buffer.end = (char *)buf + bytes;
    return MR_SUCCESS;
}

static bool idle(void *arg)
{
    return mr_bsend_idle();
}

enum mr_err mr_buffer_detach(void **buf, size_t *bytes)
{
    mr_progress_until(idle, NULL);
    *buf = buffer.given;
    *bytes = buffer.given_bytes;
    buffer.given = NULL;
    buffer.given_bytes = 0;
    buffer.start = buffer.end = NULL;
    return MR_SUCCESS;
}
