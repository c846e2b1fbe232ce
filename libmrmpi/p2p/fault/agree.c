/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreements of communicators, by the scheme of era.h. A packet names its agreement by the communicator's context and
 * group, and by a number; messages of an agreement that the program has not begun here are kept.
 *
 * Of an intercommunicator each group gets the flags of the other: half of a value's bits are for each group.
 *
 * An agreement about the same as an earlier one (shrink.c) has a group's name of its own, since members may begin it
 * before or after other agreements of the communicator.
 *
 * The last decided agreement of each context and group is kept until MPI_Finalize, to answer members that are late. An
 * earlier one is not needed: an agreement begins here when the one before is decided, and none is decided before all
 * living members have begun it.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/fault/era.h"
#include "libmrmpi/p2p/fault/fault.h"
#include "libmrmpi/p2p/request/state.h"

struct kept_message {
    struct kept_message *next;
    int from; /* world rank */
    enum mr_era_kind kind;
    size_t total, come;
    uint8_t bytes[];
};

struct agree {
    struct agree *next;
    uint32_t ctx, number;
    uint64_t group_name;
    struct kept_message *kept, **kept_end; /* before the program's call; in order */
    struct mr_group *group;                /* NULL: not called */
    struct mr_era era;
    struct mr_era_value *own; /* until begun */
    unsigned shift;           /* of the decision's flags for this process */
    bool begun, told;
    mr_agreed_fn *agreed;
    void *arg;
};

static struct agree *agrees;
static struct kept_message *partial; /* of which packets are missing, one of each sender at most */

/* ---- the table --------------------------------------------------------------------------------------------------- */

static struct agree *agree_find(uint32_t ctx, uint64_t group_name, uint32_t number)
{
    struct agree *a = agrees;

    while (a && !(a->ctx == ctx && a->group_name == group_name && a->number == number))
        a = a->next;
    return a;
}

static struct agree *agree_get(uint32_t ctx, uint64_t group_name, uint32_t number)
{
    struct agree *a = agree_find(ctx, group_name, number);

    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    *a = (struct agree){.next = agrees, .ctx = ctx, .number = number, .group_name = group_name};
    a->kept_end = &a->kept;
    agrees = a;
    return a;
}

static void free_agree(struct agree *a)
{
    while (a->kept) {
        struct kept_message *m = a->kept;

        a->kept = m->next;
        free(m);
    }
    if (a->group) {
        mr_era_free(&a->era);
        mr_group_put(a->group);
    }
    free(a->own);
    free(a);
}

static void drop_agree(struct agree *a)
{
    struct agree **at = &agrees;

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    free_agree(a);
}

void mr_agree_free(void)
{
    while (agrees)
        drop_agree(agrees);
    while (partial) {
        struct kept_message *m = partial;

        partial = m->next;
        free(m);
    }
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* In as many packets as it takes, with nothing between. */
static void send_value(void *arg, int to, enum mr_era_kind kind, const struct mr_era_value *value)
{
    const struct agree *a = arg;
    struct mr_vc *vc = mr_vc_get_peer(a->group->world[to]);
    size_t total = value ? mr_era_bytes(value->num_failed) : 0, most = mr_vc_packet_max(vc), at = 0;

    do {
        size_t len = total - at < most ? total - at : most;
        struct mr_hdr hdr = {.kind = MR_PKT_AGREE,
                             .flags = (uint8_t)kind,
                             .ctx = a->ctx,
                             .tag = (int32_t)a->number,
                             .len = at,
                             .sreq = a->group_name,
                             .rreq = total};

        if (mr_vc_send(vc, &hdr, value ? (const uint8_t *)value + at : NULL, len))
            return; /* lost: the members hear of it */
        at += len;
    } while (at < total);
}

static void no_memory_to_agree(void)
{
    mr_launch_abort(1, "out of memory for an agreement of processes");
}

static void agree_settle(struct agree *a);

static void play(struct agree *a, const struct kept_message *m)
{
    int from = mr_group_find(a->group, m->from);
    const struct mr_era_value *v = (const struct mr_era_value *)m->bytes;

    if (from == MR_UNDEFINED || (m->kind != MR_ERA_ASK && !mr_era_is_value(m->bytes, m->total, a->group->size)))
        return; /* damaged */
    if (!mr_era_message(&a->era, from, m->kind, m->kind == MR_ERA_ASK ? NULL : v))
        no_memory_to_agree();
}

/* All of a message has come; takes it. */
static void take_agree_message(const struct mr_hdr *hdr, struct kept_message *m)
{
    struct agree *a = agree_get(hdr->ctx, hdr->sreq, (uint32_t)hdr->tag);

    if (!a)
        no_memory_to_agree();
    if (a->begun) {
        play(a, m);
        free(m);
        agree_settle(a);
        return;
    }
    m->next = NULL;
    *a->kept_end = m;
    a->kept_end = &m->next;
}

static struct kept_message *take_partial(int from)
{
    struct kept_message **at = &partial, *m;

    while (*at && (*at)->from != from)
        at = &(*at)->next;
    m = *at;
    if (m)
        *at = m->next;
    return m;
}

void mr_agree_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    int from = mr_vc_world_rank(vc);
    struct kept_message *m;

    if (mr_vc_lost(vc) || hdr->flags > MR_ERA_DOWN || hdr->rreq > mr_era_bytes((uint32_t)mr_guest_end()))
        return;
    m = take_partial(from);
    if (!hdr->len) {
        free(m);
        m = calloc(1, sizeof(*m) + hdr->rreq);
        if (!m)
            no_memory_to_agree();
        m->from = from;
        m->kind = (enum mr_era_kind)hdr->flags;
        m->total = hdr->rreq;
    }
    if (!m || hdr->len != m->come || hdr->rreq != m->total || len > m->total - m->come) {
        free(m); /* damaged */
        return;
    }
    if (len)
        memcpy(m->bytes + m->come, payload, len);
    m->come += len;
    if (m->come == m->total) {
        take_agree_message(hdr, m);
        return;
    }
    m->next = partial;
    partial = m;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static void play_kept(struct agree *a)
{
    while (a->kept) {
        struct kept_message *m = a->kept;

        a->kept = m->next;
        play(a, m);
        free(m);
    }
    a->kept_end = &a->kept;
}

static void begin_agree(struct agree *a)
{
    struct mr_era_value *own = a->own;

    a->own = NULL;
    a->begun = true;
    if (!mr_era_call(&a->era, own))
        no_memory_to_agree();
    free(own);
    play_kept(a);
}

/* Members that all take for failed, although their failure may not have been told here yet. */
static void learn_of_failures(const struct agree *a)
{
    for (uint32_t i = 0; i < a->era.sum->num_failed; i++) {
        int world = a->group->world[a->era.sum->failed[i] / 2];

        if (!mr_vc_lost(mr_vc_get_peer(world)))
            mr_launch_note_end(world);
    }
}

/* The caller has not heard yet. */
static bool was_just_decided(const struct agree *a)
{
    return a->begun && a->era.decided && !a->told;
}

/* Once decided: the one before goes, the next begins. Last the caller hears, who may begin another. */
static void agree_settle(struct agree *a)
{
    while (a && was_just_decided(a)) {
        struct agree *before = agree_find(a->ctx, a->group_name, a->number - 1);
        struct agree *after = agree_find(a->ctx, a->group_name, a->number + 1);
        struct mr_agreed d = {
            .flags = (uint32_t)(a->era.sum->flags >> a->shift), .number = a->era.sum->number, .nth = a->number};

        a->told = true;
        learn_of_failures(a);
        if (before)
            drop_agree(before);
        if (after && after->group && !after->begun)
            begin_agree(after);
        else
            after = NULL;
        d.error = mr_era_unacknowledged(a->era.sum) ? MR_ERR_PROC_FAILED : MR_SUCCESS;
        d.group = a->group;
        d.value = a->era.sum;
        a->agreed(&d, a->arg);
        a = after;
    }
}

bool mr_agreed_failed(const struct mr_agreed *d, int member)
{
    return mr_era_has_failed(d->value, member);
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The place of the local group's flags in a value: the group of the lowest world rank comes first. */
static unsigned own_shift(const struct mr_comm *c, const struct mr_group *all)
{
    return mr_group_find(c->group, all->world[0]) == MR_UNDEFINED ? 32 : 0;
}

static uint64_t own_flags(const struct mr_comm *c, const struct mr_group *all, struct mr_vote vote)
{
    unsigned shift = own_shift(c, all);
    uint64_t flags = vote.flags;

    if (vote.common)
        return flags << 32 | flags;
    return flags << shift | (uint64_t)UINT32_MAX << (32 - shift);
}

/* With the failures that are known here now. */
static struct mr_era_value *own_value(const struct mr_comm *c, const struct mr_group *all, struct mr_vote vote)
{
    unsigned num = mr_comm_fault(c) ? c->num_failed : 0;
    struct mr_era_value *v = calloc(1, mr_era_bytes(num));
    int *world = malloc((num + 1) * sizeof(*world));

    if (v && world) {
        num = mr_comm_failed(c, world, num);
        *v = (struct mr_era_value){.flags = own_flags(c, all, vote), .number = vote.number, .num_failed = num};
        for (unsigned i = 0; i < num; i++)
            v->failed[i] = (uint32_t)mr_group_find(all, world[i]) * 2 + (i < c->num_acked);
        qsort(v->failed, num, sizeof(v->failed[0]), by_rank);
    } else {
        free(v);
        v = NULL;
    }
    free(world);
    return v;
}

/* The first that was not called yet. */
static uint32_t next_number(uint32_t ctx, uint64_t group_name)
{
    uint32_t next = 0;

    for (const struct agree *a = agrees; a; a = a->next)
        if (a->ctx == ctx && a->group_name == group_name && a->group && a->number >= next)
            next = a->number + 1;
    return next;
}

enum mr_err mr_agree(struct mr_comm *c, uint32_t ctx, struct mr_vote vote, mr_agreed_fn *agreed, void *arg)
{
    struct mr_group *all = mr_comm_everybody(c);
    uint64_t name = all ? mr_group_name(all) ^ (vote.again * 0x9e3779b97f4a7c15u) : 0;
    uint32_t number = next_number(ctx, name);
    struct mr_era_value *own = all ? own_value(c, all, vote) : NULL;
    struct agree *a = own ? agree_get(ctx, name, number) : NULL, *before;

    if (!a || !mr_era_init(&a->era, all->size, mr_group_find(all, mr_comm_world->rank))) {
        free(own);
        if (all)
            mr_group_put(all);
        return mr_fail(MR_ERR_NO_MEM, "no memory for an agreement");
    }
    a->group = all;
    a->shift = mr_comm_is_inter(c) ? 32 - own_shift(c, all) : 0;
    a->era.send = send_value;
    a->era.arg = a;
    a->own = own;
    a->agreed = agreed;
    a->arg = arg;
    before = number ? agree_find(ctx, name, number - 1) : NULL;
    if (!before || before->told) {
        begin_agree(a);
        agree_settle(a);
    }
    return MR_SUCCESS;
}

void mr_agree_forget(int number)
{
    free(take_partial(number));
}

void mr_agree_lost(int world_rank)
{
    struct agree *next;

    free(take_partial(world_rank));
    for (struct agree *a = agrees; a; a = next) {
        int rank = a->group ? mr_group_find(a->group, world_rank) : MR_UNDEFINED;

        next = a->next;
        if (rank == MR_UNDEFINED)
            continue;
        if (!mr_era_died(&a->era, rank))
            no_memory_to_agree();
    }
    for (bool again = true; again;) {
        again = false;
        for (struct agree *a = agrees; a && !again; a = a->next)
            if (was_just_decided(a)) {
                agree_settle(a); /* the list is another now */
                again = true;
            }
    }
}
