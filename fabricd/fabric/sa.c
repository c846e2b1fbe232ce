/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions to the subnet administration: see sa.h. Two questions for each port's place: its node's record, which has
 * the LID, and then its port's, which has the LMC. Lists of records come in several packets (RMPP), which the kernel
 * joins. The packets' layout is that of the InfiniBand specification, volume 1, 15.2.1.1.
 */
#include "fabricd/fabric/sa.h"
#include "fabricd/base/log.h"
#include "fabricd/proto/proto.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

#define CLASS_SA         0x03
#define SA_VERSION       2
#define METHOD_GET       0x01
#define METHOD_GET_RESP  0x81
#define METHOD_LIST      0x12
#define METHOD_LIST_RESP 0x92
#define BY_PORT_GUID     (1ull << 8) /* of a node's record */
#define BY_LID           (1ull << 0) /* of a port's: the node with this LID at one of its ports, ... */
#define BY_BASE_LID      (1ull << 5) /* ... and the port with this first LID */
#define STATUS_BUSY      0x0001
#define STATUS_NONE      0x0300
#define QKEY             0x80010000u
#define TIMEOUT_MS       300
#define RETRIES          3

#define QUERIES  64 /* under way, or with an answer that is still good */
#define ASKERS   512
#define LISTS    192        /* that are under way: fabric/paths.c has seven for a port */
#define LIST_MAX (8u << 20) /* bytes of the longest: the nodes of the largest subnet have 6 MiB */
#define GOOD_NS  1000000000ull
/* the port's GUID in a node's record: LID, reserved, then NodeInfo */
#define NODE_GUID_AT 24

struct packet {
    uint8_t base_version, mgmt_class, class_version, method;
    uint16_t status, class_specific;
    uint64_t tid;
    uint16_t attribute, reserved;
    uint32_t modifier;
    uint8_t rmpp[12];
    uint64_t sm_key;
    uint16_t offset, reserved2;
    uint64_t mask;
    uint8_t data[200];
} __attribute__((packed));

/* A port of this host used for questions. */
struct sa_port {
    struct sa_port *next;
    struct sa *sa;
    char device[FD_DEV_MAX];
    uint8_t port;
    int fd, agent;
    void *umad; /* of the last packet received, length bytes beside its head; the head's size is known when a port is
                   open */
    int length;
    void *question; /* the same for a sent packet */
    sd_event_source *source;
};

struct waiter {
    struct waiter *next;
    struct sa_asker who;
};

enum stage { FREE, ASKS_NODE, ASKS_PORT, KNOWN };

struct query {
    enum stage stage;
    struct sa_port *port;
    uint32_t tid;
    struct sa_place place;
    uint64_t known_ns;
    struct waiter *waiters;
    unsigned num_waiters;
};

/* A list that is under way; port is NULL: none is. */
struct list {
    struct sa_port *port;
    uint32_t tid;
    uint16_t attribute;
    sa_records done;
    void *arg;
};

struct sa {
    sd_event *event;
    sa_answer answer;
    void *arg;
    struct sa_port *ports;
    uint32_t tid;
    struct query query[QUERIES];
    struct list list[LISTS];
};

static uint64_t sa_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- questions ---- */

static void finish_query(struct sa *s, struct query *q, int status)
{
    struct waiter *w = q->waiters, *next;
    struct sa_place place;
    q->place.status = status;
    q->known_ns = sa_now_ns();
    q->stage = KNOWN;
    q->waiters = NULL;
    q->num_waiters = 0;
    place = q->place;
    for (; w; w = next) {
        next = w->next;
        s->answer(s->arg, w->who, &place);
        free(w);
    }
}

/* Sends a question with method, attribute, mask and data from the packet of the port. */
static int send_sa_question(struct sa *s, struct sa_port *p, uint32_t *tid)
{
    struct packet *m = umad_get_mad(p->question);
    umad_port_t now;
    /* the subnet manager may have moved as well */
    if (umad_get_port(p->device, p->port, &now) < 0)
        return -ENODEV;
    int sm_lid = (int)now.sm_lid, sl = (int)now.sm_sl;
    bool active = now.state == 4;
    umad_release_port(&now);
    if (!active || !sm_lid)
        return -ENETDOWN;
    m->base_version = 1;
    m->mgmt_class = CLASS_SA;
    m->class_version = SA_VERSION;
    *tid = ++s->tid;
    m->tid = htobe64(*tid);
    umad_set_addr(p->question, sm_lid, 1, sl, (int)QKEY);
    int rc = umad_send(p->fd, p->agent, p->question, sizeof(*m), TIMEOUT_MS, RETRIES);
    return rc < 0 ? -EIO : 0;
}

static struct packet *empty_question(struct sa_port *p, uint8_t method, uint16_t attribute, uint64_t mask)
{
    struct packet *m = umad_get_mad(p->question);
    memset(p->question, 0, umad_size() + sizeof(*m));
    m->method = method;
    m->attribute = htobe16(attribute);
    m->mask = htobe64(mask);
    return m;
}

static int send_query(struct sa *s, struct query *q)
{
    if (q->stage == ASKS_NODE) {
        uint64_t guid = htobe64(q->place.guid);
        struct packet *m = empty_question(q->port, METHOD_GET, SA_NODE_RECORD, BY_PORT_GUID);
        memcpy(m->data + NODE_GUID_AT, &guid, sizeof(guid));
    } else {
        uint16_t lid = htobe16(q->place.lid);
        struct packet *m = empty_question(q->port, METHOD_GET, SA_PORT_RECORD, BY_LID | BY_BASE_LID);
        memcpy(m->data, &lid, sizeof(lid));
        memcpy(m->data + SA_PORT_LID_AT, &lid, sizeof(lid));
    }
    return send_sa_question(s, q->port, &q->tid);
}

/* ---- answers ---- */

static int status_of(const struct packet *m)
{
    unsigned status = be16toh(m->status);
    return !status ? 0 : status == STATUS_NONE ? -ENOENT : status == STATUS_BUSY ? -EAGAIN : -EPROTO;
}

/* True: the query is over, with *status. */
static bool take_record(struct sa *s, struct query *q, const struct packet *m, int *status)
{
    uint16_t lid;
    memcpy(&lid, m->data, sizeof(lid));
    *status = status_of(m);
    if (*status)
        return true;
    if (q->stage == ASKS_PORT) {
        q->place.lmc = m->data[SA_PORT_LMC_AT] & 7;
        return true;
    }
    q->place.lid = be16toh(lid);
    if (!q->place.lid || q->place.lid >= 0xc000) { /* none yet; multicast */
        *status = -EAGAIN;
        return true;
    }
    q->stage = ASKS_PORT;
    *status = send_query(s, q);
    return *status;
}

static struct query *find_tid(struct sa *s, const struct sa_port *p, uint32_t tid)
{
    for (struct query *q = s->query; q < s->query + QUERIES; q++)
        if ((q->stage == ASKS_NODE || q->stage == ASKS_PORT) && q->port == p && q->tid == tid)
            return q;
    return NULL;
}

static void finish_list(struct list *l, int status, const uint8_t *record, size_t num, size_t size)
{
    struct list over = *l;
    l->port = NULL; /* another list may begin now */
    over.done(over.arg, status, record, num, size);
}

/* Records begin behind the mask; how long each is the head says, in units of 8 bytes. */
static void take_list(struct list *l, const struct packet *m, size_t length)
{
    size_t size = be16toh(m->offset) * 8u, bytes = length - offsetof(struct packet, data);
    int status = status_of(m);
    if (status == -ENOENT || (!status && !size))
        finish_list(l, 0, NULL, 0, 1);
    else if (status)
        finish_list(l, status, NULL, 0, 1);
    else
        finish_list(l, 0, m->data, bytes / size, size);
}

static struct list *find_list(struct sa *s, const struct sa_port *p, uint32_t tid)
{
    for (struct list *l = s->list; l < s->list + LISTS; l++)
        if (l->port == p && l->tid == tid)
            return l;
    return NULL;
}

static void port_close(struct sa_port *p)
{
    struct sa_port **at = &p->sa->ports;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    sd_event_source_unref(p->source);
    umad_unregister(p->fd, p->agent);
    umad_close_port(p->fd);
    umad_free(p->umad);
    umad_free(p->question);
    free(p);
}

/* The device has gone, or its descriptor is of no use. */
static void port_failed(struct sa_port *p)
{
    struct sa *s = p->sa;
    for (struct query *q = s->query; q < s->query + QUERIES; q++) {
        if (q->stage == FREE || q->port != p)
            continue;
        if (q->stage != KNOWN)
            finish_query(s, q, -ENODEV);
        q->stage = FREE;
        q->port = NULL;
    }
    for (struct list *l = s->list; l < s->list + LISTS; l++)
        if (l->port == p)
            finish_list(l, -ENODEV, NULL, 0, 1);
    port_close(p);
}

/* Makes room for an answer of this length. */
static bool grow_buffer(struct sa_port *p, int length)
{
    void *more = length > p->length && length <= (int)LIST_MAX ? umad_alloc(1, umad_size() + (size_t)length) : NULL;
    if (!more)
        return false;
    umad_free(p->umad);
    p->umad = more;
    p->length = length;
    return true;
}

/* A received packet, and its length; negative errno. */
static int receive_mad(struct sa_port *p, int fd, int *length)
{
    *length = p->length;
    int rc = umad_recv(fd, p->umad, length, 0);
    if (rc != -ENOSPC || !grow_buffer(p, *length))
        return rc;
    *length = p->length;
    return umad_recv(fd, p->umad, length, 0);
}

static int on_packet(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct sa_port *p = arg;
    struct sa *s = p->sa;
    int length, status = -ETIMEDOUT;
    int rc = receive_mad(p, fd, &length);
    if (rc < 0) {
        if (rc != -EAGAIN && rc != -ETIMEDOUT && rc != -EINTR) {
            log_warn("%s port %u: no more questions to the subnet administration: %s", p->device, p->port,
                     strerror(-rc));
            port_failed(p);
        }
        return 0;
    }
    const struct packet *m = umad_get_mad(p->umad);
    struct query *q = find_tid(s, p, (uint32_t)be64toh(m->tid));
    struct list *l = q ? NULL : find_list(s, p, (uint32_t)be64toh(m->tid));
    if (!q && !l)
        return 0; /* late */
    uint16_t attribute = l ? l->attribute : q->stage == ASKS_NODE ? SA_NODE_RECORD : SA_PORT_RECORD;
    bool ours = length >= (int)(l ? offsetof(struct packet, data) : sizeof(*m)) && m->mgmt_class == CLASS_SA &&
                m->method == (l ? METHOD_LIST_RESP : METHOD_GET_RESP) && be16toh(m->attribute) == attribute;
    if (!umad_status(p->umad)) /* otherwise the question itself, without an answer */
        status = ours ? 0 : -EPROTO;
    if (l && status)
        finish_list(l, status, NULL, 0, 1);
    else if (l)
        take_list(l, m, (size_t)length);
    else if (status || take_record(s, q, m, &status))
        finish_query(s, q, status);
    return 0;
}

/* ---- asking ---- */

static struct sa_port *port_get(struct sa *s, const char *device, uint8_t port, int *err)
{
    for (struct sa_port *p = s->ports; p; p = p->next)
        if (p->port == port && !strcmp(p->device, device))
            return p;
    struct sa_port *p = calloc(1, sizeof(*p));
    *err = -ENOMEM;
    if (!p)
        return NULL;
    p->sa = s;
    memcpy(p->device, device, strnlen(device, sizeof(p->device) - 1));
    p->port = port;
    p->fd = umad_open_port(p->device, port);
    *err = -ENODEV;
    if (p->fd < 0)
        goto free_port;
    p->length = sizeof(struct packet);
    p->umad = umad_alloc(1, umad_size() + sizeof(struct packet));
    p->question = umad_alloc(1, umad_size() + sizeof(struct packet));
    *err = -ENOMEM;
    if (!p->umad || !p->question)
        goto close_port;
    p->agent = umad_register(p->fd, CLASS_SA, SA_VERSION, 1, NULL); /* 1: the kernel joins packets */
    *err = -EPERM;
    if (p->agent < 0)
        goto close_port;
    *err = sd_event_add_io(s->event, &p->source, umad_get_fd(p->fd), EPOLLIN, on_packet, p);
    if (*err < 0)
        goto close_port;
    p->next = s->ports;
    s->ports = p;
    return p;

close_port:
    umad_close_port(p->fd);
    umad_free(p->umad);
    umad_free(p->question);
free_port:
    free(p);
    return NULL;
}

/* The query of this port if there is one, or else a place for it; NULL: all are under way. */
static struct query *find_query(struct sa *s, const struct sa_port *p, uint64_t guid)
{
    struct query *best = NULL;
    for (struct query *q = s->query; q < s->query + QUERIES; q++) {
        if (q->stage != FREE && q->port == p && q->place.guid == guid)
            return q;
        if (q->stage == ASKS_NODE || q->stage == ASKS_PORT)
            continue;
        if (!best || (best->stage == KNOWN && (q->stage == FREE || q->known_ns < best->known_ns)))
            best = q;
    }
    return best;
}

static int add_waiter(struct query *q, struct sa_asker who)
{
    struct waiter *w = q->num_waiters < ASKERS ? malloc(sizeof(*w)) : NULL;
    if (!w)
        return -EBUSY;
    *w = (struct waiter){q->waiters, who};
    q->waiters = w;
    q->num_waiters++;
    return 0;
}

int sa_ask(struct sa *s, const char *device, uint8_t port, uint64_t guid, struct sa_asker who)
{
    int err = 0;
    struct sa_port *p = port_get(s, device, port, &err);
    if (!p)
        return err;
    struct query *q = find_query(s, p, guid);
    if (!q)
        return -EBUSY;
    bool same = q->stage != FREE && q->port == p && q->place.guid == guid;
    if (same && q->stage == KNOWN && sa_now_ns() - q->known_ns < GOOD_NS) {
        s->answer(s->arg, who, &q->place);
        return 0;
    }
    if (!same || q->stage == KNOWN) {
        *q = (struct query){.stage = ASKS_NODE, .port = p, .place = {.guid = guid}};
        err = send_query(s, q);
        if (err) {
            q->stage = FREE;
            return err;
        }
    }
    return add_waiter(q, who);
}

int sa_list(struct sa *s, const char *device, uint8_t port, const struct sa_match *match, sa_records done, void *arg)
{
    int err = 0;
    struct sa_port *p = port_get(s, device, port, &err);
    struct list *l = s->list;
    if (!p)
        return err;
    while (l < s->list + LISTS && l->port)
        l++;
    if (l == s->list + LISTS)
        return -EBUSY;
    struct packet *m = empty_question(p, METHOD_LIST, match->attribute, match->mask);
    memcpy(m->data, match->data, sizeof(match->data));
    *l = (struct list){.attribute = match->attribute, .done = done, .arg = arg};
    err = send_sa_question(s, p, &l->tid);
    if (!err)
        l->port = p;
    return err;
}

/* ---- life ---- */

struct sa *sa_start(sd_event *event, sa_answer answer, void *arg)
{
    struct sa *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    umad_init();
    s->event = event;
    s->answer = answer;
    s->arg = arg;
    s->tid = (uint32_t)sa_now_ns(); /* a late answer to an earlier run must not match */
    return s;
}

void sa_stop(struct sa *s)
{
    if (!s)
        return;
    for (struct query *q = s->query; q < s->query + QUERIES; q++)
        for (struct waiter *w = q->waiters, *next; w; w = next) {
            next = w->next;
            free(w);
        }
    while (s->ports)
        port_close(s->ports);
    free(s);
}
