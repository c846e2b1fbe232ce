/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions for paths: see paths.h. Missing parts of a trace are read, then the trace is tried again. */
#include "fabricd/fabric/paths.h"
#include "fabricd/base/clock.h"
#include "fabricd/fabric/paths_text.h"
#include "fabricd/fabric/sweeps.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRESH_US     30000000u /* older tables are read again, */
#define AGAIN_US     1000000u  /* and tables that lead nowhere, or while nobody looks for changes */
#define LOOK_US      1000000u  /* between looks at the subnet manager, in a small subnet; */
#define LOOK_EACH_US 10000u    /* in a large one so long per adapter's port */
#define READS        4         /* lists asked for at a time, by one port */
#define WAITING      1024u     /* questions, of one port */
#define BY_LID       (1ull << 0)
#define BY_BASE      (1ull << 5) /* of a port's record */

struct subnet;

/* A list being read. */
struct reading {
    struct subnet *of; /* NULL: nothing is */
    routes_need what;
};

struct question {
    struct question *next;
    struct paths_question q;
    struct sa_asker who;
    paths_shown shown; /* NULL: not for people */
    void *arg;
    struct fd_ends ends;
};

/* The known part of a subnet through one port of this host. */
struct subnet {
    struct subnet *next;
    struct paths *paths;
    char device[FD_DEV_MAX];
    uint8_t port;
    struct routes routes;
    struct reading reading[READS];
    struct question *first, **end;
    unsigned waiting;
    struct paths_names names;
    uint64_t names_us; /* time of the request for names */
    bool reads_names, has_names;
    struct question *unnamed; /* for people: their ports, or the number of paths, are not known yet */
    bool reads_lmc;           /* of the first of these */
    struct sweeps sweeps;
    uint64_t looked_us, renewed_us;
    bool looks;  /* at the subnet manager */
    bool renews; /* all known parts are being read again */
};

struct paths {
    struct sa *sa;
    paths_told told;
    paths_moved moved;
    void *arg;
    struct subnet *subnets;
};

static void begin_reads(struct subnet *s);

/* ---- reading ---- */

/* Nothing can be known now: all that wait are told. */
static void fail(struct subnet *s, int status)
{
    struct question *q = s->first, *next;
    s->first = NULL;
    s->end = &s->first;
    s->waiting = 0;
    s->renews = false;
    s->sweeps.known = false; /* the next look tries again */
    for (; q; q = next) {
        next = q->next;
        if (q->shown)
            q->shown(q->arg, q->who, status, NULL);
        else
            s->paths->told(s->paths->arg, q->who, &q->q, status, NULL);
        free(q);
    }
}

static void on_records(void *arg, int status, const uint8_t *record, size_t num, size_t size)
{
    struct reading *r = arg;
    struct subnet *s = r->of;
    r->of = NULL;
    if (!status)
        status = routes_take(&s->routes, r->what, record, num, size, clock_us());
    if (status)
        fail(s, status);
    begin_reads(s);
}

/* All cables: where ports have several LIDs opensm finds no cables of a switch whose LID is not a multiple of them. */
static int read_missing(struct subnet *s, struct reading *r, routes_need what)
{
    struct sa_match cables = {.attribute = SA_LINK_RECORD}, table = {.attribute = SA_TABLE_RECORD, .mask = BY_LID};
    const struct sa_match *m = what == ROUTES_CABLES ? &cables : &table;
    uint16_t lid = htobe16(what);
    memcpy(table.data, &lid, sizeof(lid));
    *r = (struct reading){s, what};
    int rc = sa_list(s->paths->sa, s->device, s->port, m, on_records, r);
    if (rc)
        r->of = NULL;
    return rc;
}

/* 0: being read, or soon; a negative errno: impossible. */
static int need(struct subnet *s, routes_need what, bool *full)
{
    struct reading *room = NULL;
    for (struct reading *r = s->reading; r < s->reading + READS; r++) {
        if (r->of && r->what == what)
            return 0;
        if (!r->of)
            room = r;
    }
    *full = !room;
    return room ? read_missing(s, room, what) : 0;
}

/* ---- questions ---- */

static void forget_older(struct subnet *s, uint64_t age_us)
{
    uint64_t now = clock_us();
    routes_forget(&s->routes, now > age_us ? now - age_us : 0);
}

static void answer_question(struct subnet *s, struct question *q, enum routes_end end, const struct routes_pair *pair)
{
    int status = end == ROUTES_THERE ? 0 : -EHOSTUNREACH;
    struct text t = {0};
    if (status) /* tables may be changing just now */
        forget_older(s, AGAIN_US);
    if (!q->shown) {
        s->paths->told(s->paths->arg, q->who, &q->q, status, status ? NULL : pair);
    } else {
        if (!status)
            paths_text(&t, &s->names, &q->q, pair);
        q->shown(q->arg, q->who, status, &t);
    }
    text_free(&t);
    free(q);
}

static bool is_reading(const struct subnet *s)
{
    for (const struct reading *r = s->reading; r < s->reading + READS; r++)
        if (r->of)
            return true;
    return false;
}

/* All known parts that are to be read again, as long as there is room. */
static int go_on_renewing(struct subnet *s)
{
    routes_need what;
    bool full = false;
    int rc = 0;
    for (unsigned i = 0; i < routes_parts(&s->routes) && !full && !rc; i++)
        if (routes_stale(&s->routes, i, &what))
            rc = need(s, what, &full);
    return rc;
}

static void tell_moved(struct subnet *s)
{
    if (is_reading(s))
        return;
    s->renews = false;
    if (!s->routes.changed)
        return;
    s->routes.changed = false;
    s->paths->moved(s->paths->arg, s->device, s->port);
}

/* In order, until all that is read at a time is being read. */
static void begin_reads(struct subnet *s)
{
    struct routes_pair pair;
    bool full = false;
    int rc = 0;
    for (struct question **at = &s->first; *at && !full && !rc;) {
        struct question *q = *at;
        routes_need missing;
        enum routes_end end = routes_pair(&s->routes, q->q.from, q->q.to, q->q.num, &pair, &missing);
        if (end == ROUTES_NEEDS) {
            rc = need(s, missing, &full);
            at = &q->next;
            continue;
        }
        *at = q->next;
        if (!*at)
            s->end = at;
        s->waiting--;
        answer_question(s, q, end, &pair);
    }
    if (!rc && !full && s->renews)
        rc = go_on_renewing(s);
    if (rc)
        fail(s, rc);
    tell_moved(s);
}

static struct subnet *subnet_get(struct paths *p, const char *device, uint8_t port)
{
    for (struct subnet *s = p->subnets; s; s = s->next)
        if (s->port == port && !strcmp(s->device, device))
            return s;
    struct subnet *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->paths = p;
    memcpy(s->device, device, strnlen(device, sizeof(s->device) - 1));
    s->port = port;
    s->end = &s->first;
    s->next = p->subnets;
    p->subnets = s;
    return s;
}

/* Between looks at the subnet manager. */
static uint64_t look_pause_us(const struct subnet *s)
{
    uint64_t pause = routes_count(&s->routes).adapters * (uint64_t)LOOK_EACH_US;
    return pause > LOOK_US ? pause : LOOK_US;
}

static int add_question(struct subnet *s, struct question *q)
{
    bool watched = s->sweeps.known && clock_us() - s->looked_us < 3 * look_pause_us(s);
    if (s->waiting >= WAITING)
        return -EBUSY;
    forget_older(s, watched ? FRESH_US : AGAIN_US);
    q->next = NULL;
    *s->end = q;
    s->end = &q->next;
    s->waiting++;
    return 0;
}

int paths_ask(struct paths *p, const struct paths_question *question, struct sa_asker who)
{
    struct subnet *s = subnet_get(p, question->device, question->port);
    struct question *q = s ? calloc(1, sizeof(*q)) : NULL;
    if (!q)
        return -ENOMEM;
    q->q = *question;
    q->who = who;
    int rc = add_question(s, q);
    if (rc)
        free(q);
    else
        begin_reads(s);
    return rc;
}

/* ---- changes ---- */

static void renew(struct subnet *s)
{
    s->renewed_us = clock_us();
    s->renews = true;
    routes_forget(&s->routes, UINT64_MAX);
    begin_reads(s);
}

/* Without an activity count all is read again by age. */
static void on_masters(void *arg, int status, const uint8_t *record, size_t num, size_t size)
{
    struct subnet *s = arg;
    uint64_t guid;
    uint32_t count;
    bool moved;
    s->looks = false;
    if (!status && sweeps_master(record, num, size, &guid, &count))
        moved = sweeps_take(&s->sweeps, guid, count, routes_count(&s->routes).switches);
    else
        moved = clock_us() - s->renewed_us > FRESH_US;
    if (moved && !s->renews)
        renew(s);
}

void paths_rest(struct paths *p)
{
    for (struct subnet *s = p->subnets; s; s = s->next)
        s->sweeps.known = false;
}

void paths_look(struct paths *p)
{
    const struct sa_match masters = {.attribute = SA_SM_RECORD};
    uint64_t now = clock_us();
    for (struct subnet *s = p->subnets; s; s = s->next) {
        if (s->looks || now - s->looked_us < look_pause_us(s))
            continue;
        s->looked_us = now;
        s->looks = !sa_list(p->sa, s->device, s->port, &masters, on_masters, s);
    }
}

/* ---- for people: names, then the LMC, then paths ---- */

static void name_next(struct subnet *s);

static void end_unnamed(struct subnet *s, int status, const struct text *out)
{
    struct question *q = s->unnamed;
    s->unnamed = q->next;
    q->shown(q->arg, q->who, status, out);
    free(q);
}

static void on_lmc(void *arg, int status, const uint8_t *record, size_t num, size_t size)
{
    struct subnet *s = arg;
    struct question *q = s->unnamed;
    s->reads_lmc = false;
    if (!status && (!num || size <= SA_PORT_LMC_AT))
        status = -EHOSTUNREACH;
    if (!status) {
        q->q.num = 1u << (record[SA_PORT_LMC_AT] & 7);
        s->unnamed = q->next;
        status = add_question(s, q);
        if (!status) {
            begin_reads(s);
        } else {
            q->next = s->unnamed;
            s->unnamed = q;
        }
    }
    if (status)
        end_unnamed(s, status, NULL);
    name_next(s);
}

static int read_lmc(struct subnet *s, uint16_t base)
{
    struct sa_match m = {.attribute = SA_PORT_RECORD, .mask = BY_LID | BY_BASE};
    uint16_t lid = htobe16(base);
    memcpy(m.data, &lid, sizeof(lid));
    memcpy(m.data + SA_PORT_LID_AT, &lid, sizeof(lid));
    return sa_list(s->paths->sa, s->device, s->port, &m, on_lmc, s);
}

static void on_names(void *arg, int status, const uint8_t *record, size_t num, size_t size)
{
    struct subnet *s = arg;
    s->reads_names = false;
    if (!status)
        status = paths_names_take(&s->names, record, num, size);
    s->has_names = !status;
    while (status && s->unnamed)
        end_unnamed(s, status, NULL);
    name_next(s);
}

/* The first question without names. */
static void name_next(struct subnet *s)
{
    while (s->unnamed && s->has_names && !s->reads_names && !s->reads_lmc) {
        struct question *q = s->unnamed;
        struct text why = {0};
        int rc = paths_names_find(&s->names, &q->ends, &q->q.from, &q->q.to, &why);
        if (!rc)
            rc = read_lmc(s, q->q.to);
        s->reads_lmc = !rc;
        if (rc)
            end_unnamed(s, rc, &why);
        text_free(&why);
    }
}

static int read_names(struct subnet *s)
{
    struct sa_match m = {.attribute = SA_NODE_RECORD};
    uint64_t now = clock_us();
    if (s->reads_names || (s->has_names && now - s->names_us < FRESH_US))
        return 0;
    int rc = sa_list(s->paths->sa, s->device, s->port, &m, on_names, s);
    s->reads_names = !rc;
    s->names_us = now;
    return rc;
}

int paths_show(struct paths *p, const char *device, uint8_t port, const struct fd_ends *ends, struct sa_asker who,
               paths_shown shown, void *arg)
{
    struct subnet *s = subnet_get(p, device, port);
    struct question *q = s ? calloc(1, sizeof(*q)) : NULL, **end;
    if (!q)
        return -ENOMEM;
    forget_older(s, AGAIN_US); /* people look when something has changed */
    *q = (struct question){.who = who, .shown = shown, .arg = arg, .ends = *ends};
    memcpy(q->q.device, s->device, sizeof(q->q.device));
    q->q.port = port;
    int rc = read_names(s);
    if (rc) {
        free(q);
        return rc;
    }
    for (end = &s->unnamed; *end; end = &(*end)->next)
        ;
    *end = q;
    name_next(s);
    return 0;
}

/* ---- life ---- */

struct paths *paths_start(struct sa *sa, paths_told told, paths_moved moved, void *arg)
{
    struct paths *p = calloc(1, sizeof(*p));
    if (p)
        *p = (struct paths){.sa = sa, .told = told, .moved = moved, .arg = arg};
    return p;
}

static void free_questions(struct question *q)
{
    for (struct question *next; q; q = next) {
        next = q->next;
        free(q);
    }
}

void paths_stop(struct paths *p)
{
    for (struct subnet *s = p ? p->subnets : NULL, *next; s; s = next) {
        next = s->next;
        free_questions(s->first);
        free_questions(s->unnamed);
        routes_free(&s->routes);
        paths_names_free(&s->names);
        free(s);
    }
    free(p);
}
