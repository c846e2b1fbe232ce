/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's state as an FD_STATE: see state.h. */
#include "fabricd/state.h"
#include "fabricd/policy/ahead.h"
#include "fabricd/proto/message.h"

#include <errno.h>
#include <string.h>

/* The levels between small and large follow the rails. A level without a lane of its own is not worth a queue pair. */
static void fill_levels(const struct policy_class *p, const struct class_levels *l, struct fd_state *m)
{
    struct fd_level *to = fd_state_levels(m);
    for (unsigned i = 0; i < l->num_medium; i++) {
        if (l->vl_medium[i] == l->vl_bulk[0])
            continue;
        *to++ = (struct fd_level){.max = p->medium_max[i], .num_lanes = 1, .sl = {l->sl_medium[i]}};
        m->h.length += (uint32_t)sizeof(*to);
    }
}

/* How messages go over rails follows the levels. */
static void fill_spread(const struct policy_class *p, struct fd_state *m)
{
    if (!*p->spread.small && !*p->spread.large)
        return;
    memcpy((char *)m + m->h.length, &p->spread, sizeof(p->spread));
    m->h.length += (uint32_t)sizeof(p->spread);
}

/* Health follows all else. */
static void fill_health(const struct daemon *d, const struct state_asker *who, struct fd_state *m)
{
    struct fd_health *h = (struct fd_health *)((char *)m + m->h.length);
    for (unsigned i = 0; i < m->num_rails; i++) {
        h->rail[i] = rail_health_for(&d->health, &d->rails, i, who->uid, who->since_us);
        h->rail[i].pkey = (uint16_t)who->pkey;
    }
    m->h.length += (uint32_t)sizeof(*h);
}

/* For clients without health: a rail without a weight is marked unusable, if another rail of its kind is usable. */
static void leave_out_sick(const struct daemon *d, const struct state_asker *who, struct fd_state *m)
{
    bool other = false;
    for (unsigned i = 0; i < m->num_rails; i++)
        other |= m->rails[i].usable && m->rails[i].infiniband &&
                 rail_health_for(&d->health, &d->rails, i, who->uid, who->since_us).weight;
    for (unsigned i = 0; i < m->num_rails && other; i++)
        m->rails[i].usable &= rail_health_for(&d->health, &d->rails, i, who->uid, who->since_us).weight != 0;
}

/* This process's budget ahead on each level: by its class, and within its job's ratio. */
static uint16_t ahead_of(const struct state_asker *who, double percent, unsigned levels, unsigned sharers)
{
    uint16_t of_class = ahead_part(percent, levels, sharers);
    if (!who->ratio.large)
        return of_class;
    uint16_t of_job = ahead_part(ratio_percent(&who->ratio), levels, who->job_sharers);
    return of_class && of_class < of_job ? of_class : of_job;
}

static void fill_class(const struct daemon *d, const struct state_asker *who,
                       const unsigned sharers[POLICY_CLASSES_MAX], struct fd_state *m)
{
    const struct policy *p = &d->current.policy;
    unsigned i = who->class_index;
    const struct class_levels *l = &d->current.tables.classes[i];
    m->status = 0;
    m->verified = d->verified;
    m->small_max = p->classes[i].small_max;
    bool nothing_ahead = who->ratio.large && !who->ratio.small; /* 0:1: all goes with the bulk */
    m->sl_small = l->vl_small == l->vl_bulk[0] || nothing_ahead ? l->sl_bulk[0] : l->sl_small;
    double percent[POLICY_CLASSES_MAX];
    ahead_budgets(&d->current.tables, percent);
    for (unsigned r = 0; r < m->num_rails; r++)
        m->rails[r].ahead = ahead_of(who, percent[i], l->num_ahead, sharers[i]);
    if (percent[i] > 0)
        m->messages = ahead_part(l->share, 1, sharers[i]);
    m->num_lanes = l->num_lanes;
    memcpy(m->sl_bulk, l->sl_bulk, sizeof(m->sl_bulk));
    memcpy(m->class_name, p->classes[i].name, sizeof(m->class_name));
    if (who->levels && !nothing_ahead)
        fill_levels(&p->classes[i], l, m);
    if (who->spread)
        fill_spread(&p->classes[i], m);
}

void state_fill(const struct daemon *d, const struct state_asker *who, const unsigned sharers[POLICY_CLASSES_MAX],
                struct fd_state_long *out)
{
    struct fd_state *m = &out->s;
    memset(out, 0, sizeof(*out));
    *m = (struct fd_state){.status = -ENOENT, .small_max = 8192, .num_lanes = 1};
    m->generation = d->generation;
    m->num_rails = (uint8_t)d->rails.n;
    memcpy(m->rails, d->rails.rail, d->rails.n * sizeof(m->rails[0]));
    memcpy(m->job, who->job, sizeof(m->job));
    m->h = message_header(FD_STATE, FD_STATE_LENGTH(m->num_rails), 0);
    if (d->current.valid)
        fill_class(d, who, sharers, m);
    if (who->health)
        fill_health(d, who, m);
    else
        leave_out_sick(d, who, m);
}

static bool same_state_levels(const struct fd_state *a, const struct fd_state *b)
{
    int n = fd_state_num_levels(a, a->h.length);
    return n == fd_state_num_levels(b, b->h.length) &&
           (n <= 0 || !memcmp(fd_state_levels(a), fd_state_levels(b), (unsigned)n * sizeof(struct fd_level)));
}

static bool same_spread(const struct fd_state *a, const struct fd_state *b)
{
    const struct fd_spread *of_a = fd_state_spread(a, a->h.length, fd_state_num_levels(a, a->h.length));
    const struct fd_spread *of_b = fd_state_spread(b, b->h.length, fd_state_num_levels(b, b->h.length));
    return !of_a == !of_b && (!of_a || !memcmp(of_a, of_b, sizeof(*of_a)));
}

static bool same_health(const struct fd_state *a, const struct fd_state *b)
{
    const struct fd_health *of_a = fd_state_health(a, a->h.length, fd_state_num_levels(a, a->h.length));
    const struct fd_health *of_b = fd_state_health(b, b->h.length, fd_state_num_levels(b, b->h.length));
    return !of_a == !of_b && (!of_a || !memcmp(of_a, of_b, sizeof(*of_a)));
}

uint16_t state_changes(const struct fd_state *a, const struct fd_state *b)
{
    uint16_t bits = 0;
    if (a->status != b->status || a->small_max != b->small_max || a->sl_small != b->sl_small ||
        a->num_lanes != b->num_lanes || memcmp(a->sl_bulk, b->sl_bulk, sizeof(a->sl_bulk)) ||
        memcmp(a->class_name, b->class_name, sizeof(a->class_name)) || !same_state_levels(a, b) || !same_spread(a, b))
        bits |= FD_CHANGED_CLASS;
    if (a->num_rails != b->num_rails || a->messages != b->messages || !same_health(a, b) ||
        memcmp(a->rails, b->rails, a->num_rails * sizeof(a->rails[0])))
        bits |= FD_CHANGED_RAILS;
    if (a->generation != b->generation || a->verified != b->verified)
        bits |= FD_CHANGED_POLICY;
    return bits;
}

uint16_t state_levels(const struct fd_state *m)
{
    unsigned levels = 1u << m->sl_small;
    for (unsigned i = 0; i < m->num_lanes; i++)
        levels |= 1u << m->sl_bulk[i];
    for (int i = 0; i < fd_state_num_levels(m, m->h.length); i++)
        levels |= 1u << fd_state_levels(m)[i].sl[0];
    return (uint16_t)levels;
}
