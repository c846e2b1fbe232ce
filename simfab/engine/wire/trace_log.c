/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces of events on the links (trace_log.h). */
#include "simfab/engine/wire/trace_log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

enum {
    FLUSH_BYTES = 1 << 18,
    FLUSH_NS = 200000000,
    TAIL_BYTES = 512, /* kept free below the limit for the note about the limit */
    NODE_THREAD = 31, /* of a port: events of no lane */
};

/* The last values written for a lane, and whether its thread has been named. */
struct lane_seen {
    uint32_t credits, packets;
    bool named;
};

struct port_seen {
    bool wanted, named;
    struct lane_seen vl[FABRIC_VLS];
};

struct trace_log {
    struct sim *sim;
    int fd;
    uint64_t limit, written; /* bytes, including those waiting */
    uint64_t events, left_out;
    uint64_t started_ps, flushed_ns;
    int error; /* of write: nothing more is written */
    bool full;
    uint32_t *first_port; /* by node: its port 0 in seen */
    struct port_seen *seen;
    bool *node_named;
    struct text wait; /* not written yet */
};

bool trace_request_parse(const char *text, struct trace_request *r)
{
    unsigned long long limit;
    int at = 0;

    *r = (struct trace_request){0};
    if (strncmp(text, "start ", 6) || !isdigit((unsigned char)text[6]) ||
        sscanf(text + 6, "%19llu %n", &limit, &at) != 1 || !at || limit < TRACE_LIMIT_MIN ||
        strlen(text + 6 + at) >= sizeof r->links)
        return false;
    r->limit = limit;
    strcpy(r->links, text + 6 + at);
    return true;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void flush(struct trace_log *t)
{
    size_t done = 0;

    while (!t->error && done < t->wait.used) {
        ssize_t n = write(t->fd, t->wait.buf + done, t->wait.used - done);

        if (n < 0 && errno != EINTR) {
            t->error = errno;
            engine_log("the trace ends here: %s", strerror(errno));
        }
        done += n > 0 ? (size_t)n : 0;
    }
    t->wait.used = 0;
    t->flushed_ns = real_ns();
}

/*
 * The end of an event that begins at byte `from` of the buffer: counts the event, or removes the event if there is no
 * room.
 */
static void close_event(struct trace_log *t, size_t from)
{
    size_t bytes = t->wait.used - from;

    if (t->full || t->error || t->written + bytes + TAIL_BYTES > t->limit) {
        t->wait.used = from;
        t->left_out++;
        t->full = true;
        return;
    }
    t->written += bytes;
    t->events++;
    if (t->wait.used >= FLUSH_BYTES)
        flush(t);
}

/* A JSON string. Names may be in any encoding: bytes beyond ASCII are taken for Latin-1. */
static void say_string(struct text *t, const char *s)
{
    text_say(t, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c < 0x20 || c >= 0x7f)
            text_say(t, "\\u%04x", c);
        else
            text_say(t, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    text_say(t, "\"");
}

static unsigned thread_of(const struct port *p, unsigned lane)
{
    return p->num * 32u + lane;
}

/* A name for a process or, with a tid, for a thread; lanes are listed in the order of their numbers. */
static void name_it(struct trace_log *t, const struct node *n, int tid, const char *name)
{
    size_t from = t->wait.used;

    text_say(&t->wait, ",\n{\"ph\":\"M\",\"pid\":%" PRIu32, n->index + 1);
    if (tid >= 0)
        text_say(&t->wait, ",\"tid\":%d", tid);
    text_say(&t->wait, ",\"name\":\"%s_name\",\"args\":{\"name\":", tid >= 0 ? "thread" : "process");
    say_string(&t->wait, name);
    text_say(&t->wait, "}}");
    close_event(t, from);
}

static struct port_seen *seen_port(struct trace_log *t, const struct port *p)
{
    return &t->seen[t->first_port[p->node->index] + p->num];
}

static void name_node(struct trace_log *t, const struct node *n)
{
    size_t from;

    if (t->node_named[n->index])
        return;
    t->node_named[n->index] = true;
    name_it(t, n, -1, n->desc);
    from = t->wait.used;
    text_say(&t->wait,
             ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"name\":\"process_labels\",\"args\":{\"labels\":\"simulated %s\"}}",
             n->index + 1,
             n->kind == NODE_SWITCH ? "switch"
             : n->kind == NODE_CA   ? "adapter"
                                    : "router");
    close_event(t, from);
}

/* The thread of a port's lane, or of the port itself; names it at its first use. */
static unsigned use_thread(struct trace_log *t, const struct port *p, unsigned lane)
{
    struct port_seen *seen = seen_port(t, p);
    bool *named = lane == NODE_THREAD ? &seen->named : &seen->vl[lane].named;
    char name[32];

    if (!*named) {
        *named = true;
        name_node(t, p->node);
        if (lane == NODE_THREAD)
            snprintf(name, sizeof name, "port %u", p->num);
        else
            snprintf(name, sizeof name, "port %u VL %u", p->num, lane);
        name_it(t, p->node, (int)thread_of(p, lane), name);
    }
    return thread_of(p, lane);
}

/* ,{"ph":"X","pid":1,"tid":32,"ts":1.000000 */
static size_t open_event(struct trace_log *t, char kind, const struct port *p, unsigned lane, uint64_t at_ps)
{
    unsigned tid = use_thread(t, p, lane);
    size_t from = t->wait.used;

    text_say(&t->wait, ",\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%u,\"ts\":%" PRIu64 ".%06" PRIu64, kind,
             p->node->index + 1, tid, at_ps / 1000000, at_ps % 1000000);
    return from;
}

static void say_duration(struct trace_log *t, uint64_t ps)
{
    text_say(&t->wait, ",\"dur\":%" PRIu64 ".%06" PRIu64, ps / 1000000, ps % 1000000);
}

/* The sender's credits, in bytes. */
static uint32_t sender_credits(const struct vl_queue *q)
{
    return credit_available(&q->credit) * CREDIT_BLOCK_BYTES;
}

/* ---- start and stop -------------------------------------------------------------------------------------------- */

static bool link_matches(const struct port *p, const char *pattern)
{
    char name[96];

    snprintf(name, sizeof name, "%s %u", p->node->desc, p->num);
    return !fnmatch(pattern, name, 0) || !fnmatch(pattern, p->node->desc, 0);
}

/* The lanes' present values are their starting points. */
static void look_at_lanes(struct port_seen *seen, const struct link_dir *l)
{
    for (unsigned vl = 0; l && vl < FABRIC_VLS; vl++)
        seen->vl[vl] = (struct lane_seen){.credits = sender_credits(&l->vl[vl]), .packets = l->vl[vl].packets};
}

/* Marks the ports of the wanted links; returns their number. */
static unsigned choose_ports(struct trace_log *t, const char *pattern)
{
    const struct fabric *f = t->sim->fabric;
    unsigned chosen = 0;

    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 0; k <= f->nodes[i]->num_ports; k++) {
            const struct port *p = &f->nodes[i]->ports[k];
            bool wanted = !*pattern || link_matches(p, pattern) || (p->peer && link_matches(p->peer, pattern));

            seen_port(t, p)->wanted = wanted;
            look_at_lanes(seen_port(t, p), p->out);
            chosen += wanted && p->peer;
        }
    return chosen;
}

static void trace_free(struct trace_log *t)
{
    text_free(&t->wait);
    free(t->first_port);
    free(t->seen);
    free(t->node_named);
    free(t);
}

static struct trace_log *trace_new(struct sim *s)
{
    struct trace_log *t = xcalloc(1, sizeof *t);
    uint32_t ports = 0;

    t->sim = s;
    t->first_port = xcalloc(s->fabric->num_nodes, sizeof *t->first_port);
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++) {
        t->first_port[i] = ports;
        ports += s->fabric->nodes[i]->num_ports + 1;
    }
    t->seen = xcalloc(ports, sizeof *t->seen);
    t->node_named = xcalloc(s->fabric->num_nodes, sizeof *t->node_named);
    return t;
}

static bool is_writable_file(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !fstat(fd, &st) && S_ISREG(st.st_mode);
}

int trace_log_start(struct sim *s, int fd, const struct trace_request *r)
{
    struct trace_log *t;

    if (s->trace)
        return EBUSY;
    if (!is_writable_file(fd))
        return EINVAL;
    t = trace_new(s);
    if (!choose_ports(t, r->links) || ftruncate(fd, 0)) {
        trace_free(t);
        return ENXIO;
    }
    t->fd = fd;
    t->limit = r->limit;
    t->started_ps = sim_now(s);
    text_say(&t->wait, "[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"simfab\"}}");
    t->written = t->wait.used;
    flush(t);
    s->trace = t;
    return 0;
}

int trace_log_stop(struct sim *s, struct text *out)
{
    struct trace_log *t = s->trace;

    if (!t)
        return ESRCH;
    s->trace = NULL;
    if (t->full && !t->error)
        text_say(&t->wait,
                 ",\n{\"ph\":\"i\",\"s\":\"g\",\"pid\":0,\"tid\":0,\"ts\":%" PRIu64 ".%06" PRIu64
                 ",\"name\":\"the file's limit was reached\",\"args\":{\"events left out\":%" PRIu64 "}}",
                 sim_now(s) / 1000000, sim_now(s) % 1000000, t->left_out);
    text_say(&t->wait, "\n]\n");
    flush(t);
    if (close(t->fd) && !t->error)
        t->error = errno;
    text_say(out, "%" PRIu64 " events of %.6f s of virtual time", t->events,
             (double)(sim_now(s) - t->started_ps) / 1e12);
    if (t->error)
        text_say(out, "; the file could not be written: %s", strerror(t->error));
    else if (t->full)
        text_say(out, "; the limit of %" PRIu64 " bytes was reached, %" PRIu64 " events were left out", t->limit,
                 t->left_out);
    text_say(out, "\n");
    trace_free(t);
    return 0;
}

void trace_log_tick(struct sim *s)
{
    if (s->trace && s->trace->wait.used && real_ns() - s->trace->flushed_ns > FLUSH_NS)
        flush(s->trace);
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

static const char *op_name(const struct packet *p)
{
    static const char *const names[] = {
        [PKT_SEND] = "SEND",
        [PKT_WRITE] = "WRITE",
        [PKT_READ_REQUEST] = "READ request",
        [PKT_READ_RESPONSE] = "READ response",
        [PKT_ATOMIC] = "ATOMIC",
        [PKT_ATOMIC_ACK] = "ATOMIC answer",
        [PKT_ACK] = "ACK",
        [PKT_NAK] = "NAK",
        [PKT_RNR_NAK] = "RNR NAK",
    };

    if (p->background)
        return "flow";
    return p->op < sizeof names / sizeof *names && names[p->op] ? names[p->op] : "packet";
}

static void say_packet(struct text *t, const struct packet *p)
{
    text_say(t,
             "\"sl\":%u,\"vl\":%u,\"bytes\":%" PRIu32 ",\"payload\":%" PRIu32
             ",\"slid\":%u,\"dlid\":%u,\"src_qp\":%" PRIu32 ",\"dest_qp\":%" PRIu32 ",\"psn\":%" PRIu32,
             p->sl, p->vl, p->wire_bytes, p->payload, p->slid, p->dlid, p->src_qpn, p->dest_qpn, p->psn);
}

void trace_log_packet(struct trace_log *t, const struct link_dir *l, const struct packet *p, uint64_t from_ps,
                      uint64_t to_ps)
{
    size_t from;

    if (!seen_port(t, l->from)->wanted)
        return;
    from = open_event(t, 'X', l->from, p->vl & 15, from_ps);
    say_duration(t, to_ps - from_ps);
    text_say(&t->wait, ",\"cat\":\"packet\",\"name\":\"%s\",\"args\":{", op_name(p));
    say_packet(&t->wait, p);
    text_say(&t->wait, "}}");
    close_event(t, from);
}

static void say_counter(struct trace_log *t, const struct vl_queue *q, uint64_t at_ps, const char *what,
                        const char *unit, uint32_t value)
{
    const struct port *p = q->link->from;
    unsigned vl = (unsigned)(q - q->link->vl);
    size_t from = open_event(t, 'C', p, vl, at_ps);

    text_say(&t->wait, ",\"name\":\"%s port %u VL %u\",\"args\":{\"%s\":%" PRIu32 "}}", what, p->num, vl, unit, value);
    close_event(t, from);
}

void trace_log_credits(struct trace_log *t, const struct vl_queue *q, uint64_t t_ps)
{
    struct port_seen *seen = seen_port(t, q->link->from);
    struct lane_seen *lane = &seen->vl[q - q->link->vl];
    uint32_t credits = sender_credits(q);

    if (!seen->wanted || lane->credits == credits)
        return;
    say_counter(t, q, max_u64(t_ps, t->started_ps), "credits", "bytes", credits);
    lane->credits = credits;
}

void trace_log_lane(struct trace_log *t, const struct link_dir *l, unsigned vl)
{
    const struct vl_queue *q = &l->vl[vl & 15];
    struct port_seen *seen = seen_port(t, l->from);

    trace_log_credits(t, q, sim_now(t->sim));
    if (!seen->wanted || seen->vl[vl & 15].packets == q->packets)
        return;
    say_counter(t, q, sim_now(t->sim), "queue", "packets", q->packets);
    seen->vl[vl & 15].packets = q->packets;
}

void trace_log_wait(struct trace_log *t, const struct link_dir *l, unsigned vl, uint64_t since_ps)
{
    uint64_t since = max_u64(since_ps, t->started_ps);
    size_t from;

    if (!seen_port(t, l->from)->wanted)
        return;
    from = open_event(t, 'X', l->from, vl & 15, since);
    say_duration(t, sim_now(t->sim) - since);
    text_say(&t->wait, ",\"cat\":\"wait\",\"name\":\"waits for credits\"}");
    close_event(t, from);
}

void trace_log_drop(struct trace_log *t, const struct port *at, const struct packet *p, const char *reason)
{
    size_t from;

    if (!seen_port(t, at)->wanted)
        return;
    from = open_event(t, 'i', at, NODE_THREAD, sim_now(t->sim));
    text_say(&t->wait, ",\"s\":\"t\",\"cat\":\"drop\",\"name\":\"dropped: %s\",\"args\":{\"op\":\"%s\",", reason,
             op_name(p));
    say_packet(&t->wait, p);
    text_say(&t->wait, "}}");
    close_event(t, from);
}

void trace_log_state(struct trace_log *t, const struct port *p)
{
    static const char *const names[] = {"no change", "Down", "Initialize", "Armed", "Active"};
    size_t from;

    if (!seen_port(t, p)->wanted)
        return;
    from = open_event(t, 'i', p, NODE_THREAD, sim_now(t->sim));
    text_say(&t->wait, ",\"s\":\"t\",\"cat\":\"state\",\"name\":\"%s\",\"args\":{\"lid\":%u,\"rate_gbps\":%.1f}}",
             p->state < sizeof names / sizeof *names ? names[p->state] : "?", p->lid, (double)port_rate_bps(p) / 1e9);
    close_event(t, from);
}
