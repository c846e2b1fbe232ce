/* SPDX-License-Identifier: BSD-3-Clause */
/* SMPs: see smp.h. The packets' layout is that of the InfiniBand specification, volume 1, 14.2.1. */
#include "fabricd/fabric/smp.h"

#include <endian.h>
#include <errno.h>
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
#define RETRIES     3
#define STATE_INIT  2 /* of a port whose cable has somebody at its other end */

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

struct smp {
    int fd, agent_dr, agent_lid;
    uint32_t tid;
    void *umad; /* room for one packet */
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
                port[n++].num = k;
            }
        umad_release_ca(&ca);
    }
    return n;
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
    return s;

close_port:
    umad_close_port(s->fd);
free_smp:
    free(s);
    errno = rc > 0 ? rc : EIO;
    return NULL;
}

void smp_close(struct smp *s)
{
    if (!s)
        return;
    umad_unregister(s->fd, s->agent_dr);
    umad_unregister(s->fd, s->agent_lid);
    umad_close_port(s->fd);
    umad_free(s->umad);
    free(s);
}

static void build(struct packet *m, uint8_t method, uint32_t tid, const struct smp_path *path, uint16_t attribute,
                  uint32_t modifier, const uint8_t *data)
{
    memset(m, 0, sizeof(*m));
    m->base_version = 1;
    m->mgmt_class = path->lid ? CLASS_LID : CLASS_DR;
    m->class_version = 1;
    m->method = method;
    m->tid = htobe64(tid);
    m->attribute = htobe16(attribute);
    m->modifier = htobe32(modifier);
    if (!path->lid) {
        m->hop_count = path->hops;
        m->dr_slid = m->dr_dlid = 0xffff; /* directed all the way */
        memcpy(m->initial_path + 1, path->port + 1, path->hops);
    }
    if (data)
        memcpy(m->data, data, 64);
}

/* Wait for the answer to tid, throwing away strays. The kernel (or who stands for it) tells a time-out by status. */
static int receive(struct smp *s, uint32_t tid, uint16_t attribute, uint8_t data[64])
{
    for (int strays = 0; strays < 1000; strays++) {
        int length = sizeof(struct packet);
        int rc = umad_recv(s->fd, s->umad, &length, TIMEOUT_MS * (RETRIES + 2));
        if (rc < 0)
            return rc == -EWOULDBLOCK || rc == -ETIMEDOUT ? -ETIMEDOUT : rc;
        const struct packet *m = umad_get_mad(s->umad);
        if ((uint32_t)be64toh(m->tid) != tid)
            continue;
        if (umad_status(s->umad))
            return -ETIMEDOUT;
        if (length < (int)sizeof(*m) || m->method != METHOD_RESP || be16toh(m->attribute) != attribute)
            continue;
        memcpy(data, m->data, 64);
        return be16toh(m->status) & 0x7fff;
    }
    return -EPROTO;
}

static int ask(struct smp *s, uint8_t method, const struct smp_path *path, uint16_t attribute, uint32_t modifier,
               uint8_t data[64])
{
    uint32_t tid = ++s->tid;
    memset(s->umad, 0, umad_size());
    build(umad_get_mad(s->umad), method, tid, path, attribute, modifier, method == METHOD_SET ? data : NULL);
    umad_set_addr(s->umad, path->lid ? path->lid : 0xffff, 0, 0, 0);
    int rc =
        umad_send(s->fd, path->lid ? s->agent_lid : s->agent_dr, s->umad, sizeof(struct packet), TIMEOUT_MS, RETRIES);
    if (rc < 0)
        return rc == -EIO || rc == -EINVAL ? rc : -EIO;
    return receive(s, tid, attribute, data);
}

int smp_get(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64])
{
    return ask(s, METHOD_GET, path, attribute, modifier, data);
}

int smp_set(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64])
{
    return ask(s, METHOD_SET, path, attribute, modifier, data);
}
