/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace event format: an array of objects, each with a name, a phase (ph), a time in microseconds (ts), a process
 * (pid) and a thread (tid). Phases used: M (names of tracks), X (a slice with its length), B and E (its beginning and
 * end), i (an instant) and C (a counter). Events of a rank are sorted by time.
 */
#include "mrrun/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/verbs.h"

#define TRACKS 1000 /* of one rail: the first is its state, the others have slices */

/* The tracks of a rail that have slices: until when each is taken. */
struct lanes {
    uint64_t *free_ns;
    unsigned num, room;
};

struct timeline {
    FILE *out;
    const struct records *r;
    uint64_t zero_ns;
    bool first;
    int rank; /* rank of the events being written */
    const struct mr_record *m;
    struct lanes lanes[MR_RECORD_RAILS];
    bool down[MR_RECORD_RAILS]; /* a slice of the down state has begun */
};

/* ---- events ------------------------------------------------------------------------------------------------------ */

static unsigned track_of(unsigned rail, unsigned lane)
{
    return rail < MR_RECORD_RAILS ? (rail + 1) * TRACKS + lane : 0;
}

/* All up to its arguments; the caller ends it with "}}". */
static void begin_event(struct timeline *t, const char *phase, unsigned track, const char *name)
{
    fprintf(t->out, "%s\n{\"ph\": \"%s\", \"pid\": %d, \"tid\": %u, \"name\": ", t->first ? "" : ",", phase, t->rank,
            track);
    t->first = false;
    json_string(t->out, name);
}

static void put_time(struct timeline *t, const char *key, uint64_t ns)
{
    fprintf(t->out, ", \"%s\": %llu.%03u", key, (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

static void put_begin(struct timeline *t, uint64_t ns)
{
    put_time(t, "ts", ns > t->zero_ns ? ns - t->zero_ns : 0);
}

static const char *host_of(const struct timeline *t, uint32_t rank)
{
    return rank < (uint32_t)t->r->ranks ? t->r->host[t->r->host_of[rank]] : "?";
}

static void put_path(struct timeline *t, const struct mr_record_event *e)
{
    fprintf(t->out, ", \"args\": {\"peer\": %u, \"host\": ", e->peer);
    json_string(t->out, host_of(t, e->peer));
    fputs(", \"to\": ", t->out);
    json_string(t->out, records_rail(t->r, e->peer, e->remote));
    fprintf(t->out, ", \"link\": \"%s\", \"path\": %u, \"sl\": %u",
            e->link < MR_LINK_KINDS ? mr_kind_name(e->link) : "?", e->path, e->sl);
}

static void put_number(struct timeline *t, const char *key, uint64_t n)
{
    fprintf(t->out, ", \"%s\": %llu", key, (unsigned long long)n);
}

static void put_metadata(struct timeline *t, unsigned track, const char *what, const char *name)
{
    begin_event(t, "M", track, what);
    fputs(", \"args\": {\"name\": ", t->out);
    json_string(t->out, name);
    fputs("}}", t->out);
}

static void put_order(struct timeline *t, unsigned track, const char *what, unsigned place)
{
    begin_event(t, "M", track, what);
    fprintf(t->out, ", \"args\": {\"sort_index\": %u}}", place);
}

/* ---- kinds of events --------------------------------------------------------------------------------------------- */

static void put_bytes(struct timeline *t, const struct mr_record_event *e)
{
    char name[128];

    snprintf(name, sizeof name, "%s bytes", records_rail(t->r, (unsigned)t->rank, e->rail));
    begin_event(t, "C", track_of(e->rail, 0), name);
    put_begin(t, e->ns);
    fprintf(t->out, ", \"args\": {\"out\": %llu, \"in\": %llu}}", (unsigned long long)e->a, (unsigned long long)e->b);
}

static void put_weight(struct timeline *t, const struct mr_record_event *e)
{
    char name[320], more[64] = "";

    if (e->path || e->variant)
        snprintf(more, sizeof more, ", path %u%s%s", e->path, e->variant & 1 ? ", other epoch" : "",
                 e->variant > 1 ? ", second copy" : "");
    snprintf(name, sizeof name, "weight to rank %u: %s - %s %s%s", e->peer,
             records_rail(t->r, (unsigned)t->rank, e->rail), records_rail(t->r, e->peer, e->remote),
             e->link < MR_LINK_KINDS ? mr_kind_name(e->link) : "?", more);
    begin_event(t, "C", track_of(e->rail, 0), name);
    put_begin(t, e->ns);
    fprintf(t->out, ", \"args\": {\"weight\": %llu}}", (unsigned long long)e->a);
}

static void put_change(struct timeline *t, const struct mr_record_event *e, const char *what)
{
    char name[160];

    snprintf(name, sizeof name, "%s rank %u", what, e->peer);
    begin_event(t, "i", track_of(e->rail, 0), name);
    put_begin(t, e->ns);
    fputs(", \"s\": \"t\"", t->out);
    put_path(t, e);
    if (e->kind == MR_RECORD_RESENT)
        put_number(t, "packets", e->a);
    fputs("}}", t->out);
}

/* Nothing is known before the ring's first event: an end without its beginning is skipped. */
static void put_port(struct timeline *t, const struct mr_record_event *e)
{
    bool down = e->kind == MR_RECORD_PORT_DOWN;

    if (e->rail >= MR_RECORD_RAILS || down == t->down[e->rail])
        return;
    t->down[e->rail] = down;
    begin_event(t, down ? "B" : "E", track_of(e->rail, 0), "port down");
    put_begin(t, e->ns);
    fprintf(t->out, ", \"args\": {\"device_lost\": %s}}", e->detail ? "true" : "false");
}

static void put_timeout(struct timeline *t, const struct mr_record_event *e)
{
    char name[96];

    snprintf(name, sizeof name, "packets to rank %u not acknowledged in time", e->peer);
    begin_event(t, "i", 0, name);
    put_begin(t, e->ns);
    fprintf(t->out, ", \"s\": \"t\", \"args\": {\"peer\": %u}}", e->peer);
}

/* The first track of the rail that is free then; -1: no memory. */
static int take_lane(struct lanes *l, uint64_t from_ns, uint64_t to_ns)
{
    unsigned i = 0;

    while (i < l->num && l->free_ns[i] > from_ns)
        i++;
    if (i == l->room) {
        unsigned room = l->room ? 2 * l->room : 8;
        uint64_t *grown = room < TRACKS ? realloc(l->free_ns, room * sizeof *grown) : NULL;

        if (!grown)
            return -1;
        l->free_ns = grown;
        l->room = room;
    }
    if (i == l->num)
        l->num++;
    l->free_ns[i] = to_ns;
    return (int)i;
}

static int put_part(struct timeline *t, const struct mr_record_event *e)
{
    bool read = e->kind == MR_RECORD_READ, failed = e->detail & MR_RECORD_FAILED;
    int lane = e->rail < MR_RECORD_RAILS ? take_lane(&t->lanes[e->rail], e->ns, e->ns + e->lasted_ns) : -1;
    char name[96];

    if (lane < 0)
        return -1;
    snprintf(name, sizeof name, "%s %u%s", read ? "read from rank" : "write to rank", e->peer,
             failed ? ", broken off" : "");
    begin_event(t, "X", track_of(e->rail, 1 + (unsigned)lane), name);
    put_begin(t, e->ns);
    put_time(t, "dur", e->lasted_ns);
    put_path(t, e);
    put_number(t, "bytes", e->a);
    put_number(t, "message", e->b);
    fprintf(t->out, ", \"broken\": %s}}", failed ? "true" : "false");
    return 0;
}

static int put_event(struct timeline *t, const struct mr_record_event *e)
{
    switch (e->kind) {
    case MR_RECORD_BYTES:
        put_bytes(t, e);
        break;
    case MR_RECORD_WEIGHT:
        put_weight(t, e);
        break;
    case MR_RECORD_OPEN:
        put_change(t, e, "open to");
        break;
    case MR_RECORD_BREAK:
        put_change(t, e, "broken to");
        break;
    case MR_RECORD_CLOSE:
        put_change(t, e, "closed to");
        break;
    case MR_RECORD_RESENT:
        put_change(t, e, "packets go again to");
        break;
    case MR_RECORD_PORT_DOWN:
    case MR_RECORD_PORT_UP:
        put_port(t, e);
        break;
    case MR_RECORD_WRITE:
    case MR_RECORD_READ:
        return put_part(t, e);
    case MR_RECORD_TIMEOUT:
        put_timeout(t, e);
        break;
    }
    return 0;
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const struct mr_record_event *x = *(const struct mr_record_event *const *)a,
                                 *y = *(const struct mr_record_event *const *)b;

    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : x < y ? -1 : x > y;
}

static uint64_t num_kept(const struct mr_record *m)
{
    return m->written < m->num_events ? m->written : m->num_events;
}

static void put_rank_name(struct timeline *t)
{
    char name[192];

    snprintf(name, sizeof name, "%s, rank %d", host_of(t, (uint32_t)t->rank), t->rank);
    put_metadata(t, 0, "process_name", name);
    put_order(t, 0, "process_sort_index", (unsigned)t->rank);
    begin_event(t, "M", 0, "process_labels");
    fprintf(t->out, ", \"args\": {\"labels\": \"%s\"}}", t->r->simulated ? "simulated time" : "real time");
    put_metadata(t, 0, "thread_name", "rank");
    put_order(t, 0, "thread_sort_index", 0);
}

/* Called when their number is known. */
static void name_tracks(struct timeline *t)
{
    for (unsigned i = 0; i < t->m->num_rails; i++)
        for (unsigned lane = 0; lane <= t->lanes[i].num; lane++) {
            char name[160], number[16] = "";

            if (lane > 1)
                snprintf(number, sizeof number, " %u", lane);
            snprintf(name, sizeof name, "%s%s%s", records_rail(t->r, (unsigned)t->rank, i), lane ? " stripes" : "",
                     number);
            put_metadata(t, track_of(i, lane), "thread_name", name);
            put_order(t, track_of(i, lane), "thread_sort_index", track_of(i, lane));
        }
}

static void put_life(struct timeline *t)
{
    uint64_t dropped = t->m->written - num_kept(t->m);
    char name[96];

    begin_event(t, "X", 0, "MPI");
    put_begin(t, t->m->began_ns);
    put_time(t, "dur", t->m->updated_ns - t->m->began_ns);
    fprintf(t->out, ", \"args\": {\"finalized\": %s}}", t->m->ended ? "true" : "false");
    if (!dropped)
        return;
    snprintf(name, sizeof name, "%llu events before the first were dropped", (unsigned long long)dropped);
    begin_event(t, "i", 0, name);
    put_begin(t, t->m->began_ns);
    fprintf(t->out, ", \"s\": \"p\", \"args\": {\"dropped\": %llu, \"kept\": %llu}}", (unsigned long long)dropped,
            (unsigned long long)t->m->num_events);
}

static int put_events(struct timeline *t)
{
    const struct mr_record_event *ring = (const struct mr_record_event *)((const char *)t->m + t->m->events_at);
    uint64_t n = num_kept(t->m);
    const struct mr_record_event **sorted = calloc(n ? n : 1, sizeof *sorted);
    int err = 0;

    if (!sorted)
        return -1;
    for (uint64_t i = 0; i < n; i++)
        sorted[i] = &ring[i];
    qsort(sorted, n, sizeof *sorted, by_time);
    for (uint64_t i = 0; i < n && !err; i++)
        err = put_event(t, sorted[i]);
    free(sorted);
    for (unsigned i = 0; i < MR_RECORD_RAILS; i++)
        if (t->down[i])
            put_port(t,
                     &(struct mr_record_event){.kind = MR_RECORD_PORT_UP, .rail = (uint8_t)i, .ns = t->m->updated_ns});
    return err;
}

static int put_rank(struct timeline *t)
{
    int err;

    put_rank_name(t);
    put_life(t);
    err = put_events(t);
    name_tracks(t);
    for (unsigned i = 0; i < MR_RECORD_RAILS; i++)
        free(t->lanes[i].free_ns);
    memset(t->lanes, 0, sizeof t->lanes);
    memset(t->down, 0, sizeof t->down);
    return err;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void put_head(struct timeline *t)
{
    const char *between = "";

    fputs("{\"displayTimeUnit\": \"ns\",\n\"otherData\": {\"program\": \"mrrun --rails-trace\", \"job\": ", t->out);
    json_string(t->out, t->r->job_id);
    fprintf(t->out, ", \"clock\": \"%s\", \"ranks\": %d,\n\"dropped_events\": {",
            t->r->simulated ? "simulated (simfab)" : "CLOCK_MONOTONIC", t->r->ranks);
    for (int i = 0; i < t->r->ranks; i++) {
        const struct mr_record *m = t->r->of[i].at;

        if (!m || m->written <= m->num_events)
            continue;
        fprintf(t->out, "%s\"%d\": %llu", between, i, (unsigned long long)(m->written - m->num_events));
        between = ", ";
    }
    fputs("}, \"ranks_without_record\": [", t->out);
    between = "";
    for (int i = 0; i < t->r->ranks; i++)
        if (!t->r->of[i].at) {
            fprintf(t->out, "%s%d", between, i);
            between = ", ";
        }
    fputs("]},\n\"traceEvents\": [", t->out);
}

int timeline_print(FILE *out, const struct records *r)
{
    struct timeline t = {.out = out, .r = r, .first = true, .zero_ns = UINT64_MAX};
    int err = 0;

    for (int i = 0; i < r->ranks; i++)
        if (r->of[i].at && r->of[i].at->began_ns < t.zero_ns)
            t.zero_ns = r->of[i].at->began_ns;
    put_head(&t);
    for (t.rank = 0; t.rank < r->ranks && !err; t.rank++) {
        t.m = r->of[t.rank].at;
        if (t.m)
            err = put_rank(&t);
    }
    fputs("\n]}\n", out);
    return err;
}
