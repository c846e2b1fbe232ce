/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer with two subchannels of each parity, over links that only record calls: for tests of peer/. */
#ifndef FAKE_PEER_H
#define FAKE_PEER_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/peer/internal.h"
#include "tests/stubs/stub.h"

#define SUBS 2u /* of each parity */
#define MS   1000000ull

static struct mr_device device;
static struct mr_rail rails[SUBS];
static struct mr_peer peer, *peers[2] = {NULL, &peer};
static struct mr_peer_own own;
static struct mr_connect_peer conn;
static struct mr_sub sub[2 * SUBS];
static struct mr_sub_own sub_own[2 * SUBS];
static struct mr_connect_sub sub_conn[2 * SUBS];
static struct mr_link links[2 * SUBS][MR_LEVELS];
static struct mr_load loads[2][SUBS];
static struct mr_address address;
static struct mr_launch launch;
static const int node_of[2] = {0, 1};
static unsigned drains, keepalives, flushes;
static int keepalive_error;

void mr_sub_set_up(struct mr_sub *s, bool up)
{
    own.loads[s->parity][mr_sub_place(s)].up = up;
}

uint32_t mr_sub_sick(const struct mr_sub *s)
{
    return s->rail->sick;
}

uint8_t mr_sub_sl(const struct mr_sub *s, enum mr_level level)
{
    return s->own->sl[level];
}

static void drain_link(struct mr_link *l)
{
    l->state = MR_LINK_BROKEN;
    drains++;
}

static int keepalive_link(struct mr_link *l)
{
    keepalives += !keepalive_error;
    return keepalive_error;
}

static int flush_link(struct mr_link *l)
{
    flushes++;
    return 0;
}

static const struct mr_link_ops fake_ops = {.drain = drain_link, .keepalive = keepalive_link, .flush = flush_link};

/* Rank 0 here, rank 1 there; each subchannel has one closed link. The clock stands at 1000 s. */
static void make_peer(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&device, 0, sizeof device);
    memset(rails, 0, sizeof rails);
    memset(&peer, 0, sizeof peer);
    memset(&own, 0, sizeof own);
    memset(&conn, 0, sizeof conn);
    memset(sub, 0, sizeof sub);
    memset(sub_own, 0, sizeof sub_own);
    memset(sub_conn, 0, sizeof sub_conn);
    memset(links, 0, sizeof links);
    memset(loads, 0, sizeof loads);
    memset(&address, 0, sizeof address);
    launch = (struct mr_launch){.rank = 0, .size = 2, .num_nodes = 2, .node_of = node_of};
    stub_clock_ns = 1000000 * MS;
    drains = keepalives = flushes = 0;
    keepalive_error = 0;
    mr_config.log_level = -1;
    mr_config.patience = 10;
    mr_peers.launch = &launch;
    mr_peers.peer = peers;
    mr_peers.our_kinds = address.kinds = 1u << MR_LINK_RC;
    mr_peers.kinds = (struct mr_kinds){.num = 1, .kind = {MR_LINK_RC}};
    mr_peers.kinds.native[MR_LINK_RC] = true;
    for (unsigned l = 0; l < MR_LEVELS; l++)
        mr_peers.qos.level[l].num_lanes = 1;
    address.magic = MR_ADDRESS_MAGIC;
    address.num_rails = SUBS;
    peer.rank = 1;
    peer.own = &own;
    peer.connect = &conn;
    peer.address = &address;
    peer.up = true;
    peer.num_now = SUBS;
    peer.num_subs = 2 * SUBS;
    peer.sub = peer.now = sub;
    own.loads[0] = peer.load = loads[0];
    own.loads[1] = loads[1];
    conn.wanted = 1u << MR_LINK_RC;
    for (unsigned i = 0; i < SUBS; i++)
        rails[i] = (struct mr_rail){.index = i,
                                    .dev = &device,
                                    .num_partitions = 1,
                                    .partition[0] = {.number = 0x7fff, .now = {.key = 0xffff}}};
    for (unsigned i = 0; i < SUBS; i++)
        mr_address_partitions(&address)[address.num_partitions++] =
            (struct mr_partition){.key = 0xffff, .rail = (uint8_t)i, .ud_qpn = 100 + i};
    for (unsigned i = 0; i < 2 * SUBS; i++) {
        sub[i] = (struct mr_sub){.peer = &peer,
                                 .own = &sub_own[i],
                                 .connect = &sub_conn[i],
                                 .rail = &rails[i % SUBS],
                                 .remote_rail = (uint8_t)(i % SUBS),
                                 .kind = MR_LINK_RC,
                                 .pkey = 0xffff,
                                 .parity = i >= SUBS,
                                 .generation = 5,
                                 .peer_from = 5,
                                 .num_links = 1,
                                 .link = links[i]};
        links[i][0] = (struct mr_link){.ops = &fake_ops, .kind = MR_LINK_RC, .owner = &sub[i], .index = (uint8_t)i};
        for (unsigned l = 0; l < MR_LEVELS; l++)
            sub[i].level[l] = links[i];
    }
}

static inline void set_open(struct mr_sub *s)
{
    s->state = MR_SUB_OPEN;
    s->link[0].state = MR_LINK_OPEN;
    own.loads[s->parity][mr_sub_place(s)].up = true;
}

#endif
