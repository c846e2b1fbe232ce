/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts reported by a port. */
#include "libmrmpi/verbs/port.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

static uint32_t rate_mbps(const struct ibv_port_attr *p)
{
    static const struct {
        uint8_t code;
        uint32_t mbps;
    } speed[] = {
        {1, 2500}, {2, 5000}, {4, 10000}, {8, 10312}, {16, 14062}, {32, 25781}, {64, 53125}, {128, 106250},
    };
    static const struct {
        uint8_t code;
        uint32_t lanes;
    } width[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    uint32_t mbps = 0;

    for (size_t i = 0; i < sizeof speed / sizeof *speed; i++)
        if (speed[i].code == p->active_speed)
            mbps = speed[i].mbps;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        if (width[i].code == p->active_width)
            return mbps * width[i].lanes;
    return mbps;
}

/* The GIDs of a RoCE port; an address handle has one byte for the index. */
static size_t read_gids(struct ibv_context *ctx, const struct ibv_port_attr *port, unsigned num,
                        struct mr_gid_entry table[256])
{
    size_t n = 0;

    for (unsigned i = 0; i < (unsigned)port->gid_tbl_len && i < 256; i++) {
        struct ibv_gid_entry e;

        if (ibv_query_gid_ex(ctx, num, i, &e, 0) || e.gid_type == IBV_GID_TYPE_IB)
            continue; /* most places are empty */
        table[n] = (struct mr_gid_entry){
            .index = (uint16_t)i, .version = e.gid_type == IBV_GID_TYPE_ROCE_V2 ? MR_GID_ROCE_V2 : MR_GID_ROCE_V1};
        memcpy(table[n++].gid, e.gid.raw, sizeof e.gid.raw);
    }
    return n;
}

static int choose_roce_gid(struct ibv_context *ctx, const char *device, const struct ibv_port_attr *port,
                           const struct mr_gid_wish *wish, struct mr_rail_addr *out, uint8_t *gid_index)
{
    struct mr_gid_entry table[256];
    size_t n = read_gids(ctx, port, out->port, table);
    const struct mr_gid_entry *e = mr_gid_choose(wish, table, n);
    char text[INET6_ADDRSTRLEN] = "";

    if (!e) {
        mr_log(MR_LOG_WARN, "%s port %u is not used: none of its %zu GIDs is as MRMPI_ROCE_GID=%s wants it", device,
               out->port, n, mr_config.roce_gid);
        return -ENODEV;
    }
    *gid_index = (uint8_t)e->index;
    memcpy(out->gid, e->gid, sizeof out->gid);
    out->gid_kind = mr_gid_kind(e);
    inet_ntop(AF_INET6, e->gid, text, sizeof text);
    mr_log(MR_LOG_INFO, "%s port %u: GID %u, %s, RoCE v%d", device, out->port, e->index, text,
           e->version == MR_GID_ROCE_V2 ? 2 : 1);
    return 0;
}

static int choose_gid(struct ibv_context *ctx, const char *device, const struct ibv_port_attr *port,
                      const struct mr_gid_wish *wish, struct mr_rail_addr *out, uint8_t *gid_index)
{
    union ibv_gid gid;

    if (out->global)
        return choose_roce_gid(ctx, device, port, wish, out, gid_index);
    if (ibv_query_gid(ctx, out->port, 0, &gid)) {
        mr_log(MR_LOG_WARN, "%s port %u has no GID; it is not used", device, out->port);
        return -ENODEV;
    }
    memcpy(out->gid, gid.raw, sizeof out->gid);
    return 0;
}

int mr_port_describe(struct ibv_context *ctx, const char *device, unsigned num, const struct ibv_port_attr *port,
                     const struct mr_gid_wish *wish, struct mr_rail_addr *out, uint8_t *gid_index)
{
    out->port = (uint8_t)num;
    out->lid = port->lid;
    out->lmc = port->lmc;
    out->rate_mbps = rate_mbps(port);
    out->mtu = (uint8_t)port->active_mtu;
    out->global = port->link_layer == IBV_LINK_LAYER_ETHERNET;
    memcpy(out->device, device, strnlen(device, sizeof out->device - 1));
    return choose_gid(ctx, device, port, wish, out, gid_index);
}

unsigned mr_port_pkeys(struct ibv_context *ctx, unsigned num, const struct ibv_port_attr *port, uint16_t preferred,
                       struct mr_pkey out[MR_PKEYS_MAX])
{
    uint16_t *table = calloc(port->pkey_tbl_len + 1u, sizeof *table);
    unsigned found = 0, answered = 0;

    for (int i = 0; table && i < port->pkey_tbl_len; i++) {
        __be16 key;

        if (ibv_query_pkey(ctx, (uint8_t)num, i, &key))
            continue;
        table[i] = be16toh(key);
        answered++;
    }
    if (answered)
        found = mr_pkeys_of_table(table, port->pkey_tbl_len, preferred, out);
    else
        out[found++] = (struct mr_pkey){.key = MR_PKEY_DEFAULT, .index = 0};
    free(table);
    return found;
}

const char *mr_port_unusable(const char *device, unsigned num, const struct ibv_port_attr *port, mr_rail_reject *reject,
                             void *arg)
{
    if (port->state != IBV_PORT_ACTIVE)
        return "it is not active";
    if (port->link_layer != IBV_LINK_LAYER_ETHERNET && !port->lid)
        return "it has no LID; does a subnet manager run?";
    return reject && reject(device, (int)num, arg) ? "fabricd has taken it out" : NULL;
}
