/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory advertised while a device fails: registered again with the returned device, with the new keys sent to peers.
 */
#include "libmrmpi/net/stripe/renew.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define KEYS_MOST 32 /* in a message, which is no longer than any packet may be */

/* ---- the owner --------------------------------------------------------------------------------------------------- */

void mr_renew_add(struct mr_bulk_region *r, const struct mr_remote *told, enum mr_access access, bool partial)
{
    memcpy(r->told, told->rkey, sizeof r->told);
    r->lives = told->lives;
    r->partial = partial;
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

/* The rail whose key names the region to the peer; MR_RAILS_MAX: none. */
static unsigned naming_rail(const struct mr_bulk_region *r)
{
    unsigned i = 0;

    while (i < MR_RAILS_MAX && !r->told[i])
        i++;
    return i;
}

/* True if the peer may use the rail: it knows a key, or the device was away when the region was advertised. */
static bool may_go_over(const struct mr_bulk_region *r, const struct mr_rail *rail)
{
    return naming_rail(r) < MR_RAILS_MAX && (r->told[rail->index] || !r->partial);
}

static bool is_wanted_on(const struct mr_bulk_region *r, const struct mr_device *dev)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].dev == dev && may_go_over(r, &mr_verbs.rail[i]))
            return true;
    return false;
}

static int register_again(struct mr_bulk_region *r, const struct mr_device *dev)
{
    struct mr_reg_wish wish = {.devices = 1u << dev->index};

    if (r->alone)
        return mr_memory_add(r->addr, r->len, r->access, wish.devices, &r->reg->memory);
    return mr_odp_owns(r->reg) ? 0 : mr_regs_extend(r->reg, wish);
}

static void send_keys(struct mr_peer *p, const struct mr_rail *rail, const struct mr_renewed_key *key, unsigned num,
                      bool last)
{
    struct mr_hdr hdr = {.kind = MR_RENEW_KEYS, .rank = (int32_t)rail->index, .ctx = rail->life, .tag = last};

    mr_bulk_send_control(p, &hdr, key, num * sizeof *key);
}

static void tell_peer(struct mr_peer *p, const struct mr_rail *rail)
{
    unsigned most = (unsigned)mr_config.eager_max / sizeof(struct mr_renewed_key), n = 0;
    struct mr_renewed_key key[KEYS_MOST];

    most = most < KEYS_MOST ? most : KEYS_MOST;
    for (const struct mr_bulk_region *r = mr_bulk.regions; r; r = r->next) {
        unsigned by = naming_rail(r);

        if (r->rank != p->rank || !may_go_over(r, rail) || !mr_memory_is_on(&r->reg->memory, rail))
            continue;
        key[n++] = (struct mr_renewed_key){.told = r->told[by],
                                           .is = mr_memory_rkey(&r->reg->memory, rail),
                                           .rail = (uint16_t)by,
                                           .life = (uint16_t)mr_life_of(r->lives, by)};
        if (n < most)
            continue;
        send_keys(p, rail, key, n, false);
        n = 0;
    }
    send_keys(p, rail, key, n, true);
}

/* True if memory may have been advertised to the peer, even if the packet still waits for the first connection. */
static bool knows_keys(const struct mr_peer *p)
{
    const struct mr_bulk_region *r = mr_bulk.regions;

    while (r && r->rank != p->rank)
        r = r->next;
    return p->up || r;
}

int mr_renew_device(const struct mr_device *dev)
{
    int err = mr_odp_renew();

    for (struct mr_bulk_region *r = mr_bulk.regions; r && !err; r = r->next)
        if (is_wanted_on(r, dev))
            err = register_again(r, dev);
    for (int i = 0; i < mr_peers_end() && !err; i++) {
        struct mr_peer *p = mr_peers.peer[i];

        for (unsigned k = 0; p && !p->error && knows_keys(p) && k < mr_verbs.num_rails; k++)
            if (mr_verbs.rail[k].dev == dev)
                tell_peer(p, &mr_verbs.rail[k]);
    }
    return err;
}
