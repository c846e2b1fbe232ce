/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/conn: see README.md. */
#include <string.h>

#include "libmrmpi/conn/cm/conn.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/peer/events.h"
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/peer/internal.h"
#include "libmrmpi/conn/peer/subs.h"
#include "tests/stubs/stub.h"

STUB bool mr_retired_free(int number, bool (*listed)(const struct mr_peer *p))
{
    return true;
}

STUB void mr_budget_first(struct mr_peer *p, uint8_t kinds)
{
}

STUB void mr_budget_need(struct mr_peer *p)
{
}

STUB void mr_cm_traffic(struct mr_cm_conn *c)
{
}

STUB int mr_peers_reach(int number)
{
    return 0;
}

STUB int mr_peer_keep_address(struct mr_peer *p, const struct mr_address *address)
{
    return 0;
}

STUB void mr_peer_due(struct mr_peer *p)
{
}

STUB bool mr_epoch_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin)
{
    return false;
}

STUB void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg)
{
}

STUB void mr_paths_note(struct mr_peer *p, uint64_t len)
{
}

STUB void mr_addresses_poll(void)
{
}

STUB bool mr_peer_ask_uses(const struct mr_sub *s)
{
    return false;
}

STUB void mr_peer_tell_doubted(struct mr_peer *p)
{
}

STUB bool mr_peer_tell_due(struct mr_sub *s)
{
    return false;
}

STUB void mr_peer_tell_lossy(struct mr_peer *p)
{
}

STUB int mr_peer_tell_made(struct mr_peer *p)
{
    return 0;
}

STUB void mr_peer_tell_moved(struct mr_peer *p)
{
}

STUB void mr_peer_tell_preferred(struct mr_peer *p)
{
}

STUB void mr_peer_tell_reweighed(struct mr_peer *p)
{
}

STUB int mr_guard_missing(const struct mr_peer *p)
{
    return -1;
}

STUB void mr_guard_rail_lost(const struct mr_peer *p, unsigned rail)
{
}

STUB void mr_sub_forget_links(struct mr_sub *s)
{
}

STUB void mr_peer_backlog(struct mr_peer *p)
{
}

STUB void mr_peer_lost(struct mr_peer *p, int error)
{
    p->error = error;
}

STUB void mr_probe_drop(struct mr_sub *s)
{
}

STUB bool mr_probe_keep(struct mr_sub *s, struct mr_qp *qp)
{
    return true;
}

STUB bool mr_spread_is_far(unsigned rail)
{
    return false;
}

STUB uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set)
{
    return set;
}

STUB bool mr_steer_by_rdma(const struct mr_peer *p, size_t len)
{
    return true;
}

STUB bool mr_steer_is_stale(const struct mr_peer *p)
{
    return false;
}

STUB int mr_steer_peer(struct mr_peer *p)
{
    return 0;
}

STUB uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up)
{
    return 0;
}

STUB bool mr_steer_wants(const struct mr_peer *p, uint8_t set)
{
    return true;
}

STUB void mr_peer_take_health(struct mr_peer *p)
{
}

STUB const char *mr_sub_name(const struct mr_sub *s, char out[MR_SUB_NAME])
{
    return strcpy(out, "");
}

STUB void mr_sub_prefer(struct mr_peer *p)
{
}

STUB void mr_subs_use_spares(struct mr_peer *p)
{
}

STUB void mr_where_answered(struct mr_peer *p)
{
}

STUB void mr_where_ask(struct mr_peer *p, uint64_t now_ns)
{
}

STUB void mr_where_say(struct mr_cm_msg *m, const struct mr_sub *mode, uint16_t pkey)
{
}

STUB void mr_ration_asked(struct mr_peer *p, unsigned kind)
{
}

STUB void mr_recovery_connected(struct mr_peer *p)
{
}

STUB bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin)
{
    return false;
}
