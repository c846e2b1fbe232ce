/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of adapters. */
#include "simfab/engine/hca/mcast_group.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/wire/mcast.h"
#include "simfab/engine/wire/packet.h"

/* A queue pair's membership of a group, in the list of its adapter's groups. */
struct mcast_member {
    struct mcast_member *next;
    struct qp *qp;
};

struct mcast_group {
    struct mcast_group *next;
    uint8_t gid[16];
    uint16_t lid;
    uint32_t num_members;
    struct mcast_member *members; /* in the order of attaching */
};

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static struct mcast_group **find_group(struct hca *h, const uint8_t gid[16], uint16_t lid)
{
    struct mcast_group **g = &h->mcast_groups;

    while (*g && ((*g)->lid != lid || memcmp((*g)->gid, gid, sizeof(*g)->gid)))
        g = &(*g)->next;
    return g;
}

static struct mcast_member **find_member(struct mcast_group *g, const struct qp *qp)
{
    struct mcast_member **m = &g->members;

    while (*m && (*m)->qp != qp)
        m = &(*m)->next;
    return m;
}

static bool is_group_address(const struct qp *qp, const uint8_t gid[16], uint16_t lid)
{
    return qp->type == IBV_QPT_UD && gid[0] == 0xff && mcast_lid(lid);
}

int mcast_attach(struct qp *qp, const uint8_t gid[16], uint16_t lid)
{
    struct mcast_group **g;
    struct mcast_member **m;

    if (!is_group_address(qp, gid, lid))
        return EINVAL;
    g = find_group(qp->hca, gid, lid);
    if (!*g) {
        if (qp->hca->num_mcast_groups == MCAST_GROUPS_MAX)
            return ENOMEM;
        *g = xcalloc(1, sizeof **g);
        memcpy((*g)->gid, gid, sizeof(*g)->gid);
        (*g)->lid = lid;
        qp->hca->num_mcast_groups++;
    }
    m = find_member(*g, qp);
    if (*m)
        return 0;
    if ((*g)->num_members == MCAST_QPS_MAX)
        return ENOMEM;
    *m = xcalloc(1, sizeof **m);
    (*m)->qp = qp;
    (*g)->num_members++;
    qp->obj.uses++; /* cannot be destroyed while attached */
    qp->mcast_groups++;
    return 0;
}

static void leave(struct hca *h, struct mcast_group **g, struct mcast_member **m)
{
    struct mcast_member *gone = *m;
    struct mcast_group *empty = *g;

    *m = gone->next;
    gone->qp->obj.uses--;
    gone->qp->mcast_groups--;
    free(gone);
    if (--empty->num_members)
        return;
    *g = empty->next;
    h->num_mcast_groups--;
    free(empty);
}

int mcast_detach(struct qp *qp, const uint8_t gid[16], uint16_t lid)
{
    struct mcast_group **g;
    struct mcast_member **m;

    if (!is_group_address(qp, gid, lid))
        return EINVAL;
    g = find_group(qp->hca, gid, lid);
    m = *g ? find_member(*g, qp) : NULL;
    if (!m || !*m)
        return EINVAL;
    leave(qp->hca, g, m);
    return 0;
}

void mcast_forget(struct qp *qp)
{
    struct mcast_group **g = &qp->hca->mcast_groups;

    while (*g && qp->mcast_groups) {
        struct mcast_group *group = *g;
        struct mcast_member **m = find_member(group, qp);

        if (*m)
            leave(qp->hca, g, m);
        if (*g == group)
            g = &group->next;
    }
}

/* ---- adapters -------------------------------------------------------------------------------------------------- */

/* The DGID of the GRH, present in every multicast packet, names the group. */
static struct mcast_group *group_of(struct hca_port *hp, const struct packet *p)
{
    if (!(p->flags & PKT_GRH) || p->dest_qpn != MCAST_QPN || p->transport != IBV_QPT_UD)
        return NULL;
    return *find_group(hp->hca, p->grh + 24, p->dlid);
}

uint32_t mcast_receivers(struct hca_port *hp, const struct packet *p)
{
    struct mcast_group *g = group_of(hp, p);
    uint32_t n = 0;

    for (struct mcast_member *m = g ? g->members : NULL; m; m = m->next)
        n += m->qp->port == hp;
    return n;
}

uint32_t mcast_deliver(struct hca_port *hp, struct packet *p)
{
    struct mcast_group *g = group_of(hp, p);
    uint32_t n = 0;

    for (struct mcast_member *m = g ? g->members : NULL; m; m = m->next) {
        if (m->qp->port != hp)
            continue;
        m->qp->ops->received(m->qp, p);
        n++;
    }
    return n;
}

struct packet *mcast_own_copy(struct hca_port *hp, const struct packet *p)
{
    return mcast_receivers(hp, p) ? packet_copy(p) : NULL;
}
