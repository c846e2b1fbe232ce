/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreement on context ids: a bit of a mask that is free at all members, who AND their masks. Only one agreement of a
 * process may offer the mask at a time; the others offer nothing and try again. The agreement with the lowest key goes
 * first everywhere, so that two agreements in two threads cannot starve each other.
 *
 * A process that offers must not wait for a process that is not in the agreement yet: that process may be waiting for
 * our offer in another agreement. If several agreements can be under way at once, the first round therefore only finds
 * out that all have come, and before that an agreement has no claim.
 */
#include "libmrmpi/base/lock.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"

#include <string.h>

static struct {
    bool offered;                /* an agreement has the mask */
    struct mr_agreement *active; /* all agreements under way */
} agreements;

void mr_agreements_finalize(void)
{
    agreements.offered = false;
    agreements.active = NULL;
}

static bool goes_before(const struct mr_agreement_key *a, const struct mr_agreement_key *b)
{
    return a->messages != b->messages ? a->messages < b->messages : a->leaders < b->leaders;
}

/* Among agreements whose members have all come: the lowest key. Later agreements may wait long for their members. */
static bool my_turn(const struct mr_agreement *a)
{
    bool alone = !a->nonblocking && !mr_threaded && agreements.active == a && !a->next;
    if (agreements.offered || !(a->all_came || alone))
        return false;
    for (const struct mr_agreement *b = agreements.active; b; b = b->next)
        if (b->all_came && goes_before(&b->key, &a->key))
            return false;
    return true;
}

static void note_agree_error(struct mr_agreement *a, enum mr_err err)
{
    if (!a->error)
        a->error = err;
}

_Static_assert(MR_ERR_LAST < 64, "a bit for each error");

uint64_t mr_well_but(enum mr_err wrong)
{
    return wrong ? ~((uint64_t)1 << wrong) : UINT64_MAX;
}

enum mr_err mr_refused_by_other(enum mr_err wrong)
{
    return mr_fail(wrong, "another process has called with a wrong argument");
}

/* Not all is well. */
static enum mr_err refused_by_member(const struct mr_agreement *a)
{
    const uint64_t wrong = ~a->mine.all_well;

    if (a->wrong)
        return a->wrong;
    return wrong & 1 ? mr_fail(MR_ERR_OTHER, "the leaders of the two groups did not reach each other")
                     : mr_refused_by_other((enum mr_err)__builtin_ctzll(wrong));
}

static void begin_round(struct mr_agreement *a)
{
    memset(&a->mine, 0, sizeof(a->mine));
    a->mine.all_well = mr_well_but(a->wrong);
    a->offering = my_turn(a);
    if (a->offering) {
        agreements.offered = true;
        a->mine.all_offer = 1;
        memcpy(a->mine.free, mr_context_ids(), sizeof(a->mine.free));
    }
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_allreduce(MR_IN_PLACE, &a->mine, sizeof(a->mine) / sizeof(uint64_t),
                                        &mr_type_basic[MR_BASIC_UINT64_T], &mr_op_builtin[MR_OP_BAND], a->local, &s);
    note_agree_error(a, err ? err : mr_coll_start(s, &a->req[0]));
}

static void cross_bridge(struct mr_agreement *a)
{
    const struct mr_bridge *b = &a->bridge;
    if (a->error)
        a->mine.all_well = 0; /* the others must learn of the failure */
    note_agree_error(a, mr_irecv(&a->theirs, sizeof(a->theirs), mr_type_byte, b->remote_leader, b->tag, b->comm,
                                 b->context, &a->req[0]));
    note_agree_error(a, mr_isend(&a->mine, sizeof(a->mine), mr_type_byte, b->remote_leader, b->tag, b->comm, b->context,
                                 MR_SEND_STANDARD, &a->req[1]));
}

/* The leaders' results reach all; so does a failure between them. */
static void spread_verdict(struct mr_agreement *a)
{
    if (a->local->rank == a->bridge.leader) {
        const uint64_t *theirs = (const uint64_t *)&a->theirs;
        uint64_t *mine = (uint64_t *)&a->mine;
        for (size_t i = 0; i < sizeof(a->mine) / sizeof(*mine); i++)
            mine[i] = a->error ? 0 : mine[i] & theirs[i];
    }
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_bcast(&a->mine, sizeof(a->mine), mr_type_byte, a->bridge.leader, a->local, &s);
    note_agree_error(a, err ? err : mr_coll_start(s, &a->req[0]));
}

static enum mr_err take_ids(struct mr_agreement *a)
{
    int n = 0;
    for (int i = 0; i < MR_CONTEXT_WORDS && n < a->want; i++) {
        for (uint64_t w = a->mine.free[i]; w && n < a->want; w &= w - 1)
            a->ids[n++] = 2 * (uint32_t)(64 * i + __builtin_ctzll(w));
    }
    if (n < a->want)
        return mr_fail(MR_ERR_OTHER, "no context id is left: more than %d communicators", MR_CONTEXT_MAX);
    for (int i = 0; a->take && i < n; i++)
        mr_context_take(a->ids[i]);
    return MR_SUCCESS;
}

static void end_agreement(struct mr_agreement *a, enum mr_err err)
{
    struct mr_agreement **at = &agreements.active;
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    a->error = err;
    a->stage = MR_AGREE_DONE;
}

static void decide(struct mr_agreement *a)
{
    bool others = a->offering || a->local->size > 1 || a->bridge.comm; /* a single member waits for the mask itself */

    if (a->offering)
        agreements.offered = a->offering = false;
    if (a->error)
        end_agreement(a, a->error);
    else if (a->mine.all_well != UINT64_MAX)
        end_agreement(a, refused_by_member(a));
    else if (a->mine.all_offer)
        end_agreement(a, take_ids(a));
    else
        a->stage = MR_AGREE_BEGIN;
    a->all_came = true;
    mr_lock_news += others; /* for threads that wait for the mask, or for the next round */
}

/* True when nothing is under way. */
static bool collect_requests(struct mr_agreement *a)
{
    for (int i = 0; i < 2; i++) {
        if (!a->req[i])
            continue;
        if (!a->req[i]->complete)
            return false;
        note_agree_error(a, a->req[i]->status.error);
        mr_request_put(a->req[i]);
        a->req[i] = NULL;
    }
    return true;
}

bool mr_agreement_step(struct mr_agreement *a)
{
    while (a->stage != MR_AGREE_DONE && collect_requests(a)) {
        switch (a->stage) {
        case MR_AGREE_BEGIN:
            begin_round(a);
            a->stage = a->bridge.comm ? MR_AGREE_REDUCED : MR_AGREE_DECIDE;
            break;
        case MR_AGREE_REDUCED:
            if (a->local->rank == a->bridge.leader)
                cross_bridge(a);
            a->stage = MR_AGREE_BRIDGED;
            break;
        case MR_AGREE_BRIDGED:
            spread_verdict(a);
            a->stage = MR_AGREE_DECIDE;
            break;
        case MR_AGREE_DECIDE:
            decide(a);
            return a->stage == MR_AGREE_DONE; /* between two rounds the others have their turn */
        case MR_AGREE_DONE:
            break;
        }
    }
    return a->stage == MR_AGREE_DONE;
}

static void list_agreement(struct mr_agreement *a)
{
    a->next = agreements.active;
    agreements.active = a;
}

void mr_agreement_start(struct mr_agreement *a)
{
    list_agreement(a);
    mr_agreement_step(a);
}

static bool step(void *arg)
{
    return mr_agreement_step(arg);
}

enum mr_err mr_agreement_end(struct mr_agreement *a)
{
    mr_progress_until(step, a);
    return a->error;
}

enum mr_err mr_agreement_run(struct mr_agreement *a)
{
    mr_agreement_start(a);
    return mr_agreement_end(a);
}

/* The lowest ids free here: mostly they are free everywhere. */
struct mr_context_offer mr_agreement_offer(struct mr_agreement *a)
{
    struct mr_context_offer mine = {0};

    list_agreement(a);
    a->offering = my_turn(a);
    if (!a->offering)
        return mine;
    agreements.offered = true;
    while (mine.word < MR_CONTEXT_WORDS - 1 && !mr_context_ids()[mine.word])
        mine.word++;
    mine.free = mr_context_ids()[mine.word];
    return mine;
}

void mr_agreement_offered(struct mr_agreement *a, uint64_t word, uint64_t free_at_all, enum mr_err error)
{
    if (a->offering)
        agreements.offered = a->offering = false;
    a->all_came = true;
    mr_lock_news++;
    if (error) {
        end_agreement(a, error);
    } else if (free_at_all && word < MR_CONTEXT_WORDS) {
        a->mine.free[word] = free_at_all;
        end_agreement(a, take_ids(a));
    }
}

struct mr_bridge mr_bridge_of(struct mr_comm *c)
{
    return (struct mr_bridge){
        .local = c->local, .comm = c, .context = c->context | 1, .tag = (int)(c->coll_seq++ & 0x3fffffff)};
}

struct mr_agreement mr_agreement_of(struct mr_comm *c)
{
    uint32_t tag = c->passing ? (uint32_t)c->passing_tag : c->coll_seq;
    struct mr_agreement a = {.local = c, .want = 1, .take = true, .key.messages = (uint64_t)c->context << 32 | tag};
    if (mr_comm_is_inter(c)) {
        a.bridge = mr_bridge_of(c);
        a.local = c->local;
    }
    return a;
}
