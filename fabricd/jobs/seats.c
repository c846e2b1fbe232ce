/* SPDX-License-Identifier: BSD-3-Clause */
/* The class of each job: see seats.h. */
#include "fabricd/jobs/seats.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- counting ---------------------------------------------------------------------------------------------------- */

struct holder {
    uid_t uid; /* first: the tree compares it */
    unsigned jobs, held[POLICY_CLASSES_MAX];
};

static int compare_holders(const void *a, const void *b)
{
    uid_t x = *(const uid_t *)a, y = *(const uid_t *)b;
    return x < y ? -1 : x > y;
}

static struct holder *find_holder(const struct seats *s, uid_t uid)
{
    struct holder *const *found = tfind(&uid, (void *const *)&s->by_uid, compare_holders);
    return found ? *found : NULL;
}

void seats_take(struct seats *s, const struct job *job)
{
    struct holder *h = job->seat ? find_holder(s, job->uid) : NULL;
    if (!job->seat)
        return;
    s->held[job->seat - 1]++;
    if (!h) {
        h = calloc(1, sizeof(*h));
        if (!h)
            abort(); /* as for text that grows: bounded by the number of jobs */
        h->uid = job->uid;
        if (!tsearch(h, &s->by_uid, compare_holders))
            abort();
    }
    h->jobs++;
    h->held[job->seat - 1]++;
}

void seats_leave(struct seats *s, const struct job *job)
{
    struct holder *h = job->seat ? find_holder(s, job->uid) : NULL;
    if (!h)
        return;
    s->held[job->seat - 1]--;
    h->held[job->seat - 1]--;
    if (--h->jobs)
        return;
    tdelete(h, &s->by_uid, compare_holders);
    free(h);
}

unsigned seats_held(const struct seats *s, uint32_t uid, unsigned class_index)
{
    if (uid == FD_UID_ANY)
        return s->held[class_index];
    const struct holder *h = find_holder(s, uid);
    return h ? h->held[class_index] : 0;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* A job without a class yet; its own seat counts as free. */
struct search {
    const struct seats *seats;
    const struct policy *p;
    const struct job *job, *old;
    unsigned full; /* 1 + the first class without room */
};

/* How many others there are, in all or of the job's user. */
static unsigned others(const struct search *s, unsigned class_index, bool of_user)
{
    bool own = s->old && s->old->seat == class_index + 1 && (!of_user || s->old->uid == s->job->uid);
    const struct holder *h = of_user ? find_holder(s->seats, s->job->uid) : NULL;
    unsigned n = of_user ? (h ? h->held[class_index] : 0) : s->seats->held[class_index];
    return n - own;
}

static bool class_has_room(void *arg, unsigned class_index)
{
    struct search *s = arg;
    const struct policy_class *c = &s->p->classes[class_index];
    if ((!c->jobs_max || others(s, class_index, false) < c->jobs_max) &&
        (!c->user_jobs_max || others(s, class_index, true) < c->user_jobs_max))
        return true;
    if (!s->full)
        s->full = class_index + 1;
    return false;
}

bool seats_have_room(const struct seats *s, const struct policy *p, unsigned class_index, const struct job *job,
                     struct text *why)
{
    struct search search = {.seats = s, .p = p, .job = job, .old = job};
    const struct policy_class *c = &p->classes[class_index];
    if (class_has_room(&search, class_index))
        return true;
    if (why && c->jobs_max && others(&search, class_index, false) >= c->jobs_max)
        text_printf(why,
                    "class '%s' is full: max jobs is %u, and so many have it on this host; try again when one has "
                    "ended\n",
                    c->name, c->jobs_max);
    else if (why)
        text_printf(why,
                    "class '%s' is full for uid %u: max jobs per user is %u, and so many have it on this host; "
                    "try again when one has ended\n",
                    c->name, job->uid, c->user_jobs_max);
    return false;
}

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static struct pattern_job known_of(const struct job *job, const struct user *user)
{
    return (struct pattern_job){.user = user->name,
                                .groups = user->groups,
                                .account = job->account,
                                .qos = job->qos,
                                .partition = job->partition,
                                .name = job->name};
}

bool seats_may_choose(const struct job *job, const struct policy *p, const struct user *user, const char *class_name)
{
    struct pattern_job known = known_of(job, user);
    int i = *class_name ? policy_class_by_name(p, class_name) : -1;
    return i >= 0 && policy_may_choose(&p->classes[i], &known);
}

const struct policy_partition *seats_partition(const struct policy *p, const struct user *user, const struct job *job,
                                               unsigned class_index)
{
    static const struct job none;
    struct pattern_job known = known_of(job ? job : &none, user);
    return policy_partition_of(p, class_index, &known);
}

static bool is_limited(const struct policy *p, unsigned class_index)
{
    return p->classes[class_index].jobs_max || p->classes[class_index].user_jobs_max;
}

/* A process outside of jobs is not counted, so classes with counted jobs are closed to it. */
static bool is_free(void *arg, unsigned class_index)
{
    return !is_limited(arg, class_index);
}

unsigned seats_class_of_user(const struct policy *p, const struct user *user)
{
    static const struct job none;
    struct pattern_job known = known_of(&none, user);
    return policy_class_with_room(p, &known, is_free, (void *)p);
}

static void sit(struct job *job, const struct policy *p, unsigned class_index, enum job_source source, unsigned full)
{
    job->seat = class_index + 1;
    job->source = source;
    job->full = full;
    memset(job->seat_class, 0, sizeof(job->seat_class));
    if (source != SOURCE_SCHEDULER && is_limited(p, class_index))
        memcpy(job->seat_class, p->classes[class_index].name, sizeof(job->seat_class));
}

void seats_decide(struct seats *s, const struct policy *p, const struct user *user, const struct job *old,
                  struct job *job)
{
    struct search search = {.seats = s, .p = p, .job = job, .old = old};
    struct pattern_job known = known_of(job, user);
    int given = *job->class_name ? policy_class_by_name(p, job->class_name) : -1;
    if (given >= 0) {
        sit(job, p, (unsigned)given, SOURCE_SCHEDULER, 0);
        return;
    }
    int wish = seats_may_choose(job, p, user, job->wish) ? policy_class_by_name(p, job->wish) : -1;
    if (wish >= 0 && class_has_room(&search, (unsigned)wish))
        sit(job, p, (unsigned)wish, SOURCE_USER, 0);
    else {
        unsigned class_index = policy_class_with_room(p, &known, class_has_room, &search);
        sit(job, p, class_index, SOURCE_RULE, search.full);
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
    const struct job *x = *(struct job *const *)a, *y = *(struct job *const *)b;
    return x->since != y->since ? (x->since < y->since ? -1 : 1) : strcmp(x->id, y->id);
}

/* True if the job has its class without limits, or its class does not depend on others. */
static bool holds_its_own(const struct policy *p, const struct user *user, const struct job *job)
{
    struct pattern_job known = known_of(job, user);
    if (*job->class_name && policy_class_by_name(p, job->class_name) >= 0)
        return true;
    unsigned first = seats_may_choose(job, p, user, job->wish) ? (unsigned)policy_class_by_name(p, job->wish)
                                                               : policy_class_of(p, &known);
    return !is_limited(p, first) || !strcmp(job->seat_class, p->classes[first].name);
}

void seats_decide_all(struct seats *s, const struct policy *p, struct users *users, struct job **job, unsigned n)
{
    struct job **order = calloc(n ? n : 1, sizeof(struct job *));
    if (!order)
        abort();
    for (unsigned i = 0; i < n; i++) {
        order[i] = job[i];
        seats_leave(s, job[i]);
        job[i]->seat = 0;
    }
    qsort(order, n, sizeof(struct job *), by_age);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < n; i++) {
            const struct user *user = order[i] ? users_get(users, order[i]->uid) : NULL;
            if (!order[i] || (!round && !holds_its_own(p, user, order[i])))
                continue;
            seats_decide(s, p, user, NULL, order[i]);
            seats_take(s, order[i]);
            order[i] = NULL;
        }
    free(order);
}
