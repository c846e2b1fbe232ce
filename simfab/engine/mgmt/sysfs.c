/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's sysfs and /dev/infiniband for its HCAs, made afresh for every question. libibumad, libibverbs, scripts and
 * monitors read these files as on a real host. The tree is a table of patterns; a pattern's wildcards stand for names
 * on the host (devices, ports, indexes).
 */
#include "simfab/engine/mgmt/sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/pcie.h"
#include "simfab/engine/mgmt/pma.h"
#include "simfab/proto.h"

/* Values of a path's wildcards. */
struct place {
    const struct host *host;
    const struct node *ca;
    const struct port *port;
    unsigned index;
};

struct sysfs_text {
    char *at;
    size_t len, cap;
};

__attribute__((format(printf, 2, 3))) static void say(struct sysfs_text *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->at + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->len = t->len + (size_t)n < t->cap ? t->len + (size_t)n : t->cap;
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static void say_guid(struct sysfs_text *t, uint64_t g)
{
    say(t, "%04x:%04x:%04x:%04x", (unsigned)(g >> 48), (unsigned)(g >> 32 & 0xffff), (unsigned)(g >> 16 & 0xffff),
        (unsigned)(g & 0xffff));
}

static void node_type(struct sysfs_text *t, const struct place *p)
{
    say(t, "1: CA\n");
}

static void node_desc(struct sysfs_text *t, const struct place *p)
{
    say(t, "%s\n", p->ca->said_desc);
}

static void node_guid(struct sysfs_text *t, const struct place *p)
{
    say_guid(t, p->ca->node_guid);
    say(t, "\n");
}

static void sys_image_guid(struct sysfs_text *t, const struct place *p)
{
    say_guid(t, p->ca->sys_guid);
    say(t, "\n");
}

static void fw_ver(struct sysfs_text *t, const struct place *p)
{
    say(t, "%s\n", p->ca->fabric->model->fw_ver);
}

static void hw_rev(struct sysfs_text *t, const struct place *p)
{
    say(t, "%x\n", p->ca->revision);
}

static void hca_type(struct sysfs_text *t, const struct place *p)
{
    say(t, "MT%u\n", p->ca->device);
}

static void board_id(struct sysfs_text *t, const struct place *p)
{
    say(t, "simfab\n");
}

static void vendor(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x15b3\n"); /* PCI vendor */
}

static void device(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x%04x\n", p->ca->device & 0xffff);
}

static void numa_node(struct sysfs_text *t, const struct place *p)
{
    say(t, "-1\n");
}

static struct pcie_link pcie_link(const struct place *p)
{
    const struct model *m = p->ca->fabric->model;

    return pcie_link_of(m->dma_write_bps ? m->dma_write_bps : m->bus_bps);
}

static void link_speed(struct sysfs_text *t, const struct place *p)
{
    say(t, "%s\n", pcie_link(p).speed);
}

static void link_width(struct sysfs_text *t, const struct place *p)
{
    say(t, "%u\n", pcie_link(p).width);
}

static void lid(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x%x\n", p->port->lid);
}

static void lmc(struct sysfs_text *t, const struct place *p)
{
    say(t, "%u\n", p->port->lmc);
}

static void sm_lid(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x%x\n", p->port->sm_lid);
}

static void sm_sl(struct sysfs_text *t, const struct place *p)
{
    say(t, "%u\n", p->port->sm_sl);
}

static void state(struct sysfs_text *t, const struct place *p)
{
    static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};

    say(t, "%u: %s\n", p->port->state, p->port->state <= PORT_ACTIVE ? names[p->port->state] : "<unknown>");
}

static void phys_state(struct sysfs_text *t, const struct place *p)
{
    static const char *const names[] = {"", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp"};

    say(t, "%u: %s\n", p->port->phys_state,
        p->port->phys_state <= PHYS_LINKUP ? names[p->port->phys_state] : "<unknown>");
}

/* "100 Gb/sec (4X EDR)": signalling rate, without the lanes' extra 64b/66b bits */
static void rate(struct sysfs_text *t, const struct place *p)
{
    static const struct {
        uint8_t speed, ext;
        unsigned tenths; /* Gbit/s per lane, times 10 */
        const char *name;
    } speeds[] = {{4, 8, 1000, " NDR"}, {4, 4, 500, " HDR"}, {4, 2, 250, " EDR"}, {4, 1, 140, " FDR"},
                  {4, 0, 100, " QDR"},  {2, 0, 50, " DDR"},  {1, 0, 25, ""}};
    static const struct {
        uint8_t code;
        unsigned lanes;
    } widths[] = {{1, 1}, {16, 2}, {2, 4}, {4, 8}, {8, 12}};
    unsigned lanes = 1, tenths = 25;
    const char *name = "";

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (widths[i].code == p->port->width_active)
            lanes = widths[i].lanes;
    for (size_t i = sizeof speeds / sizeof *speeds; i-- > 0;) {
        if (speeds[i].ext ? p->port->ext_speed_active == speeds[i].ext : p->port->speed_active == speeds[i].speed) {
            tenths = speeds[i].tenths;
            name = speeds[i].name;
        }
    }
    if (p->port->fdr10_active)
        name = " FDR10";
    tenths *= lanes;
    if (tenths % 10)
        say(t, "%u.%u Gb/sec (%uX%s)\n", tenths / 10, tenths % 10, lanes, name);
    else
        say(t, "%u Gb/sec (%uX%s)\n", tenths / 10, lanes, name);
}

static void cap_mask(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x%08x\n", p->port->cap_mask);
}

static void link_layer(struct sysfs_text *t, const struct place *p)
{
    say(t, "InfiniBand\n");
}

static void gid(struct sysfs_text *t, const struct place *p)
{
    if (!p->port->guids[p->index]) {
        say(t, "0000:0000:0000:0000:0000:0000:0000:0000\n");
        return;
    }
    say_guid(t, p->port->gid_prefix);
    say(t, ":");
    say_guid(t, p->port->guids[p->index]);
    say(t, "\n");
}

static void gid_type(struct sysfs_text *t, const struct place *p)
{
    say(t, "IB/RoCE v1\n");
}

static void pkey(struct sysfs_text *t, const struct place *p)
{
    say(t, "0x%04x\n", p->port->pkeys[p->index]);
}

static const struct {
    const char *name;
    size_t offset;
} counter_names[] = {
#define COUNTER(name, f) name, offsetof(struct port_count, f)
    {COUNTER("symbol_error", symbol_errors)},
    {COUNTER("link_error_recovery", link_recovers)},
    {COUNTER("link_downed", link_downed)},
    {COUNTER("port_rcv_errors", rcv_errors)},
    {COUNTER("port_rcv_remote_physical_errors", rcv_remote_phys)},
    {COUNTER("port_rcv_switch_relay_errors", rcv_switch_relay)},
    {COUNTER("port_xmit_discards", xmit_discards)},
    {COUNTER("port_xmit_constraint_errors", xmit_constraint)},
    {COUNTER("port_rcv_constraint_errors", rcv_constraint)},
    {COUNTER("local_link_integrity_errors", local_integrity)},
    {COUNTER("excessive_buffer_overrun_errors", excess_overrun)},
    {COUNTER("VL15_dropped", vl15_dropped)},
    {COUNTER("port_xmit_wait", xmit_wait)},
    {COUNTER("port_xmit_data", xmit_data)},
    {COUNTER("port_rcv_data", rcv_data)},
    {COUNTER("port_xmit_packets", xmit_pkts)},
    {COUNTER("port_rcv_packets", rcv_pkts)},
    {COUNTER("unicast_xmit_packets", unicast_xmit)},
    {COUNTER("unicast_rcv_packets", unicast_rcv)},
    {COUNTER("multicast_xmit_packets", multicast_xmit)},
    {COUNTER("multicast_rcv_packets", multicast_rcv)},
#undef COUNTER
};

#define NUM_COUNTERS (sizeof counter_names / sizeof *counter_names)

static void counter(struct sysfs_text *t, const struct place *p)
{
    say(t, "%llu\n", (unsigned long long)pma_shown(p->port, counter_names[p->index].offset));
}

static void abi_mad(struct sysfs_text *t, const struct place *p)
{
    say(t, "5\n");
}

static void abi_verbs(struct sysfs_text *t, const struct place *p)
{
    say(t, "6\n");
}

static void abi_device(struct sysfs_text *t, const struct place *p)
{
    say(t, "1\n");
}

static void ibdev(struct sysfs_text *t, const struct place *p)
{
    say(t, "%s\n", p->ca->dev_name);
}

static void port_number(struct sysfs_text *t, const struct place *p)
{
    say(t, "%u\n", p->port->num);
}

/* ---- the tree ------------------------------------------------------------------------------------------------- */

enum wild { W_NONE, W_CA, W_PORT, W_GID, W_PKEY, W_COUNTER, W_UMAD, W_ISSM, W_UVERBS };

typedef void value_fn(struct sysfs_text *t, const struct place *p);

/* One path per line; "*" takes the wildcards in their order. value NULL: a device file. */
static const struct entry {
    const char *path;
    enum wild wild[3];
    value_fn *value;
} tree[] = {
#define CA   "/sys/class/infiniband/*"
#define PORT CA "/ports/*"
    {CA "/node_type", {W_CA}, node_type},
    {CA "/node_desc", {W_CA}, node_desc},
    {CA "/node_guid", {W_CA}, node_guid},
    {CA "/sys_image_guid", {W_CA}, sys_image_guid},
    {CA "/fw_ver", {W_CA}, fw_ver},
    {CA "/hw_rev", {W_CA}, hw_rev},
    {CA "/hca_type", {W_CA}, hca_type},
    {CA "/board_id", {W_CA}, board_id},
    {CA "/device/vendor", {W_CA}, vendor},
    {CA "/device/device", {W_CA}, device},
    {CA "/device/numa_node", {W_CA}, numa_node},
    {CA "/device/current_link_speed", {W_CA}, link_speed},
    {CA "/device/current_link_width", {W_CA}, link_width},
    {CA "/device/max_link_speed", {W_CA}, link_speed},
    {CA "/device/max_link_width", {W_CA}, link_width},
    {PORT "/lid", {W_CA, W_PORT}, lid},
    {PORT "/lid_mask_count", {W_CA, W_PORT}, lmc},
    {PORT "/sm_lid", {W_CA, W_PORT}, sm_lid},
    {PORT "/sm_sl", {W_CA, W_PORT}, sm_sl},
    {PORT "/state", {W_CA, W_PORT}, state},
    {PORT "/phys_state", {W_CA, W_PORT}, phys_state},
    {PORT "/rate", {W_CA, W_PORT}, rate},
    {PORT "/cap_mask", {W_CA, W_PORT}, cap_mask},
    {PORT "/link_layer", {W_CA, W_PORT}, link_layer},
    {PORT "/gids/*", {W_CA, W_PORT, W_GID}, gid},
    {PORT "/gid_attrs/types/*", {W_CA, W_PORT, W_GID}, gid_type},
    {PORT "/pkeys/*", {W_CA, W_PORT, W_PKEY}, pkey},
    {PORT "/counters/*", {W_CA, W_PORT, W_COUNTER}, counter},
    {"/sys/class/infiniband_mad/abi_version", {W_NONE}, abi_mad},
    {"/sys/class/infiniband_mad/*/ibdev", {W_UMAD}, ibdev},
    {"/sys/class/infiniband_mad/*/port", {W_UMAD}, port_number},
    {"/sys/class/infiniband_mad/*/ibdev", {W_ISSM}, ibdev},
    {"/sys/class/infiniband_mad/*/port", {W_ISSM}, port_number},
    {"/sys/class/infiniband_verbs/abi_version", {W_NONE}, abi_verbs},
    {"/sys/class/infiniband_verbs/*/abi_version", {W_UVERBS}, abi_device},
    {"/sys/class/infiniband_verbs/*/ibdev", {W_UVERBS}, ibdev},
    {"/dev/infiniband/*", {W_UMAD}, NULL},
    {"/dev/infiniband/*", {W_ISSM}, NULL},
    {"/dev/infiniband/*", {W_UVERBS}, NULL},
#undef CA
#undef PORT
};

/* The n-th name for a wildcard at this place; false: no more names. *next is the place below the name. */
static bool wild_name(enum wild w, const struct place *at, unsigned n, char *name, size_t cap, struct place *next)
{
    *next = *at;
    next->index = n;
    switch (w) {
    case W_CA:
    case W_UVERBS:
        if (n >= at->host->num_cas)
            return false;
        next->ca = at->host->cas[n];
        if (w == W_CA)
            snprintf(name, cap, "%s", next->ca->dev_name);
        else
            snprintf(name, cap, "uverbs%u", n);
        return true;
    case W_PORT:
        if (n >= at->ca->num_ports)
            return false;
        next->port = &at->ca->ports[n + 1];
        snprintf(name, cap, "%u", n + 1);
        return true;
    case W_GID:
    case W_PKEY:
        snprintf(name, cap, "%u", n);
        return n < (w == W_GID ? FABRIC_GUIDS : FABRIC_PKEYS);
    case W_COUNTER:
        if (n >= NUM_COUNTERS)
            return false;
        snprintf(name, cap, "%s", counter_names[n].name);
        return true;
    case W_UMAD:
    case W_ISSM:
        snprintf(name, cap, "%s%u", w == W_UMAD ? "umad" : "issm", n);
        for (uint32_t i = 0; i < at->host->num_cas; i++) {
            if (n < at->host->cas[i]->num_ports) {
                next->ca = at->host->cas[i];
                next->port = &next->ca->ports[n + 1];
                return true;
            }
            n -= at->host->cas[i]->num_ports;
        }
        return false;
    default:
        return false;
    }
}

/* The length of a path's component; *s moves to the component, past slashes and "." components. */
static size_t component(const char **s)
{
    size_t n;

    for (;;) {
        while (**s == '/')
            (*s)++;
        n = strcspn(*s, "/");
        if (n != 1 || **s != '.')
            return n;
        (*s)++;
    }
}

static bool wild_find(enum wild w, struct place *at, const char *name, size_t len)
{
    char have[64];
    struct place next;

    for (unsigned n = 0; wild_name(w, at, n, have, sizeof have, &next); n++) {
        if (strlen(have) == len && !memcmp(have, name, len)) {
            *at = next;
            return true;
        }
    }
    return false;
}

static bool listed(const struct sysfs_text *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->len;) {
        const char *end = memchr(t->at + i, '\n', t->len - i);
        size_t n = end ? (size_t)(end - t->at) - i : t->len - i;

        if (n == len && !memcmp(t->at + i, name, len))
            return true;
        i += n + 1;
    }
    return false;
}

/* Add the names that the rest of a pattern has at this place: the next component, and a slash if more follow. */
static void list_names(struct sysfs_text *t, const char *pattern, enum wild w, const struct place *at)
{
    size_t n = component(&pattern);
    const char *rest = pattern + n;
    bool dir = component(&rest) > 0;
    char name[128];
    struct place next;

    if (*pattern != '*') {
        int len = snprintf(name, sizeof name, "%.*s%s", (int)n, pattern, dir ? "/" : "");

        if (!listed(t, name, (size_t)len))
            say(t, "%s\n", name);
        return;
    }
    for (unsigned i = 0; wild_name(w, at, i, name, sizeof name - 1, &next); i++) {
        if (dir)
            strcat(name, "/");
        if (!listed(t, name, strlen(name)))
            say(t, "%s\n", name);
    }
}

/*
 * Matches path against a line of the tree. *dir: the path is a directory above the line; the names there are added to
 * t.
 */
static bool match(const struct entry *e, const struct host *host, const char *path, struct sysfs_text *t,
                  enum sf_sysfs_kind *kind)
{
    struct place at = {.host = host};
    const char *pattern = e->path;
    unsigned wilds = 0;

    for (;;) {
        size_t have = component(&path), want = component(&pattern);

        if (!have) {
            if (want) {
                *kind = SF_SYSFS_DIR;
                list_names(t, pattern, wilds < 3 ? e->wild[wilds] : W_NONE, &at);
                return false; /* other lines add more names */
            }
            *kind = e->value ? SF_SYSFS_FILE : SF_SYSFS_DEV;
            if (e->value)
                e->value(t, &at);
            return true;
        }
        if (!want)
            return false;
        if (*pattern == '*') {
            if (!wild_find(e->wild[wilds++], &at, path, have))
                return false;
        } else if (have != want || memcmp(path, pattern, have)) {
            return false;
        }
        path += have;
        pattern += want;
    }
}

size_t sysfs_answer(const struct host *host, const char *path, void *body, size_t cap)
{
    struct sf_sysfs head = {.kind = SF_SYSFS_NONE};
    enum sf_sysfs_kind kind = SF_SYSFS_NONE;
    struct sysfs_text t;

    if (cap < sizeof head + 1)
        return 0;
    t = (struct sysfs_text){.at = (char *)body + sizeof head, .cap = cap - sizeof head};
    for (size_t i = 0; i < sizeof tree / sizeof *tree; i++)
        if (match(&tree[i], host, path, &t, &kind))
            break;
    head.kind = kind;
    head.bytes = kind == SF_SYSFS_NONE ? 0 : (uint32_t)t.len;
    memcpy(body, &head, sizeof head);
    return sizeof head + head.bytes;
}
