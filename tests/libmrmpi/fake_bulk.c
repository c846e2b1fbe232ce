/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer, links and pools of the tests of bulk/, stripe/ and zcopy/. */
#include "tests/libmrmpi/fake_bulk.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/verbs/memory/odp.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/net/view/view.h"

struct fake fake;
struct mr_peers mr_peers;
struct mr_verbs mr_verbs;
struct mr_regs mr_regs;

uint64_t mr_clock_ns(void)
{
    return fake.now_ns;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static struct mr_reg everything;

int mr_regs_get(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out)
{
    *out = &everything;
    return 0;
}

int mr_regs_get_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                     struct mr_reg **out)
{
    return mr_regs_get(buf, len, access, pinned, out);
}

bool mr_regs_is_behind(void)
{
    return mr_regs.behind;
}

/* ---- upcalls ----------------------------------------------------------------------------------------------------- */

static void put_sent(void *cookie, int error)
{
    fake.puts_sent++;
    fake.error = error;
}

static void read_done(void *cookie, int error)
{
    fake.reads_done++;
    fake.error = error;
}

static void put_landed(int world_rank, uint64_t rreq, int error)
{
    ck_assert_int_eq(world_rank, 1);
    fake.landed++;
    if (fake.at_landed)
        fake.at_landed();
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct fake_control *c = &fake.control[fake.num_controls++];

    ck_assert_uint_lt(fake.num_controls, FAKE_CONTROLS);
    ck_assert_uint_le(len, fake.eager_max);
    c->hdr = *hdr;
    c->len = len;
    if (len)
        memcpy(c->bytes, payload, len);
    return 0;
}

size_t mr_vc_learn_sizes(struct mr_vc *vc)
{
    return fake.eager_max;
}

struct mr_vc_upcalls mr_vc_up = {.put_sent = put_sent, .read_done = read_done, .put_landed = put_landed};

/* ---- peer -------------------------------------------------------------------------------------------------------- */

void mr_peer_backlog(struct mr_peer *p)
{
    fake.backlogs++;
}

void mr_peer_watch(struct mr_peer *p)
{
    fake.watches++;
}

void mr_peer_lost(struct mr_peer *p, int error)
{
    fake.lost++;
}

void mr_budget_need(struct mr_peer *p)
{
    fake.needs++;
}

int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation)
{
    return (int32_t)(sub - sub->peer->sub);
}

struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag)
{
    return tag < p->num_subs ? &p->sub[tag] : NULL;
}

void mr_sub_break(struct mr_sub *sub)
{
    fake.breaks++;
    fake.broken = sub;
    sub->state = MR_SUB_BROKEN;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return a->mtu ? 512u << a->mtu : FAKE_MTU;
}

static struct fake_post *take_post(struct mr_link *l)
{
    unsigned i = (unsigned)((struct mr_sub *)l->owner - fake.peer->base.sub);

    ck_assert_int_eq(fake.peer->base.sub[i].state, MR_SUB_OPEN);
    if (!fake.room[i])
        return NULL;
    fake.room[i]--;
    ck_assert_uint_lt(fake.num_posts, FAKE_POSTS);
    fake.post[fake.num_posts] = (struct fake_post){.sub = i};
    return &fake.post[fake.num_posts++];
}

static int post_rdma(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx, bool read)
{
    struct fake_post *post = take_post(l);

    if (!post)
        return -EAGAIN;
    post->read = read;
    post->raddr = part->raddr;
    post->len = part->len;
    post->has_imm = part->imm;
    post->imm = part->imm ? *part->imm : 0;
    post->tx = tx;
    return 0;
}

static int post_write(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    return post_rdma(l, part, tx, false);
}

static int post_read(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    return post_rdma(l, part, tx, true);
}

static int post_list(struct mr_link *l, const struct mr_link_list *list, struct mr_tx *tx, unsigned *posted)
{
    unsigned room = fake.room[(struct mr_sub *)l->owner - fake.peer->base.sub];
    struct fake_post *post;

    *posted = list->num < room ? list->num : room;
    if (!*posted)
        return -EAGAIN;
    post = take_post(l);
    fake.room[post->sub] -= *posted - 1;
    post->rkey = list->rkey;
    post->num_writes = *posted;
    for (unsigned i = 0; i < *posted; i++) {
        void *data = malloc(list->one[i].len);

        post->write[i] = list->one[i];
        post->write[i].data = memcpy(data, list->one[i].data, list->one[i].len);
    }
    post->tx = fake.list_error ? NULL : tx;
    return fake.list_error;
}

static ssize_t post_run(struct mr_link *l, const struct mr_link_datagram *d, struct mr_link_run *run)
{
    struct fake_post *post = take_post(l);

    if (!post)
        return -EAGAIN;
    post->datagram = *d;
    post->run = run;
    post->len = d->data.len;
    if (post->len > (uint64_t)fake.run_max * d->size)
        post->len = (uint64_t)fake.run_max * d->size;
    return (ssize_t)post->len;
}

static int post_atomic(struct mr_link *l, const struct mr_link_atomic *w, struct mr_tx *tx)
{
    struct fake_post *post = take_post(l);

    if (!post)
        return -EAGAIN;
    post->atomic = *w->atomic;
    post->raddr = w->raddr;
    post->rkey = w->rkey;
    post->tx = fake.list_error ? NULL : tx;
    return fake.list_error;
}

static const struct mr_link_ops ops = {
    .write = post_write, .write_list = post_list, .read = post_read, .atomic = post_atomic, .run = post_run};

void fake_complete(unsigned post)
{
    const struct mr_wc good = {.status = "success"};
    struct mr_link_run *run = fake.post[post].run;

    if (run)
        run->done(run);
    else if (fake.post[post].tx)
        fake.post[post].tx->wr.done(&fake.post[post].tx->wr, &good);
}

void fake_break(unsigned sub)
{
    fake.peer->base.sub[sub].state = MR_SUB_BROKEN;
    fake.peer->base.load[sub].up = false;
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

unsigned mr_ud_pool_num(const struct mr_rail *rail)
{
    return fake.num_qps[rail->index];
}

unsigned mr_ud_pool_depth(const struct mr_rail *rail)
{
    return (unsigned)mr_config.ud_pool_depth;
}

unsigned mr_ud_pool_prepare(struct mr_rail *rail, unsigned n)
{
    unsigned num = 0;

    for (unsigned i = 0; i < fake.num_qps[rail->index]; i++)
        num += !fake.qp[rail->index][i].taken;
    return num;
}

struct mr_ud_pool_qp *mr_ud_pool_take(struct mr_rail *rail, uint16_t pkey, const struct mr_ud_pool_events *events,
                                      void *owner)
{
    for (unsigned i = 0; i < fake.num_qps[rail->index]; i++) {
        struct fake_qp *q = &fake.qp[rail->index][i];

        if (q->taken)
            continue;
        q->taken = true;
        q->base.rail = rail;
        q->base.events = events;
        q->base.owner = owner;
        return &q->base;
    }
    return NULL;
}

int mr_ud_pool_post(struct mr_ud_pool_qp *base, void *at, size_t len, uint32_t size, uint32_t lkey)
{
    struct fake_qp *q = (struct fake_qp *)base;

    ck_assert(q->taken && !q->stopped);
    if (fake.post_error)
        return fake.post_error;
    for (size_t i = 0; i < len; i += size) {
        ck_assert_uint_lt(base->posted, (unsigned)mr_config.ud_pool_depth);
        q->place[base->posted].at = (unsigned char *)at + i;
        q->place[base->posted].len = (uint32_t)(len - i < size ? len - i : size);
        base->posted++;
    }
    return 0;
}

void mr_ud_pool_stop(struct mr_ud_pool_qp *q)
{
    ck_assert(((struct fake_qp *)q)->taken);
    ((struct fake_qp *)q)->stopped = true;
}

int mr_ud_pool_again(struct mr_ud_pool_qp *base, bool clean)
{
    struct fake_qp *q = (struct fake_qp *)base;

    ck_assert(q->taken && (!clean || !q->stopped));
    *(clean ? &q->clean : &q->unclean) += 1;
    base->qkey += !clean;
    base->posted = base->back = 0;
    q->stopped = false;
    return 0;
}

void mr_ud_pool_give(struct mr_ud_pool_qp *q, bool clean)
{
    mr_ud_pool_again(q, clean);
    ((struct fake_qp *)q)->taken = false;
}

void fake_deliver(struct fake_qp *q, uint32_t imm, uint32_t len, unsigned char fill)
{
    unsigned place = q->base.back++;

    ck_assert_uint_lt(place, q->base.posted);
    memset(q->place[place].at, fill, len < q->place[place].len ? len : q->place[place].len);
    q->base.events->arrived(&q->base, place, imm, len);
}

void fake_stop(struct fake_qp *q)
{
    ck_assert(q->stopped);
    q->base.events->stopped(&q->base);
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

void fake_setup(enum mr_link_kind kind)
{
    static struct mr_address address;
    static const struct mr_launch launch = {.size = 2};
    struct mr_bulk_peer *b = calloc(1, sizeof *b);
    struct mr_peer *p = &b->base;
    char what[MR_POLICY_TEXT];

    memset(&fake, 0, sizeof fake);
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_bulk, 0, sizeof mr_bulk);
    setenv("MRMPI_STRIPE_MIN", "16K", 1);
    setenv("MRMPI_UD_POOL_DEPTH", "16", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_int_eq(mr_model_init(NULL, 0), 0);
    mr_config.log_level = -1;
    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        ck_assert(mr_policy_parse(mr_policy_standard(c), c, &mr_peers.policy[c], what, sizeof what));
    fake.now_ns = 1000000000;
    fake.eager_max = 4096;
    fake.run_max = 1000;
    fake.peer = b;
    mr_peers.launch = &launch;
    mr_peers.peer = calloc(2, sizeof *mr_peers.peer);
    mr_peers.peer[1] = p;
    p->rank = 1;
    p->address = &address;
    p->vc = vc_to(p);
    p->up = true;
    p->num_subs = p->num_now = FAKE_SUBS;
    p->rdma = (1u << FAKE_SUBS) - 1;
    p->tracked = kind == MR_LINK_UC;
    p->sub = p->now = calloc(FAKE_SUBS, sizeof *p->sub);
    p->load = calloc(FAKE_SUBS, sizeof *p->load);
    b->sub = calloc(FAKE_SUBS, sizeof *b->sub);
    b->stripe_turn.due = calloc(FAKE_SUBS, sizeof(uint64_t));
    b->dgram_turn.due = calloc(FAKE_SUBS, sizeof(uint64_t));
    for (unsigned i = 0; i < FAKE_SUBS; i++) {
        struct mr_sub *s = &p->sub[i];

        mr_verbs.rail[i] = (struct mr_rail){.index = i, .max_msg = 1u << 30};
        s->peer = p;
        s->rail = &mr_verbs.rail[i];
        s->remote_rail = (uint8_t)i;
        s->kind = (uint8_t)kind;
        s->generation = 7;
        s->peer_from = 7;
        s->state = MR_SUB_OPEN;
        s->num_links = 1;
        s->link = calloc(1, sizeof *s->link);
        *s->link =
            (struct mr_link){.ops = &ops, .owner = s, .rail = s->rail, .kind = (uint8_t)kind, .state = MR_LINK_OPEN};
        for (unsigned l = 0; l < MR_LEVELS; l++)
            s->level[l] = s->link;
        b->sub[i].waiting_end = &b->sub[i].waiting;
        p->load[i] = (struct mr_load){.weight = MR_WEIGHT_MAX, .up = true};
        fake.room[i] = 1000;
        fake.num_qps[i] = 2;
        for (unsigned q = 0; q < FAKE_QPS; q++) {
            fake.qp[i][q].base.qpn = 100 + 10 * i + q;
            fake.qp[i][q].base.qkey = 1000;
        }
    }
}
