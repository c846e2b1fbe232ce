/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel self: packets to the own rank. A send copies the packet into a queue; poll hands it over. Large messages are
 * copied once, from buffer to buffer, by the single-copy protocol with ourselves as the peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/launch/launch.h"

#define SELF_EAGER_MAX (16u << 10)
#define SELF_SMALL     256u /* packets with at most this payload come from the pool */
#define SELF_POOL_MAX  1024

struct packet {
    struct packet *next;
    struct mr_hdr hdr;
    size_t len;
    uint8_t payload[];
};

static struct {
    int rank;
    struct packet *first, **last;
    struct packet *pool;
    unsigned pooled;
} self;

static int self_init(const struct mr_launch *launch)
{
    self.rank = launch->rank;
    self.first = NULL;
    self.last = &self.first;
    return 0;
}

static void self_finalize(void)
{
    struct packet *lists[2] = {self.first, self.pool};

    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct packet *p = lists[i];

            lists[i] = p->next;
            free(p);
        }
    self.first = self.pool = NULL;
    self.last = &self.first;
    self.pooled = 0;
}

static int self_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct packet *p = len <= SELF_SMALL ? self.pool : NULL;

    if (p) {
        self.pool = p->next;
        self.pooled--;
    } else {
        p = malloc(sizeof(*p) + (len > SELF_SMALL ? len : SELF_SMALL));
        if (!p)
            return -ENOMEM;
    }
    p->next = NULL;
    p->hdr = *hdr;
    p->len = len;
    if (len)
        memcpy(p->payload, payload, len);
    *self.last = p;
    self.last = &p->next;
    return 0;
}

/* Takes the present packets; packets sent meanwhile are for the next poll. */
static int self_poll(void)
{
    struct packet *p = self.first;
    int n = 0;

    if (likely(!p))
        return 0;
    self.first = NULL;
    self.last = &self.first;
    while (p) {
        struct packet *next = p->next;

        mr_vc_arrived(&p->hdr, p->payload, p->len);
        if (p->len <= SELF_SMALL && self.pooled < SELF_POOL_MAX) {
            p->next = self.pool;
            self.pool = p;
            self.pooled++;
        } else {
            free(p);
        }
        p = next;
        n++;
    }
    return n;
}

static bool self_drained(void)
{
    return !self.first;
}

static bool self_reaches(int world_rank)
{
    return world_rank == self.rank;
}

static void self_sizes(struct mr_vc *vc)
{
    vc->eager_max = vc->eager_most = SELF_EAGER_MAX;
    vc->packet_max = SELF_EAGER_MAX;
}

static unsigned self_caps(int world_rank, size_t len)
{
    return MR_VC_GET;
}

static int self_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    if (offset > src->len || len > src->len - offset)
        return -EFAULT;
    memmove(buf, (const void *)(uintptr_t)(src->addr + offset), len);
    return 0;
}

const struct mr_channel_ops mr_channel_self = {
    .name = "self",
    .init = self_init,
    .finalize = self_finalize,
    .poll = self_poll,
    .pending = (void *const *)&self.first,
    .drained = self_drained,
    .reaches = self_reaches,
    .sizes = self_sizes,
    .caps = self_caps,
    .send = self_send,
    .advertise = mr_cma_advertise,
    .withdraw = mr_cma_withdraw,
    .get = self_get,
};
