/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The far port is found by directed-route packets, which need no routing, and asked at the LID of its node. Layouts are
 * those of the InfiniBand specification, volume 1, 16.1.3 (PortCounters, PortCountersExtended) and 14.2.5.
 */
#include "fabricd/fabric/counters.h"
#include "fabricd/base/clock.h"
#include "fabricd/fabric/smp.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>

#define CLASS_PERF    0x04
#define PERF_QKEY     0x80010000u
#define METHOD_GET    1
#define METHOD_RESP   0x81
#define ATTR_INFO     0x01
#define ATTR_COUNTERS 0x12
#define ATTR_EXTENDED 0x1d
#define CAP_WAIT      0x1000
#define CAP2_ERRORS   2 /* PortCountersExtended has errors of 64 bits */
#define TIMEOUT_MS    200
#define TRIES         2
#define DATA          192
#define REOPEN_US     5000000u
#define LANES_ASKED   4 /* a cable with fewer lanes than both ends is no fault from so many lanes on */
#define SYSFS         "/sys/class/infiniband"

struct packet {
    uint8_t base_version, mgmt_class, class_version, method;
    uint16_t status, class_specific;
    uint64_t tid;
    uint16_t attribute, reserved;
    uint32_t modifier;
    uint8_t reserved2[40];
    uint8_t data[DATA];
} __attribute__((packed));

/* A port to ask. */
struct agent {
    uint16_t lid;
    uint8_t port;
    bool asked; /* the members below are known */
    bool wait, errors64;
    bool answers; /* answered once: counters of sysfs, which are shorter, are not mixed with its own */
};

struct counters {
    char device[FD_DEV_MAX];
    unsigned port;
    int fd, agent; /* fd -1: not open */
    uint32_t tid;
    void *umad;
    uint64_t opened_us;
    struct agent end[HEALTH_ENDS];
    uint64_t far_id; /* 0: the far port is not known */
    uint8_t width_can;
    char far_name[96];
};

/* Where a counter is: in PortCounters, as a bit offset and so many bits; in PortCountersExtended, as a byte; in sysfs.
 */
static const struct {
    uint16_t bit;
    uint8_t bits, extended;
    const char *sysfs;
} places[HEALTH_COUNTERS] = {
    [HEALTH_SYMBOL] = {32, 16, 72, "symbol_error"},
    [HEALTH_RECOVERY] = {48, 8, 80, "link_error_recovery"},
    [HEALTH_DOWNED] = {56, 8, 88, "link_downed"},
    [HEALTH_RCV] = {64, 16, 96, "port_rcv_errors"},
    [HEALTH_REMOTE] = {80, 16, 104, "port_rcv_remote_physical_errors"},
    [HEALTH_DISCARDS] = {112, 16, 120, "port_xmit_discards"},
    [HEALTH_INTEGRITY] = {152, 4, 144, "local_link_integrity_errors"},
    [HEALTH_OVERRUN] = {156, 4, 152, "excessive_buffer_overrun_errors"},
    [HEALTH_VL15] = {176, 16, 160, "VL15_dropped"},
    [HEALTH_WAIT] = {320, 32, 168, "port_xmit_wait"},
    [HEALTH_PACKETS] = {288, 32, 32, "port_rcv_packets"},
};

/* ---- datagrams ---- */

static void close_port(struct counters *c)
{
    if (c->fd >= 0) {
        umad_unregister(c->fd, c->agent);
        umad_close_port(c->fd);
        umad_free(c->umad);
    }
    c->fd = -1;
    c->umad = NULL;
}

static bool open_port(struct counters *c)
{
    uint64_t now_us = clock_us();
    if (c->fd >= 0)
        return true;
    if (c->opened_us && now_us - c->opened_us < REOPEN_US)
        return false;
    c->opened_us = now_us;
    c->fd = umad_init() < 0 ? -1 : umad_open_port(c->device, (int)c->port);
    if (c->fd < 0)
        return false;
    c->agent = umad_register(c->fd, CLASS_PERF, 1, 0, NULL);
    c->umad = c->agent < 0 ? NULL : umad_alloc(1, umad_size() + sizeof(struct packet)); /* the size is known now */
    if (c->umad)
        return true;
    umad_close_port(c->fd);
    c->fd = -1;
    return false;
}

/* The answer to this question; strays answer earlier questions. */
static int receive_counters(struct counters *c, uint16_t attribute, uint8_t data[DATA])
{
    const struct packet *m = umad_get_mad(c->umad);
    uint64_t until_us = clock_us() + 2 * TIMEOUT_MS * 1000;
    for (;;) {
        int length = sizeof(*m), rc = umad_recv(c->fd, c->umad, &length, 2 * TIMEOUT_MS);
        if (rc < 0)
            return rc == -EWOULDBLOCK ? -ETIMEDOUT : rc;
        if ((uint32_t)be64toh(m->tid) == c->tid) {
            if (umad_status(c->umad))
                return -ETIMEDOUT;
            if (length < (int)sizeof(*m) || m->method != METHOD_RESP || be16toh(m->attribute) != attribute)
                return -EPROTO;
            memcpy(data, m->data, DATA);
            return be16toh(m->status);
        }
        if (clock_us() > until_us)
            return -ETIMEDOUT;
    }
}

/* 0; a negative errno; or the positive status of the answer. */
static int ask_counters(struct counters *c, const struct agent *a, uint16_t attribute, uint8_t data[DATA])
{
    int rc = -ETIMEDOUT;
    for (unsigned i = 0; i < TRIES && rc == -ETIMEDOUT; i++) {
        memset(c->umad, 0, umad_size() + sizeof(struct packet));
        struct packet *m = umad_get_mad(c->umad);
        m->base_version = m->class_version = 1;
        m->mgmt_class = CLASS_PERF;
        m->method = METHOD_GET;
        m->tid = htobe64(++c->tid);
        m->attribute = htobe16(attribute);
        m->data[1] = a->port;
        umad_set_addr(c->umad, a->lid, 1, 0, (int)PERF_QKEY);
        umad_set_pkey(c->umad, 0);
        rc = umad_send(c->fd, c->agent, c->umad, sizeof(struct packet), TIMEOUT_MS, 0);
        rc = rc < 0 ? -EIO : receive_counters(c, attribute, data);
    }
    return rc;
}

/* ---- ports ---- */

static uint64_t bits_at(const uint8_t *d, unsigned bit, unsigned bits)
{
    uint64_t v = 0;
    for (unsigned i = bit; i < bit + bits; i++)
        v = v << 1 | (d[i / 8] >> (7 - i % 8) & 1);
    return v;
}

static bool ask_what_it_has(struct counters *c, struct agent *a)
{
    uint8_t d[DATA];
    if (a->asked || ask_counters(c, a, ATTR_INFO, d))
        return a->asked;
    a->asked = true;
    a->wait = bits_at(d, 16, 16) & CAP_WAIT;
    a->errors64 = bits_at(d, 32, 27) & CAP2_ERRORS;
    return true;
}

static bool read_port(struct counters *c, struct agent *a, struct health_port *out)
{
    uint8_t d[DATA];
    if (!a->lid || !ask_what_it_has(c, a) || ask_counters(c, a, a->errors64 ? ATTR_EXTENDED : ATTR_COUNTERS, d)) {
        a->asked = false;
        return false;
    }
    for (unsigned i = 0; i < HEALTH_COUNTERS; i++) {
        out->bits[i] = a->errors64 ? 64 : places[i].bits;
        if (i == HEALTH_WAIT && !a->wait)
            out->bits[i] = 0;
        out->value[i] =
            a->errors64 ? bits_at(d, places[i].extended * 8u, 64) : bits_at(d, places[i].bit, places[i].bits);
    }
    out->known = a->answers = true;
    return true;
}

static bool read_sysfs(const struct counters *c, const char *name, char *out, size_t size)
{
    char path[256];
    struct text t = {0};
    snprintf(path, sizeof(path), SYSFS "/%s/ports/%u/%s", c->device, c->port, name);
    bool ok = !text_read_file(&t, path, 4096);
    snprintf(out, size, "%s", text_str(&t));
    text_free(&t);
    return ok;
}

static void read_sysfs_counters(const struct counters *c, struct health_port *out)
{
    char name[80], s[64];
    for (unsigned i = 0; i < HEALTH_COUNTERS; i++) {
        snprintf(name, sizeof(name), "counters/%s", places[i].sysfs);
        bool there = read_sysfs(c, name, s, sizeof(s));
        out->value[i] = there ? strtoull(s, NULL, 10) : 0;
        out->bits[i] = there ? places[i].bits : 0;
        out->known |= there;
    }
}

static uint8_t most_lanes(uint8_t code)
{
    static const uint8_t lanes[] = {1, 4, 8, 12, 2};
    uint8_t most = 0;
    for (unsigned i = 0; i < sizeof(lanes); i++)
        if (code >> i & 1 && lanes[i] > most)
            most = lanes[i];
    return most;
}

/* Finds the other end, and the possible width of the link. */
static bool find_far(struct counters *c, struct smp *s)
{
    struct smp_path far = {.hops = 1, .port = {0, (uint8_t)c->port}}, here = {.hops = 0};
    uint8_t node[64], desc[64], base[64], port[64], own[64];
    struct agent *a = &c->end[HEALTH_FAR];
    if (smp_get(s, &far, SMP_NODE_INFO, 0, node) || smp_get(s, &far, SMP_NODE_DESC, 0, desc) ||
        smp_get(s, &far, SMP_PORT_INFO, node[36], port) || smp_get(s, &here, SMP_PORT_INFO, c->port, own))
        return false;
    bool is_switch = node[2] == 2;
    if (is_switch && smp_get(s, &far, SMP_PORT_INFO, 0, base))
        return false;
    const uint8_t *with_lid = is_switch ? base : port;
    *a = (struct agent){.lid = (uint16_t)(with_lid[16] << 8 | with_lid[17]), .port = node[36]};
    c->far_id = bits_at(node, 96, 64) * 257 + a->port;
    uint8_t can = most_lanes(port[30] & own[30]);
    c->width_can = can > LANES_ASKED ? LANES_ASKED : can;
    struct text name = {0};
    text_put_visible(&name, (const char *)desc, strnlen((const char *)desc, sizeof(desc)));
    snprintf(c->far_name, sizeof(c->far_name), "%.80s port %u", text_str(&name), a->port);
    text_free(&name);
    return a->lid;
}

static bool know_far(struct counters *c)
{
    if (c->far_id)
        return true;
    struct smp *s = smp_open(c->device, (int)c->port);
    bool found = s && find_far(c, s);
    if (!found)
        c->far_id = 0;
    smp_close(s);
    return found;
}

/* "20 Gb/sec (4X DDR)" */
static void read_rate(const struct counters *c, struct health_look *look)
{
    char s[64];
    unsigned lanes = 0;
    double gbps = read_sysfs(c, "rate", s, sizeof(s)) ? strtod(s, NULL) : 0;
    const char *at = strchr(s, '(');
    if (!at || sscanf(at, "(%uX", &lanes) != 1 || !lanes || lanes > 12)
        return;
    look->width = (uint8_t)lanes;
    look->lane_mbps = (uint32_t)(gbps * 1000 / lanes + 0.5);
}

void counters_read(struct counters *c, struct health_look *look)
{
    char s[64];
    memset(look, 0, sizeof(*look));
    look->up = read_sysfs(c, "state", s, sizeof(s)) && strtoul(s, NULL, 0) == 4;
    uint16_t lid = read_sysfs(c, "lid", s, sizeof(s)) ? (uint16_t)strtoul(s, NULL, 0) : 0;
    if (!look->up)
        c->far_id = 0; /* the cable may be moved */
    else
        read_rate(c, look);
    struct agent *here = &c->end[HEALTH_HERE];
    here->lid = lid;
    here->port = (uint8_t)c->port;
    bool can_ask = look->up && open_port(c);
    if ((!can_ask || !read_port(c, here, &look->port[HEALTH_HERE])) && !here->answers)
        read_sysfs_counters(c, &look->port[HEALTH_HERE]);
    look->port[HEALTH_HERE].id = here->answers ? 2 : 1;
    if (!can_ask || !know_far(c))
        return;
    look->width_can = c->width_can;
    look->port[HEALTH_FAR].id = c->far_id;
    if (!read_port(c, &c->end[HEALTH_FAR], &look->port[HEALTH_FAR]))
        c->far_id = 0; /* its LID may have changed by now */
}

const char *counters_far_name(const struct counters *c)
{
    return c->far_name;
}

struct counters *counters_open(const char *device, unsigned port)
{
    struct counters *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    snprintf(c->device, sizeof(c->device), "%s", device);
    c->port = port;
    c->fd = -1;
    c->tid = (uint32_t)clock_us(); /* a late answer to an earlier run must not match */
    return c;
}

void counters_close(struct counters *c)
{
    if (!c)
        return;
    close_port(c);
    free(c);
}
