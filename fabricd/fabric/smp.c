/* SPDX-License-Identifier: BSD-3-Clause */
/* SMPs: see smp.h. The packets' layout is that of the InfiniBand specification, volume 1, 14.2.1. */
#include "fabricd/fabric/smp.h"
#include "fabricd/base/clock.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

#define CLASS_LID   0x01
#define CLASS_DR    0x81
#define METHOD_GET  1
#define METHOD_SET  2
#define METHOD_RESP 0x81
#define TIMEOUT_MS  200
#define TRIES       4
#define CLOSE_MS    20  /* for answers to questions that nobody waits for any more */
#define GRACE_MS    100 /* until a time-out of ours, if the layers below report none */
#define WINDOW_MIN  1u
#define WINDOW_INIT 4u /* opensm's max_wire_smps */
#define WINDOW_MAX  64u
#define STATE_INIT  2 /* of a port whose cable has another end */

/* The LID-routed kind differs in class and in leaving the directed-route fields zero. */
struct packet {
    uint8_t base_version, mgmt_class, class_version, method;
    uint16_t status; /* top bit: the packet is on its way back */
    uint8_t hop_pointer, hop_count;
    uint64_t tid;
    uint16_t attribute, reserved;
    uint32_t modifier;
    uint64_t mkey;
    uint16_t dr_slid, dr_dlid;
    uint8_t reserved2[28];
    uint8_t data[64];
    uint8_t initial_path[64], return_path[64];
} __attribute__((packed));

enum state { WAITING, UNDER_WAY, ANSWERED };

struct question {
    struct smp_path path;
    uint16_t attribute;
    uint32_t modifier;
    uint8_t method, tries;
    enum state state;
    int rc; /* the result of smp_get */
    uint64_t sent_us;
    uint8_t data[64];
};

/*
 * Questions are numbered in order; the low bits of the number are a question's place in the ring, and its transaction
 * id is tid + number. Questions from first to next have been sent, or failed without being sent.
 */
struct smp {
    int fd, agent_dr, agent_lid;
    uint32_t tid;
    uint64_t mkey; /* 0: none */
    void *umad;    /* room for one packet */

    struct question *ring;
    uint32_t size; /* a power of two */
    uint32_t first, next, end;
    unsigned window, answered; /* packets that may be under way; answers since the last growth */
    uint64_t narrowed_us;
    unsigned num_under_way, num_again; /* num_again: sent, timed out, and to be sent again */
    uint32_t under_way[WINDOW_MAX];    /* their numbers */
    unsigned owed;                     /* packets sent, without those that have come back */
    struct smp_path alive;             /* of the last answer; no hops and no LID: this host's port, which is alive */
};

static bool is_up(const umad_port_t *p)
{
    return p && p->state >= STATE_INIT && !strcmp(p->link_layer, "InfiniBand");
}

unsigned smp_active_ports(struct smp_port port[SMP_PORTS_MAX])
{
    char names[UMAD_MAX_DEVICES][UMAD_CA_NAME_LEN];
    unsigned n = 0;
    int devices = umad_init() < 0 ? 0 : umad_get_cas_names(names, UMAD_MAX_DEVICES);
    for (int i = 0; i < devices; i++) {
        umad_ca_t ca;
        if (umad_get_ca(names[i], &ca))
            continue;
        for (int k = 1; k <= ca.numports && n < SMP_PORTS_MAX; k++)
            if (is_up(ca.ports[k])) {
                snprintf(port[n].device, sizeof(port[n].device), "%.*s", UMAD_CA_NAME_LEN, names[i]);
                port[n].guid = be64toh(ca.ports[k]->port_guid);
                port[n].prefix = be64toh(ca.ports[k]->gid_prefix);
                port[n].sm_lid = (uint16_t)ca.ports[k]->sm_lid;
                port[n++].num = k;
            }
        umad_release_ca(&ca);
    }
    return n;
}

void smp_name_port(struct smp_port *p)
{
    struct smp_port up[SMP_PORTS_MAX];
    unsigned n = p->device[0] || !p->guid ? 0 : smp_active_ports(up);
    for (unsigned i = 0; i < n; i++)
        if (up[i].guid == p->guid)
            *p = up[i];
}

/* ---- M_Keys ---- */

static struct {
    pthread_mutex_t lock;
    unsigned n;
    struct smp_key key[SMP_KEYS_MAX];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

void smp_know_keys(const struct smp_key *key, unsigned n)
{
    pthread_mutex_lock(&known.lock);
    known.n = n < SMP_KEYS_MAX ? n : SMP_KEYS_MAX;
    if (n)
        memcpy(known.key, key, known.n * sizeof(*key));
    pthread_mutex_unlock(&known.lock);
}

/* The known key of this port; else that of its subnet, as far as one can be told from another. */
static uint64_t find_mkey(const struct smp_port *up, unsigned n, const struct smp_port *mine)
{
    uint64_t key = 0;
    bool found = false, agree = true;
    for (unsigned k = 0; k < known.n; k++) {
        if (known.key[k].guid == mine->guid)
            return known.key[k].key;
        for (unsigned i = 0; i < n; i++) {
            if (up[i].guid != known.key[k].guid || up[i].prefix != mine->prefix || up[i].sm_lid != mine->sm_lid)
                continue;
            agree = agree && (!found || key == known.key[k].key);
            key = known.key[k].key;
            found = true;
        }
    }
    return agree ? key : 0;
}

static uint64_t mkey_of_port(const char *device, int port)
{
    struct smp_port up[SMP_PORTS_MAX];
    uint64_t key = 0;
    pthread_mutex_lock(&known.lock);
    unsigned n = known.n ? smp_active_ports(up) : 0, i = 0;
    while (i < n && ((device && strcmp(up[i].device, device)) || (port && up[i].num != port)))
        i++;
    if (i < n)
        key = find_mkey(up, n, &up[i]);
    pthread_mutex_unlock(&known.lock);
    return key;
}

struct smp *smp_open(const char *device, int port)
{
    struct smp *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    int rc = umad_init();
    s->fd = rc < 0 ? -ENODEV : umad_open_port((char *)device, port);
    if (s->fd < 0) {
        rc = -s->fd;
        goto free_smp;
    }
    s->agent_dr = umad_register(s->fd, CLASS_DR, 1, 0, NULL);
    s->agent_lid = umad_register(s->fd, CLASS_LID, 1, 0, NULL);
    if (s->agent_dr < 0 || s->agent_lid < 0) {
        rc = EPERM;
        goto close_port;
    }
    s->umad = umad_alloc(1, umad_size() + sizeof(struct packet));
    if (!s->umad) {
        rc = ENOMEM;
        goto close_port;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    s->tid = (uint32_t)now.tv_nsec; /* a late answer to an earlier run must not match */
    s->window = WINDOW_INIT;
    s->mkey = mkey_of_port(device, port);
    return s;

close_port:
    umad_close_port(s->fd);
free_smp:
    free(s);
    errno = rc == EOPNOTSUPP || rc == ENXIO || rc == EINVAL ? ENODEV : rc > 0 ? rc : EIO;
    return NULL;
}

static bool has_entries(const char *path)
{
    DIR *dir = opendir(path);
    bool any = false;
    for (struct dirent *e; dir && !any && (e = readdir(dir));)
        any = *e->d_name != '.';
    if (dir)
        closedir(dir);
    return any;
}

const char *smp_open_error(int rc)
{
    if (rc == -EACCES || rc == -EPERM)
        return "the devices of management datagrams (/dev/infiniband/umad*) may not be used: they are root's";
    if (rc == -ETIMEDOUT)
        return "this host's own port does not answer management datagrams: if the subnet has an M_Key, it must be in "
               "opensm's configuration here";
    if (!has_entries("/sys/class/infiniband"))
        return "this host has no InfiniBand adapter, or its driver is not loaded";
    if (!has_entries("/sys/class/infiniband_mad"))
        return "this host has no device for management datagrams: is ib_umad loaded? modprobe ib_umad";
    if (rc == -ENODEV)
        return "no InfiniBand port of this host is up: its cable is out, or the other end is down (ibstat tells)";
    return strerror(-rc);
}

/* A packet, or the time-out of one, for which the layers below owe nothing more. */
static int receive(struct smp *s, int *length, int timeout_ms)
{
    *length = sizeof(struct packet);
    int rc = umad_recv(s->fd, s->umad, length, timeout_ms);
    s->owed -= rc >= 0 && s->owed;
    return rc;
}

/*
 * A look may end with questions under way. Their answers are taken for a moment: ibsim's library fails in a process
 * that gets an answer for a port that is closed.
 */
static void take_late_answers(struct smp *s)
{
    uint64_t began = clock_us();
    int length;
    while (s->owed && clock_us() - began < CLOSE_MS * 1000)
        if (receive(s, &length, CLOSE_MS) < 0)
            return;
}

void smp_close(struct smp *s)
{
    if (!s)
        return;
    take_late_answers(s);
    umad_unregister(s->fd, s->agent_dr);
    umad_unregister(s->fd, s->agent_lid);
    umad_close_port(s->fd);
    umad_free(s->umad);
    free(s->ring);
    free(s);
}

static void build(struct packet *m, const struct question *q, uint32_t tid, uint64_t mkey)
{
    const struct smp_path *path = &q->path;
    memset(m, 0, sizeof(*m));
    m->base_version = 1;
    m->mgmt_class = path->lid ? CLASS_LID : CLASS_DR;
    m->class_version = 1;
    m->method = q->method;
    m->tid = htobe64(tid);
    m->attribute = htobe16(q->attribute);
    m->modifier = htobe32(q->modifier);
    m->mkey = htobe64(mkey);
    if (!path->lid) {
        m->hop_count = path->hops;
        m->dr_slid = m->dr_dlid = 0xffff; /* directed all the way */
        memcpy(m->initial_path + 1, path->port + 1, path->hops);
    }
    if (q->method == METHOD_SET)
        memcpy(m->data, q->data, sizeof(m->data));
}

/* ---- questions in order ---- */

static struct question *question(struct smp *s, uint32_t number)
{
    return &s->ring[number & (s->size - 1)];
}

static void grow_ring(struct smp *s)
{
    uint32_t size = s->size ? 2 * s->size : 64;
    struct question *ring = calloc(size, sizeof(*ring));
    if (!ring)
        abort();
    for (uint32_t i = s->first; i != s->end; i++)
        ring[i & (size - 1)] = *question(s, i);
    free(s->ring);
    s->ring = ring;
    s->size = size;
}

static void queue_smp_question(struct smp *s, uint8_t method, const struct smp_path *path, uint16_t attribute,
                               uint32_t modifier, const uint8_t *data)
{
    if (s->end - s->first == s->size)
        grow_ring(s);
    struct question *q = question(s, s->end++);
    *q = (struct question){.path = *path, .attribute = attribute, .modifier = modifier, .method = method};
    if (method == METHOD_SET)
        memcpy(q->data, data, sizeof(q->data));
}

static bool same_path(const struct smp_path *a, const struct smp_path *b)
{
    return a->lid == b->lid && a->hops == b->hops && !memcmp(a->port + 1, b->port + 1, a->hops);
}

static bool is_question(const struct question *q, uint8_t method, const struct smp_path *path, uint16_t attribute,
                        uint32_t modifier)
{
    return q->method == method && q->attribute == attribute && q->modifier == modifier && same_path(&q->path, path);
}

static void no_longer_under_way(struct smp *s, uint32_t number)
{
    for (unsigned i = 0; i < s->num_under_way; i++)
        if (s->under_way[i] == number) {
            s->under_way[i] = s->under_way[--s->num_under_way];
            return;
        }
}

/* The question has an answer, or needs none any more. */
static void settle_question(struct smp *s, uint32_t number)
{
    struct question *q = question(s, number);
    if (q->state == UNDER_WAY)
        no_longer_under_way(s, number);
    else if (q->state == WAITING && q->tries)
        s->num_again--;
    q->state = ANSWERED;
}

static void drop_first(struct smp *s)
{
    settle_question(s, s->first); /* a later answer is a stray */
    if (s->next == s->first)
        s->next++;
    s->first++;
}

static void answered(struct smp *s, uint32_t number, int rc)
{
    settle_question(s, number);
    question(s, number)->rc = rc;
}

/* ---- the window ---- */

/* Halves the window, once for all packets lost together: only later packets count as a new loss. */
static void narrow(struct smp *s, const struct question *lost)
{
    if (lost->sent_us < s->narrowed_us)
        return;
    s->narrowed_us = clock_us();
    s->answered = 0;
    s->window = s->window / 2 > WINDOW_MIN ? s->window / 2 : WINDOW_MIN;
}

/* One packet more for each window of answers. */
static void widen(struct smp *s)
{
    if (++s->answered < s->window)
        return;
    s->answered = 0;
    s->window += s->window < WINDOW_MAX;
}

/* ---- on the wire ---- */

static void send_smp(struct smp *s, uint32_t number)
{
    struct question *q = question(s, number);
    memset(s->umad, 0, umad_size());
    build(umad_get_mad(s->umad), q, s->tid + number, s->mkey);
    umad_set_addr(s->umad, q->path.lid ? q->path.lid : 0xffff, 0, 0, 0);
    int agent = q->path.lid ? s->agent_lid : s->agent_dr;
    int rc = umad_send(s->fd, agent, s->umad, sizeof(struct packet), TIMEOUT_MS, 0);
    if (rc < 0) {
        answered(s, number, rc == -EINVAL ? rc : -EIO);
        return;
    }
    s->owed++;
    s->num_again -= q->tries > 0;
    s->under_way[s->num_under_way++] = number;
    q->state = UNDER_WAY;
    q->tries++;
    q->sent_us = clock_us();
}

/* Timed-out questions first: they are the oldest. */
static void fill_window(struct smp *s)
{
    for (uint32_t i = s->first; s->num_again && s->num_under_way < s->window; i++)
        if (question(s, i)->state == WAITING)
            send_smp(s, i);
    for (; s->next != s->end && s->num_under_way < s->window; s->next++)
        if (question(s, s->next)->state == WAITING)
            send_smp(s, s->next);
}

/*
 * After the last try. If the node is absent, its other questions would each take as long to find out; if the node has
 * just answered another question, only this packet was unlucky.
 */
static void give_up(struct smp *s, uint32_t number)
{
    struct smp_path path = question(s, number)->path;
    answered(s, number, -ETIMEDOUT);
    for (uint32_t i = s->first; i != s->end && !same_path(&path, &s->alive); i++)
        if (question(s, i)->state != ANSWERED && same_path(&question(s, i)->path, &path))
            answered(s, i, -ETIMEDOUT);
}

static void timed_out(struct smp *s, uint32_t number)
{
    struct question *q = question(s, number);
    narrow(s, q);
    if (q->tries == TRIES) {
        give_up(s, number);
        return;
    }
    no_longer_under_way(s, number);
    q->state = WAITING;
    s->num_again++;
}

/* Where the time-out of a packet is not told, and where it gets lost. */
static void look_at_deadlines(struct smp *s)
{
    uint64_t now_us = clock_us();
    for (unsigned i = 0; i < s->num_under_way;) {
        uint32_t number = s->under_way[i];
        if (now_us - question(s, number)->sent_us >= (TIMEOUT_MS + GRACE_MS) * 1000)
            timed_out(s, number); /* another question takes its place in the list */
        else
            i++;
    }
}

/* A packet has arrived: strays are packets of other runs, second answers, and answers without a reader. */
static void take_packet(struct smp *s, int length)
{
    const struct packet *m = umad_get_mad(s->umad);
    uint32_t number = (uint32_t)be64toh(m->tid) - s->tid;
    struct question *q = question(s, number);
    if (number - s->first >= s->next - s->first || q->state != UNDER_WAY || be16toh(m->attribute) != q->attribute)
        return;
    if (umad_status(s->umad)) {
        timed_out(s, number);
        return;
    }
    if (length < (int)sizeof(*m) || m->method != METHOD_RESP)
        return;
    memcpy(q->data, m->data, sizeof(q->data));
    answered(s, number, be16toh(m->status) & 0x7fff);
    s->alive = q->path;
    widen(s);
}

/* Until the first question has its answer. The kernel (or its replacement) reports a time-out by status. */
static int wait_for_first(struct smp *s)
{
    struct question *q = question(s, s->first);
    for (;;) {
        if (q->state == ANSWERED)
            return 0;
        int length, rc = receive(s, &length, 0); /* of several answers most are there already */
        bool waits = rc == -EWOULDBLOCK;
        if (waits) { /* all have been taken: as many new questions go out together */
            fill_window(s);
            if (q->state == ANSWERED) /* by an error */
                return 0;
            rc = receive(s, &length, TIMEOUT_MS + GRACE_MS);
        }
        if (rc >= 0)
            take_packet(s, length);
        else if (rc != -EWOULDBLOCK && rc != -ETIMEDOUT)
            return rc;
        if (waits)
            look_at_deadlines(s);
    }
}

/* The question at the front, or -1 if none like this one was asked ahead. */
static int find_ahead(struct smp *s, uint8_t method, const struct smp_path *path, uint16_t attribute, uint32_t modifier)
{
    uint32_t i = s->first;
    while (i != s->end && !is_question(question(s, i), method, path, attribute, modifier))
        i++;
    bool found = i != s->end;
    while (s->first != i)
        drop_first(s);
    return found ? 0 : -1;
}

static int read_answer(struct smp *s, uint8_t method, const struct smp_path *path, uint16_t attribute,
                       uint32_t modifier, uint8_t data[64])
{
    if (find_ahead(s, method, path, attribute, modifier))
        queue_smp_question(s, method, path, attribute, modifier, data);
    int rc = wait_for_first(s);
    const struct question *q = question(s, s->first);
    if (!rc)
        rc = q->rc;
    if (rc >= 0)
        memcpy(data, q->data, sizeof(q->data));
    drop_first(s);
    return rc;
}

void smp_ahead(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier,
               const uint8_t data[64])
{
    queue_smp_question(s, data ? METHOD_SET : METHOD_GET, path, attribute, modifier, data);
}

int smp_get(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64])
{
    return read_answer(s, METHOD_GET, path, attribute, modifier, data);
}

int smp_set(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64])
{
    return read_answer(s, METHOD_SET, path, attribute, modifier, data);
}
