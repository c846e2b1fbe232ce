/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys sent by peers in place of others, whose adapters were opened anew. */
#include "libmrmpi/net/stripe/renew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

/* The peer's renewed keys, by its rail. */
struct mr_renewed {
    struct {
        struct mr_renewed_key *key;
        unsigned num, room;
        uint8_t life; /* of the rail of these keys */
        bool complete;
    } rail[MR_RAILS_MAX];
};

static struct mr_renewed *renewed_of(const struct mr_peer *p)
{
    return mr_bulk_of(p)->renewed;
}

static bool room_for_keys(struct mr_peer *p, unsigned rail, unsigned more)
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

    if (!room_for_keys(p, rail, num)) {
        mr_log(MR_LOG_ERROR, "rank %d on %s: no memory for its keys", p->rank, p->address->host);
        mr_peer_lost(p, -ENOMEM);
        return;
    }
    r = renewed_of(p);
    if (r->rail[rail].life != life)
        r->rail[rail].num = 0;
    r->rail[rail].life = life;
    if (num)
        memcpy(r->rail[rail].key + r->rail[rail].num, keys, num * sizeof(struct mr_renewed_key));
    r->rail[rail].num += num;
    r->rail[rail].complete = last;
    mr_peer_backlog(p); /* waiting stripes may have a key now */
}

bool mr_renew_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind != MR_RENEW_KEYS)
        return false;
    if (hdr->rank < 0 || (unsigned)hdr->rank >= p->address->num_rails || len % sizeof(struct mr_renewed_key))
        mr_log(MR_LOG_WARN, "rank %d on %s: a control message with keys makes no sense", p->rank, p->address->host);
    else
        learn_keys(p, (unsigned)hdr->rank, (uint8_t)hdr->ctx, payload, (unsigned)(len / sizeof(struct mr_renewed_key)),
                   hdr->tag);
    return true;
}

static bool names(const struct mr_renewed_key *key, const struct mr_remote *remote)
{
    return key->rail < MR_RAILS_MAX && remote->rkey[key->rail] == key->told &&
           mr_life_of(remote->lives, key->rail) == key->life;
}

uint32_t mr_renewed_key(const struct mr_peer *p, const struct mr_remote *remote, unsigned rail)
{
    const struct mr_renewed *r = renewed_of(p);

    if (mr_life_of(remote->lives, rail) == mr_life_of(p->lives, rail))
        return remote->rkey[rail];
    if (!r || r->rail[rail].life != mr_life_of(p->lives, rail))
        return 0;
    for (unsigned i = 0; i < r->rail[rail].num; i++)
        if (names(&r->rail[rail].key[i], remote))
            return r->rail[rail].key[i].is;
    return 0;
}

uint32_t mr_renew_lacking(const struct mr_peer *p, const struct mr_remote *remote)
{
    uint32_t set = 0;

    for (unsigned i = 0; remote->lives != p->lives && i < p->address->num_rails; i++)
        if (mr_life_of(remote->lives, i) != mr_life_of(p->lives, i))
            set |= (uint32_t)!mr_renewed_key(p, remote, i) << i;
    return set;
}

bool mr_renew_is_withdrawn(const struct mr_peer *p, const struct mr_remote *remote)
{
    const struct mr_renewed *r = renewed_of(p);
    uint32_t set = mr_renew_lacking(p, remote);

    for (unsigned i = 0; r && i < p->address->num_rails; i++)
        if (set >> i & 1 && (r->rail[i].life != mr_life_of(p->lives, i) || !r->rail[i].complete))
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
