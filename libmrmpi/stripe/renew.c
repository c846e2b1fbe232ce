/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/stripe/renew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/memory/odp.h"
#include "libmrmpi/memory/use.h"
#include "libmrmpi/verbs/verbs.h"

/* What the peer told as one key is another one now. On the wire as in memory. */
struct renewed_key {
    uint32_t was, is;
};

#define KEYS_MOST 32 /* in one message, which is no longer than any packet may be */

/* The peer's renewed keys, by its rail. */
struct mr_renewed {
    struct {
        struct renewed_key *key;
        unsigned num, room;
        uint8_t life; /* of the rail in which these are keys */
        bool complete;
    } rail[MR_RAILS_MAX];
};

/* ---- the owner --------------------------------------------------------------------------------------------------- */

void mr_renew_add(struct mr_bulk_region *r, const struct mr_remote *told, enum mr_access access)
{
    memcpy(r->told, told->rkey, sizeof r->told);
    r->access = access;
    r->next = mr_bulk.regions;
    r->at = &mr_bulk.regions;
    if (r->next)
        r->next->at = &r->next;
    mr_bulk.regions = r;
}

void mr_renew_remove(struct mr_bulk_region *r)
{
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
}

static bool was_told_of(const struct mr_bulk_region *r, const struct mr_device *dev)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].dev == dev && r->told[i])
            return true;
    return false;
}

static int register_again(struct mr_bulk_region *r, const struct mr_device *dev)
{
    struct mr_reg_wish wish = {.devices = 1u << dev->index};

    if (r->alone)
        return mr_memory_add(r->addr, r->len, r->access, wish.devices, &r->reg->memory);
    return mr_odp_owns(r->reg) ? 0 : mr_regcache_extend(&mr_regs.cache, r->reg, wish);
}

static void send_keys(struct mr_peer *p, const struct mr_rail *rail, const struct renewed_key *key, unsigned num,
                      bool last)
{
    struct mr_hdr hdr = {.kind = MR_RENEW_KEYS, .rank = (int32_t)rail->index, .ctx = rail->life, .tag = last};

    mr_bulk_send_control(p, &hdr, key, num * sizeof *key);
}

static void tell_peer(struct mr_peer *p, const struct mr_rail *rail)
{
    unsigned most = (unsigned)mr_config.eager_max / sizeof(struct renewed_key), n = 0;
    struct renewed_key key[KEYS_MOST];

    most = most < KEYS_MOST ? most : KEYS_MOST;
    for (const struct mr_bulk_region *r = mr_bulk.regions; r; r = r->next) {
        if (r->rank != p->rank || !r->told[rail->index] || !mr_memory_is_on(&r->reg->memory, rail))
            continue;
        key[n++] = (struct renewed_key){r->told[rail->index], mr_memory_rkey(&r->reg->memory, rail)};
        if (n < most)
            continue;
        send_keys(p, rail, key, n, false);
        n = 0;
    }
    send_keys(p, rail, key, n, true);
}

int mr_renew_device(const struct mr_device *dev)
{
    int err = 0;

    for (struct mr_bulk_region *r = mr_bulk.regions; r && !err; r = r->next)
        if (was_told_of(r, dev))
            err = register_again(r, dev);
    for (int i = 0; i < mr_peers.launch->size && !err; i++) {
        struct mr_peer *p = mr_peers.peer[i];

        for (unsigned k = 0; p && p->up && !p->error && k < mr_verbs.num_rails; k++)
            if (mr_verbs.rail[k].dev == dev)
                tell_peer(p, &mr_verbs.rail[k]);
    }
    return err;
}

/* ---- who uses the keys ------------------------------------------------------------------------------------------- */

static unsigned life_of(uint32_t lives, unsigned rail)
{
    return lives >> rail * MR_RAIL_LIFE_BITS & (MR_RAIL_LIVES - 1);
}

static struct mr_renewed *renewed_of(const struct mr_peer *p)
{
    return mr_bulk_of(p)->renewed;
}

static bool make_room(struct mr_peer *p, unsigned rail, unsigned more)
{
    struct mr_renewed *r = renewed_of(p) ? renewed_of(p) : calloc(1, sizeof *r);
    unsigned room;
    void *key;

    mr_bulk_of(p)->renewed = r;
    if (!r)
        return false;
    room = r->rail[rail].num + more;
    if (room <= r->rail[rail].room)
        return true;
    room += room / 2;
    key = realloc(r->rail[rail].key, room * sizeof *r->rail[rail].key);
    if (!key)
        return false;
    r->rail[rail].key = key;
    r->rail[rail].room = room;
    return true;
}

static void learn_keys(struct mr_peer *p, unsigned rail, uint8_t life, const void *keys, unsigned num, bool last)
{
    struct mr_renewed *r;

    if (!make_room(p, rail, num)) {
        mr_log(MR_LOG_ERROR, "rank %d on %s: no memory for its keys", p->rank, p->address->host);
        mr_peer_lost(p, -ENOMEM);
        return;
    }
    r = renewed_of(p);
    if (r->rail[rail].life != life)
        r->rail[rail].num = 0;
    r->rail[rail].life = life;
    if (num)
        memcpy(r->rail[rail].key + r->rail[rail].num, keys, num * sizeof(struct renewed_key));
    r->rail[rail].num += num;
    r->rail[rail].complete = last;
    mr_peer_backlog(p); /* what waits may have a key now */
}

bool mr_renew_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind != MR_RENEW_KEYS)
        return false;
    if (hdr->rank < 0 || (unsigned)hdr->rank >= p->address->num_rails || len % sizeof(struct renewed_key))
        mr_log(MR_LOG_WARN, "rank %d on %s: a control message with keys makes no sense", p->rank, p->address->host);
    else
        learn_keys(p, (unsigned)hdr->rank, (uint8_t)hdr->ctx, payload, (unsigned)(len / sizeof(struct renewed_key)),
                   hdr->tag);
    return true;
}

uint32_t mr_renewed_key(const struct mr_peer *p, const struct mr_remote *remote, unsigned rail)
{
    const struct mr_renewed *r = renewed_of(p);

    if (life_of(remote->lives, rail) == life_of(p->lives, rail))
        return remote->rkey[rail];
    if (!r || r->rail[rail].life != life_of(p->lives, rail))
        return 0;
    for (unsigned i = 0; i < r->rail[rail].num; i++)
        if (r->rail[rail].key[i].was == remote->rkey[rail])
            return r->rail[rail].key[i].is;
    return 0;
}

uint32_t mr_renew_lacking(const struct mr_peer *p, const struct mr_remote *remote)
{
    uint32_t set = 0;

    for (unsigned i = 0; remote->lives != p->lives && i < p->address->num_rails; i++)
        if (life_of(remote->lives, i) != life_of(p->lives, i))
            set |= (uint32_t)!mr_renewed_key(p, remote, i) << i;
    return set;
}

bool mr_renew_is_withdrawn(const struct mr_peer *p, const struct mr_remote *remote)
{
    const struct mr_renewed *r = renewed_of(p);
    uint32_t set = mr_renew_lacking(p, remote);

    for (unsigned i = 0; r && i < p->address->num_rails; i++)
        if (set >> i & 1 && (r->rail[i].life != life_of(p->lives, i) || !r->rail[i].complete))
            return false;
    return r && set;
}

void mr_renew_free(struct mr_peer *p)
{
    struct mr_renewed *r = renewed_of(p);

    for (unsigned i = 0; r && i < MR_RAILS_MAX; i++)
        free(r->rail[i].key);
    free(r);
    mr_bulk_of(p)->renewed = NULL;
}
