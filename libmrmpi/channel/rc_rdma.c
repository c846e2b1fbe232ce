/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over RC: the receiver exposes its buffer, the sender writes into it, one stripe per subchannel. The
 * last write of each stripe carries the immediate data that the receiver's completion filter counts (rail/filter.h), so
 * no packet of ours follows the data. A stripe longer than the port's longest message becomes several writes; RC keeps
 * them in order, so the last one speaks for all.
 *
 * Or the other way round: the sender exposes its buffer, and the receiver reads it in the same stripes; nobody has to
 * be told at the other side. Whoever posts, writing or reading, measures the rails.
 */
#include "libmrmpi/channel/rc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

#define STRIPE_ALIGN 4096

struct mr_stripe_op {
    struct mr_tx tx;
    struct mr_put *put;
    struct mr_sub *sub;
    struct mr_stripe_op *next; /* in the subchannel's waiting list */
    unsigned char *local;      /* only read from unless the put is a read */
    uint64_t raddr, len, left;
    uint32_t rkey, imm;
    bool finished; /* its completion came, or never will */
    bool posted;   /* the last, signaled write is on its way */
    bool measured; /* the time when it was posted is known */
};

/* A message on its way, by writes or by reads of ours. */
struct mr_put {
    struct mr_filter filter;
    struct mr_peer *peer;
    struct mr_put *next, *prev;
    struct mr_reg *reg;
    void *cookie;
    bool read;
    unsigned num;
    struct mr_stripe_op stripe[];
};

struct rc_region {
    struct mr_region base;
    struct mr_reg *reg;
    bool lands; /* peers write here, and say so by its token */
    uint32_t token;
    int rank;
};

static int enroll(void *buf, size_t len, enum mr_access access, struct mr_reg **out)
{
    int err = mr_regcache_get(&mr_net.regs, buf, len, access, out);

    if (err)
        mr_log(MR_LOG_ERROR,
               "%zu bytes at %p cannot be registered for %s: %s; is the limit of locked memory too low (ulimit -l)?",
               len, buf, access == MR_ACCESS_TARGET ? "receiving" : "sending", strerror(-err));
    return err;
}

/* ---- who is written to, or read -------------------------------------------------------------------------------- */

int mr_rc_expose(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                 struct mr_remote *out)
{
    struct rc_region *r = calloc(1, sizeof *r);
    int err;

    if (!r)
        return -ENOMEM;
    r->rank = p->rank;
    r->lands = how == MR_VC_PUT;
    err = enroll(buf, len, r->lands ? MR_ACCESS_TARGET : MR_ACCESS_SOURCE, &r->reg);
    if (err)
        goto free_region;
    err = r->lands ? mr_landing_open(&mr_net.landings, r, &r->token) : 0;
    if (err)
        goto release;
    memset(out, 0, sizeof *out);
    out->addr = (uintptr_t)buf;
    out->len = len;
    out->num_keys = mr_verbs.num_rails;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        out->rkey[i] = mr_memory_rkey(&r->reg->memory, &mr_verbs.rail[i]);
    out->token = r->token;
    *region = &r->base;
    return 0;

release:
    mr_regcache_put(&mr_net.regs, r->reg);
free_region:
    free(r);
    return err;
}

void mr_rc_unexpose(struct mr_region *region)
{
    struct rc_region *r = (struct rc_region *)region;

    if (r->lands)
        mr_landing_close(&mr_net.landings, r->token);
    mr_regcache_put(&mr_net.regs, r->reg);
    free(r);
}

void mr_rc_landed(uint32_t imm)
{
    bool stray;
    struct rc_region *r = mr_landing_arrived(&mr_net.landings, imm, &stray);

    if (stray)
        mr_log(MR_LOG_DEBUG, "a notification for a receive that is over was dropped (%08x)", imm);
    if (r)
        mr_vc_put_landed(r->rank, r->base.rreq, 0);
}

/* ---- who writes or reads --------------------------------------------------------------------------------------- */

/* Weights follow what subchannels carry, if there is more than one. */
static bool adapts(const struct mr_peer *p)
{
    return p->num_subs > 1 && mr_config.adaptive;
}

static void note_started(struct mr_stripe_op *s, uint64_t now_ns)
{
    s->measured = true;
    mr_adapt_started(&s->sub->peer->adapt, (unsigned)(s->sub - s->sub->peer->sub), s->put->num > 1, now_ns);
}

static void note_finished(struct mr_stripe_op *s)
{
    struct mr_peer *p = s->sub->peer;

    mr_adapt_finished(&p->adapt, (unsigned)(s->sub - p->sub), s->len, mr_clock_ns());
    if (mr_adapt_weigh(&p->adapt, p->load, p->num_subs)) {
        mr_stat_add(MR_STAT_NET_REWEIGHED, 1);
        for (unsigned i = 0; i < p->num_subs; i++)
            mr_log(MR_LOG_DEBUG, "rank %d, rail %u, path %u: weight %u of %u", p->rank, p->sub[i].rail->index,
                   p->sub[i].path, p->load[i].weight, MR_WEIGHT_MAX);
    }
}

static void finish(struct mr_put *put)
{
    struct mr_peer *p = put->peer;
    void (*tell)(void *cookie, int error) = put->read ? mr_vc_read_done : mr_vc_put_sent;
    void *cookie = put->cookie;
    int error = put->filter.error;

    *(put->prev ? &put->prev->next : &p->puts) = put->next;
    if (put->next)
        put->next->prev = put->prev;
    mr_net.open_puts--;
    mr_regcache_put(&mr_net.regs, put->reg);
    free(put);
    tell(cookie, error);
}

static void stripe_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_stripe_op *s = (struct mr_stripe_op *)wr;

    mr_tx_done(&s->tx, wc);
    if (s->finished)
        return;
    s->finished = true;
    if (s->measured && !wc->error)
        note_finished(s);
    if (mr_filter_done(&s->put->filter, wc->error))
        finish(s->put);
}

static int post_part(struct mr_stripe_op *s, struct mr_qp *qp, uint64_t n, bool last, struct mr_tx *tx)
{
    uint32_t lkey = mr_memory_lkey(&s->put->reg->memory, qp->rail);

    if (s->put->read)
        return mr_qp_read(qp, s->local, n, lkey, s->raddr, s->rkey, tx);
    return mr_qp_write(qp, s->local, n, lkey, s->raddr, s->rkey, last ? &s->imm : NULL, tx);
}

/* Post what there is room for. 0: all of it; -EAGAIN: the rest waits. */
static int push(struct mr_stripe_op *s)
{
    struct mr_qp *qp = s->sub->level[MR_LEVEL_BULK];

    while (s->left) {
        uint64_t n = s->left < qp->rail->max_msg ? s->left : qp->rail->max_msg;
        bool last = n == s->left;
        struct mr_tx *tx;
        int err;

        if (!mr_qp_has_room(qp, 1))
            return -EAGAIN;
        tx = last ? &s->tx : mr_rc_counter(qp);
        err = post_part(s, qp, n, last, tx);
        if (err) {
            if (!last)
                mr_rc_counter_unused(tx);
            return err;
        }
        s->local += n;
        s->raddr += n;
        s->left -= n;
    }
    s->posted = true;
    return 0;
}

static void enqueue(struct mr_stripe_op *s)
{
    s->next = NULL;
    *s->sub->waiting_end = s;
    s->sub->waiting_end = &s->next;
    mr_net_backlog(s->sub->peer);
}

bool mr_rc_put_resume(struct mr_peer *p)
{
    bool waiting = false;

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];

        while (sub->waiting) {
            struct mr_stripe_op *s = sub->waiting;
            int err = push(s);

            if (err == -EAGAIN) {
                waiting = true;
                break;
            }
            if (err) {
                mr_peer_lost(p, err);
                return false;
            }
            sub->waiting = s->next;
            if (!sub->waiting)
                sub->waiting_end = &sub->waiting;
            if (adapts(p))
                note_started(s, mr_clock_ns());
        }
    }
    return waiting;
}

static struct mr_put *make_put(struct mr_peer *p, void *buf, const struct mr_remote *remote, void *cookie,
                               const struct mr_stripe *plan, unsigned n)
{
    struct mr_put *put = calloc(1, sizeof *put + n * sizeof put->stripe[0]);

    if (!put)
        return NULL;
    put->peer = p;
    put->cookie = cookie;
    put->num = put->filter.open = n;
    for (unsigned i = 0; i < n; i++) {
        struct mr_stripe_op *s = &put->stripe[i];

        s->tx.wr.done = stripe_done;
        s->put = put;
        s->sub = &p->sub[plan[i].sub];
        s->local = (unsigned char *)buf + plan[i].offset;
        s->raddr = remote->addr + plan[i].offset;
        s->len = s->left = plan[i].len;
        s->rkey = remote->rkey[s->sub->remote_rail];
        s->imm = mr_landing_imm(remote->token, n);
    }
    return put;
}

/*
 * Post what there is room for. All stripes begin at the time before the first (rail/adapt.h); those that wait for room
 * begin when they find it.
 */
static void post_stripes(struct mr_put *put)
{
    struct mr_peer *p = put->peer;
    uint64_t begin = adapts(p) ? mr_clock_ns() : 0;

    for (unsigned i = 0; i < put->num; i++) {
        struct mr_stripe_op *s = &put->stripe[i];
        int err = p->up && !s->sub->waiting ? push(s) : -EAGAIN;

        if (err == -EAGAIN)
            enqueue(s);
        else if (err)
            mr_peer_lost(p, err); /* completes the put with an error, from poll */
        else if (begin)
            note_started(s, begin);
    }
}

static int move(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *remote, void *cookie, bool read)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_put *put;
    unsigned n;
    int err;

    if (len > remote->len)
        return -EMSGSIZE;
    n = mr_sched_plan(&p->stripe_turn, p->load, p->num_subs, len, mr_config.stripe_min, STRIPE_ALIGN, plan);
    if (!n) {
        mr_peer_lost(p, -ENETDOWN);
        return -ENETDOWN;
    }
    for (unsigned i = 0; i < n; i++)
        if (p->sub[plan[i].sub].remote_rail >= remote->num_keys || remote->num_keys > MR_RAILS_MAX)
            return -EPROTO;
    put = make_put(p, buf, remote, cookie, plan, n);
    if (!put)
        return -ENOMEM;
    put->read = read;
    err = enroll(buf, len, read ? MR_ACCESS_TARGET : MR_ACCESS_SOURCE, &put->reg);
    if (err) {
        free(put);
        return err;
    }
    put->next = p->puts;
    if (p->puts)
        p->puts->prev = put;
    p->puts = put;
    mr_net.open_puts++;
    mr_stat_add(MR_STAT_NET_STRIPES, n);

    post_stripes(put);
    return 0;
}

int mr_rc_put(struct mr_peer *p, const void *buf, size_t len, const struct mr_remote *dst, void *cookie)
{
    return move(p, (void *)buf, len, dst, cookie, false); /* nothing writes into it */
}

int mr_rc_read(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *src, void *cookie)
{
    return move(p, buf, len, src, cookie, true);
}

void mr_rc_put_abandon(struct mr_peer *p, int error)
{
    struct mr_put *next;

    for (unsigned i = 0; i < p->num_subs; i++) {
        p->sub[i].waiting = NULL;
        p->sub[i].waiting_end = &p->sub[i].waiting;
    }
    for (struct mr_put *put = p->puts; put; put = next) {
        bool last = false;

        next = put->next;
        for (unsigned i = 0; i < put->num && !last; i++) {
            struct mr_stripe_op *s = &put->stripe[i];

            if (s->finished || (s->posted && !s->sub->rail->dev->fatal))
                continue;
            s->finished = true;
            last = mr_filter_done(&put->filter, error);
        }
        if (last)
            finish(put);
    }
}
