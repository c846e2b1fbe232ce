/* SPDX-License-Identifier: BSD-3-Clause */
/* Local ports from /sys/class/infiniband: see rails.h. */
#include "fabricd/fabric/rails.h"

#include "fabricd/base/clock.h"
#include "fabricd/fabric/pci.h"
#include "fabricd/policy/pace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSFS "/sys/class/infiniband"

static bool read_port_value(const char *device, unsigned port, const char *name, char *out, size_t size)
{
    char path[256];
    snprintf(path, sizeof(path), SYSFS "/%s/ports/%u/%s", device, port, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, out, size - 1);
    close(fd);
    if (n < 0)
        return false;
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    return true;
}

static unsigned read_port_number(const char *device, unsigned port, const char *name)
{
    char s[64];
    return read_port_value(device, port, name, s, sizeof(s)) ? (unsigned)strtoul(s, NULL, 0) : 0;
}

/* False: there is no such port. */
static bool name_rail(const char *device, unsigned port, struct fd_rail *r)
{
    char s[256];
    snprintf(s, sizeof(s), SYSFS "/%s/ports/%u/state", device, port);
    if (access(s, F_OK))
        return false;
    memset(r, 0, sizeof(*r));
    memcpy(r->device, device, strnlen(device, sizeof(r->device) - 1));
    r->port = (uint8_t)port;
    r->infiniband = !read_port_value(device, port, "link_layer", s, sizeof(s)) || !strcmp(s, "InfiniBand");
    return true;
}

/* "20 Gb/sec (4X DDR)": up to QDR 8 bits are sent as 10, later 64 as 66, included only in the rate of FDR. */
static unsigned data_rate(const char *rate, unsigned rate_mbps)
{
    const char *lanes = strchr(rate, '(');
    if (!lanes)
        return 0;
    if (strstr(lanes, "X)") || strstr(lanes, " SDR") || strstr(lanes, " DDR") || strstr(lanes, " QDR"))
        return rate_mbps / 10 * 8;
    if (strstr(lanes, " FDR)"))
        return rate_mbps / 33 * 32;
    return rate_mbps;
}

/* The rest of a rail that has a name. False: the port is gone. */
static bool read_rail(struct fd_rail *r, unsigned *data_mbps)
{
    char s[64];
    if (!read_port_value(r->device, r->port, "state", s, sizeof(s)))
        return false;
    r->state = (uint8_t)strtoul(s, NULL, 0);
    r->phys_state = (uint8_t)read_port_number(r->device, r->port, "phys_state");
    r->lid = (uint16_t)read_port_number(r->device, r->port, "lid");
    r->sm_lid = (uint16_t)read_port_number(r->device, r->port, "sm_lid");
    r->lmc = (uint8_t)(read_port_number(r->device, r->port, "lid_mask_count") & 7);
    if (!read_port_value(r->device, r->port, "rate", s, sizeof(s)))
        s[0] = 0;
    r->rate_mbps = (uint32_t)(strtod(s, NULL) * 1000 + 0.5); /* "2.5 Gb/sec (1X)" */
    *data_mbps = r->infiniband ? data_rate(s, r->rate_mbps) : r->rate_mbps;
    r->usable = r->state == 4 && (!r->infiniband || r->lid);
    return true;
}

static int by_device_and_port(const void *a, const void *b)
{
    const struct fd_rail *x = a, *y = b;
    int c = strcmp(x->device, y->device);
    return c ? c : (int)x->port - (int)y->port;
}

void rails_list(struct rails *r)
{
    *r = (struct rails){0};
    DIR *d = opendir(SYSFS);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.' || strlen(e->d_name) >= FD_DEV_MAX || strchr(e->d_name, '/'))
            continue;
        for (unsigned port = 1; port < 255 && r->n < FD_RAILS_MAX && name_rail(e->d_name, port, &r->rail[r->n]); port++)
            r->n++;
    }
    if (d)
        closedir(d);
    qsort(r->rail, r->n, sizeof(r->rail[0]), by_device_and_port);
}

void rails_read(struct rails *r)
{
    unsigned there = 0;
    rails_list(r);
    for (unsigned i = 0; i < r->n; i++) {
        r->rail[there] = r->rail[i];
        if (!read_rail(&r->rail[there], &r->data_mbps[there]))
            continue;
        r->bus_mbytes[there] = pci_of_device(r->rail[there].device);
        there++;
    }
    r->n = there;
}

bool rails_equal(const struct rails *a, const struct rails *b)
{
    if (a->n != b->n || memcmp(a->rail, b->rail, a->n * sizeof(a->rail[0])))
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if (a->judgement[i].state != b->judgement[i].state || a->judgement[i].weight != b->judgement[i].weight)
            return false;
    return true;
}

const char *rails_state_name(unsigned state)
{
    static const char *const names[] = {"unknown", "Down", "Initialize", "Armed", "Active", "ActiveDefer"};
    return names[state < sizeof(names) / sizeof(names[0]) ? state : 0];
}

const char *rails_health_name(unsigned state)
{
    static const char *const names[] = {"healthy", "degraded", "bad", "drained"};
    return names[state < sizeof(names) / sizeof(names[0]) ? state : 0];
}

static void put_judgement(struct text *out, const struct rail_judgement *j)
{
    text_printf(out,
                ", health: %s, weight: %u.%02u, flaps: %u, since_s: %" PRIu64 ", why: ", rails_health_name(j->state),
                j->weight / FD_HEALTHY, j->weight % FD_HEALTHY * 100 / FD_HEALTHY, j->flaps,
                (clock_us() - j->since_us) / 1000000);
    text_yaml_string(out, j->why);
}

void rails_text(struct text *out, const struct rails *r, const char *indent)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct fd_rail *x = &r->rail[i];
        text_printf(out, "%s- {device: ", indent);
        text_yaml_string(out, x->device);
        text_printf(out, ", port: %u, state: %s, lid: %u, lmc: %u, sm_lid: %u, rate_mbps: %u, link: %s, usable: %s",
                    x->port, rails_state_name(x->state), x->lid, x->lmc, x->sm_lid, x->rate_mbps,
                    x->infiniband ? "InfiniBand" : "other", x->usable ? "true" : "false");
        if (r->bus_mbytes[i])
            text_printf(out, ", bus_mbytes_per_s: %u", r->bus_mbytes[i]);
        if (r->judgement[i].known)
            put_judgement(out, &r->judgement[i]);
        text_printf(out, "}\n");
    }
}

static const struct fd_rail *find_known_rail(const struct rails *r, const struct fd_rail *key)
{
    for (unsigned i = 0; i < r->n; i++)
        if (!by_device_and_port(&r->rail[i], key))
            return &r->rail[i];
    return NULL;
}

void rails_changes_text(struct text *out, const struct rails *a, const struct rails *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        const struct fd_rail *new = &b->rail[i], *old = find_known_rail(a, new);
        if (!old || memcmp(old, new, sizeof(*old)))
            text_printf(out, "rail %s port %u: %s, lid %u, lmc %u, %u Mb/s\n", new->device, new->port,
                        rails_state_name(new->state), new->lid, new->lmc, new->rate_mbps);
    }
    for (unsigned i = 0; i < a->n; i++)
        if (!find_known_rail(b, &a->rail[i]))
            text_printf(out, "rail %s port %u: gone\n", a->rail[i].device, a->rail[i].port);
}

static unsigned ports_of(const struct rails *r, const char *device)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->n; i++)
        n += r->rail[i].usable && !strcmp(r->rail[i].device, device);
    return n ? n : 1;
}

uint32_t rails_bus_room(const struct rails *r, unsigned i)
{
    if (!r->rail[i].infiniband || !r->bus_mbytes[i] || r->bus_mbytes[i] >= r->data_mbps[i] / 8)
        return 0;
    return (uint32_t)(r->bus_mbytes[i] * 10.0 * PACE_PERCENT / ports_of(r, r->rail[i].device));
}
