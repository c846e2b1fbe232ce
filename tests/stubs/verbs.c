/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/verbs: see README.md. */
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/internal.h"
#include "libmrmpi/verbs/link/packet.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/memory/odp.h"
#include "libmrmpi/verbs/memory/regcache.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/memory/watch.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/verbs/qp.h"
#include "tests/stubs/stub.h"

STUB struct mr_verbs_handlers mr_verbs_up;

STUB void mr_device_lost(struct mr_device *dev)
{
}

STUB bool mr_rail_is_active(const struct mr_rail *rail)
{
    return true;
}

STUB void mr_packet_settle(struct mr_packet *p)
{
}

STUB void mr_packets_free(struct mr_kept *list)
{
}

STUB int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    return 0;
}

STUB void mr_memory_deregister(struct mr_memory *m)
{
}

STUB uint32_t mr_memory_devices(const struct mr_memory *m)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < MR_DEVICES_MAX; i++)
        set |= (uint32_t)(m->mr[i] != NULL) << i;
    return set;
}

STUB bool mr_memory_is_on(const struct mr_memory *m, const struct mr_rail *rail)
{
    return m->mr[rail->dev->index];
}

STUB uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 1;
}

STUB uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 0;
}

STUB void mr_odp_close(void)
{
}

STUB bool mr_odp_comes_first(void)
{
    return false;
}

STUB bool mr_odp_owns(const struct mr_reg *r)
{
    return false;
}

STUB int mr_odp_renew(void)
{
    return 0;
}

STUB int mr_regs_extend(struct mr_reg *r, struct mr_reg_wish wish)
{
    return 0;
}

STUB bool mr_regs_know(const void *buf, size_t len)
{
    return true;
}

STUB const struct mr_reg *mr_regs_find(const void *buf, size_t len)
{
    return NULL;
}

STUB uint32_t mr_regs_devices(void)
{
    return 1;
}

STUB void mr_regs_release(struct mr_reg *r)
{
}

STUB const char *mr_memory_watch_begin(void)
{
    return NULL;
}

STUB void mr_memory_watch_for(struct mr_regcache *c)
{
}

STUB void mr_ud_pool_close(struct mr_rail *rail)
{
}

STUB unsigned mr_ud_pool_completions(void)
{
    return 0;
}

STUB bool mr_ud_pool_in_use(const struct mr_rail *rail)
{
    return false;
}

STUB int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                     const uint32_t *imm, struct mr_tx *tx)
{
    return 0;
}

STUB void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc)
{
}

STUB uint8_t mr_qp_reads(const struct mr_device *dev)
{
    return 1;
}

STUB void mr_rx_close(struct mr_rx **rx)
{
}

STUB int mr_rx_open(struct mr_rail *rail, struct mr_rx **out, unsigned depth, size_t longest, bool datagrams)
{
    return -ENODEV;
}

STUB void mr_rx_rails_changed(struct mr_rx *rx)
{
}

STUB void mr_rx_repost(void)
{
}

STUB void mr_rx_repost_streams(void)
{
}

STUB void mr_rail_ah_attr(const struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, uint8_t path,
                          struct ibv_ah_attr *attr)
{
}

STUB void mr_ud_close(struct mr_rail *rail)
{
}

STUB int mr_ud_open(struct mr_rail *rail)
{
    return -ENODEV;
}

STUB int mr_ud_send(struct mr_rail *rail, const struct mr_ud_route *mode, const void *data, size_t len)
{
    return 0;
}

STUB void mr_udp_close(struct mr_rail *rail)
{
}

STUB unsigned mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return 2048;
}

STUB unsigned mr_udp_num_qps(const struct mr_rail *rail)
{
    return 0;
}

STUB int mr_udp_open(struct mr_rail *rail)
{
    return -ENODEV;
}

STUB void mr_costs_measure_memory(struct ibv_pd *pd, void *memory, size_t bytes)
{
}

STUB void mr_costs_may_begin(void)
{
}

STUB void mr_costs_answered(struct mr_link *l, bool failed)
{
}
