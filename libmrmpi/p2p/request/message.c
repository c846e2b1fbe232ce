/* SPDX-License-Identifier: BSD-3-Clause */
/* Kept messages: their pool, and the table of messages without a receive. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/request/state.h"

#define POOL_MESSAGES_MAX 1024

static struct mr_message no_proc;
struct mr_message *const mr_message_no_proc = &no_proc;

static struct mr_message *message_with_room(size_t len)
{
    struct mr_message *m = len <= MR_MESSAGE_SMALL ? mr_pt2pt.free_messages : NULL;
    size_t room = len <= MR_MESSAGE_SMALL ? MR_MESSAGE_SMALL : len;

    if (m) {
        mr_pt2pt.free_messages = m->next;
        mr_pt2pt.num_free_messages--;
        return m;
    }
    m = malloc(sizeof(*m) + room);
    if (m)
        m->room = room;
    return m;
}

static void return_buffers(struct mr_message *m)
{
    for (struct mr_retained *retained; (retained = m->retained);) {
        m->retained = retained->next;
        mr_retained_return(retained);
    }
}

void mr_message_free(struct mr_message *m)
{
    if (m == mr_message_no_proc)
        return;
    if (unlikely(m->retained != NULL))
        return_buffers(m);
    if (m->room > MR_MESSAGE_SMALL || mr_pt2pt.num_free_messages >= POOL_MESSAGES_MAX) {
        free(m);
        return;
    }
    m->next = mr_pt2pt.free_messages;
    mr_pt2pt.free_messages = m;
    mr_pt2pt.num_free_messages++;
}

void mr_message_pool_free(void)
{
    while (mr_pt2pt.free_messages) {
        struct mr_message *m = mr_pt2pt.free_messages;

        mr_pt2pt.free_messages = m->next;
        free(m);
    }
    mr_pt2pt.num_free_messages = 0;
}

/* A message that cannot be kept is lost, and with it the job: the sender believes that it is on its way. */
static void out_of_memory(struct mr_vc *vc)
{
    mr_log(MR_LOG_ERROR, "out of memory for a message from rank %d that no receive is posted for",
           mr_vc_world_rank(vc));
    mr_launch_abort(1, "out of memory for unexpected messages");
}

struct mr_message *mr_message_new(struct mr_vc *vc, const struct mr_hdr *hdr, size_t room)
{
    struct mr_message *m = message_with_room(room);

    if (!m)
        out_of_memory(vc);
    m->vc = vc;
    m->req = NULL;
    m->hdr = *hdr;
    m->len = 0;
    m->retained = NULL;
    m->retained_len = 0;
    return m;
}

void mr_message_insert(struct mr_message *m)
{
    if (mr_match_insert_quad(&mr_pt2pt.unexpected, &m->match, m->hdr.ctx, m->hdr.rank, m->hdr.tag, m))
        out_of_memory(m->vc);
    mr_stat_add(MR_STAT_UNEXPECTED, 1);
    if (unlikely(mr_threaded))
        mr_shm_wake(); /* another rank may be probing for it */
}

static void add_retained(struct mr_message *m, struct mr_retained *retained, const void *payload, size_t len)
{
    retained->payload = payload;
    retained->len = (uint32_t)len;
    retained->next = NULL;
    if (m->retained)
        m->retained_last->next = retained;
    else
        m->retained = retained;
    m->retained_last = retained;
    m->retained_len += len;
    m->len += len;
}

void mr_message_add(struct mr_message *m, const void *payload, size_t len)
{
    struct mr_retained *retained =
        m->retained_len == m->len ? mr_retained_take(payload, len, MR_RETAINED_UNTIL_RECEIVED) : NULL;

    if (retained) {
        add_retained(m, retained, payload, len);
        return;
    }
    memcpy(m->own + m->len, payload, len);
    m->len += len;
}

void mr_message_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_retained *retained = mr_retained_take(payload, len, MR_RETAINED_UNTIL_RECEIVED);
    struct mr_message *m = mr_message_new(vc, hdr, retained ? 0 : len);

    if (retained) {
        add_retained(m, retained, payload, len);
    } else if (len) {
        memcpy(m->own, payload, len);
        m->len = len;
    }
    mr_message_insert(m);
}

struct mr_message *mr_message_find(int src, int tag, uint32_t ctx)
{
    struct mr_match_entry *e = mr_match_find(&mr_pt2pt.unexpected, ctx, src, tag);

    return e ? e->owner : NULL;
}
