/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of connection management: made, checked, put into words. */
#include "libmrmpi/conn/cm/message.h"

#include <string.h>

struct mr_cm_msg mr_cm_message(enum mr_cm_type type, uint32_t job, uint32_t from, uint32_t to, uint32_t id)
{
    return (struct mr_cm_msg){.magic = MR_CM_MAGIC,
                              .version = MR_CM_VERSION,
                              .type = (uint8_t)type,
                              .job = job,
                              .from = from,
                              .to = to,
                              .id = id};
}

const char *mr_cm_reason_text(unsigned reason)
{
    static const char *const texts[MR_CM_REASONS] = {
        [MR_CM_NO_REASON] = "it gives no reason",
        [MR_CM_LATER] = "it still closes what was open before",
        [MR_CM_NO_RAIL] = "it finds no rail that leads here",
        [MR_CM_NO_ROOM] = "it has no memory or queue pairs left",
        [MR_CM_PORT_DOWN] = "its ports are down",
        [MR_CM_GIVEN_UP] = "it has given this rank up before",
        [MR_CM_BAD_VERSION] = "it runs another version of mrmpi",
        [MR_CM_OTHER] = "it cannot make the connection",
        [MR_CM_ENOUGH] = "it has as many connections as it may (MRMPI_RC_PEERS)",
        [MR_CM_NO_PKEY] = ("its ports are not in the partition that is asked for, or are limited members as those here "
                           "(P_Keys)"),
    };

    return texts[reason < MR_CM_REASONS ? reason : MR_CM_NO_REASON];
}

/* The common part of all versions. */
static bool is_for_us(const struct mr_cm_msg *m, uint32_t job, uint32_t self, uint32_t world)
{
    return m->magic == MR_CM_MAGIC && m->job == job && m->to == self && m->from < world && m->from != self;
}

static bool is_sane_reason(const struct mr_cm_msg *m)
{
    if (m->type == MR_CM_HERE && m->reason == MR_CM_GIVEN_UP)
        return !m->detail && !m->by_initiator;
    if (m->type != MR_CM_REJ)
        return !m->reason && !m->detail && !m->by_initiator;
    return m->by_initiator <= 1 && m->reason > MR_CM_NO_REASON && m->reason < MR_CM_REASONS &&
           m->detail <= MR_CM_DETAIL_MAX;
}

static bool are_sane_ports(const struct mr_cm_msg *m)
{
    return m->rail < MR_CM_PORTS_MAX && m->remote < MR_CM_PORTS_MAX;
}

static bool are_sane_guards(const struct mr_cm_msg *m)
{
    for (unsigned i = 0; i < MR_CM_PORTS_MAX; i++)
        if (m->guard[i].qpn > 0xffffff || (m->type != MR_CM_REQ && m->type != MR_CM_REP && m->guard[i].qpn))
            return false;
    return true;
}

static bool has_sane_number(const struct mr_cm_msg *m)
{
    return !m->done || (m->type == MR_CM_REQ && (int32_t)(m->id - m->done) > 0);
}

static bool has_sane_subs(const struct mr_cm_msg *m)
{
    if (m->type == MR_CM_ASK)
        return m->num_subs >= 1 && m->num_subs <= 1 + MR_CM_DOUBTS_MAX;
    if (m->type == MR_CM_HERE)
        return m->num_subs == 1;
    return (m->num_subs > 0) == (m->type == MR_CM_REQ || m->type == MR_CM_REP);
}

bool mr_cm_sender(const void *data, size_t len, uint32_t *from)
{
    if (len < offsetof(struct mr_cm_msg, from) + sizeof *from)
        return false;
    memcpy(from, (const char *)data + offsetof(struct mr_cm_msg, from), sizeof *from);
    return true;
}

bool mr_cm_check_foreign(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world,
                         struct mr_cm_msg *out)
{
    memset(out, 0, sizeof *out);
    if (len < offsetof(struct mr_cm_msg, psn))
        return false;
    memcpy(out, data, offsetof(struct mr_cm_msg, psn));
    return is_for_us(out, job, self, world) && out->version != MR_CM_VERSION;
}

bool mr_cm_check(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world, struct mr_cm_msg *out)
{
    memset(out, 0, sizeof *out);
    if (len < MR_CM_LENGTH(0) || len > sizeof *out)
        return false;
    memcpy(out, data, len);
    return is_for_us(out, job, self, world) && out->version == MR_CM_VERSION && out->type >= MR_CM_REQ &&
           out->type <= MR_CM_HERE && out->num_subs <= MR_CM_SUBS_MAX && len == MR_CM_LENGTH(out->num_subs) &&
           has_sane_subs(out) && has_sane_number(out) && is_sane_reason(out) && are_sane_ports(out) &&
           are_sane_guards(out);
}

void mr_cm_make_question(struct mr_cm_msg *out, enum mr_cm_type type, uint32_t job, uint32_t self, uint32_t peer,
                         uint32_t id, const struct mr_cm_sub *sub)
{
    *out = mr_cm_message(type, job, self, peer, id);
    out->num_subs = 1;
    out->sub[0] = *sub;
}
