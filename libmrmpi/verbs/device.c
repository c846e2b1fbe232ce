/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens HCAs and turns their active ports into rails. Capabilities come from the device, never from its name. */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/gid.h"
#include "libmrmpi/verbs/port.h"
#include "libmrmpi/verbs/select.h"

struct mr_verbs mr_verbs;
struct mr_verbs_handlers mr_verbs_up;

/* A failed device is sought after this time, and again each time its absence has grown by a quarter. */
#define REOPEN_NS      10000000ull
#define REOPEN_MOST_NS 1000000000ull
#define REOPEN_PART    4
#define CQ_SENDS       4096 /* completions of requests that a rail may have outstanding, over all its queue pairs */
/*
 * Ethernet may lose packets. A sender gives up after a number of gaps (MRMPI_RC_RETRY) since its last acknowledgement,
 * which is at the end of a message: many short writes get through where a long one does not. More retries are no way
 * out: 7 means without limit to soft-RoCE.
 */
#define ROCE_WRITE_PACKETS 16u

static int negative_errno(int fallback)
{
    return errno ? -errno : -fallback;
}

static int smaller_of(int a, int b)
{
    return a < b ? a : b;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* Memory that need not be pinned. Devices without this query do not have it. */
static void query_on_demand(struct mr_device *dev)
{
    const uint32_t rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    const uint64_t all = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    struct ibv_device_attr_ex ex = {0};

    if (ibv_query_device_ex(dev->ctx, NULL, &ex) || (ex.odp_caps.general_caps & all) != all)
        return;
    dev->odp = (ex.odp_caps.per_transport_caps.rc_odp_caps & rdma) == rdma;
    dev->odp_datagrams = ex.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_SEND;
}

static int open_device(struct ibv_device *ibdev, struct mr_device *dev, struct ibv_device_attr *attr)
{
    int err, flags;

    memset(dev, 0, sizeof *dev);
    snprintf(dev->name, sizeof dev->name, "%s", ibv_get_device_name(ibdev));
    dev->ctx = ibv_open_device(ibdev);
    if (!dev->ctx) {
        err = negative_errno(EIO);
        mr_log(MR_LOG_WARN, "%s cannot be opened (%s); it is not used", dev->name, strerror(-err));
        return err;
    }
    err = ibv_query_device(dev->ctx, attr);
    if (err) {
        mr_log(MR_LOG_WARN, "%s does not answer a query (%s); it is not used", dev->name, strerror(err));
        goto close;
    }
    dev->max_sge = (uint32_t)attr->max_sge;
    dev->max_qp_wr = (uint32_t)attr->max_qp_wr;
    dev->max_srq_wr = (uint32_t)attr->max_srq_wr;
    dev->max_cqe = (uint32_t)attr->max_cqe;
    dev->max_mr = (uint32_t)attr->max_mr;
    dev->max_reads = (uint8_t)smaller_of(255, smaller_of(attr->max_qp_rd_atom, attr->max_qp_init_rd_atom));
    dev->atomics = attr->atomic_cap != IBV_ATOMIC_NONE && dev->max_reads;
    query_on_demand(dev);
    dev->pd = ibv_alloc_pd(dev->ctx);
    if (!dev->pd) {
        err = errno;
        mr_log(MR_LOG_WARN, "%s gives no protection domain (%s); it is not used", dev->name, strerror(err));
        goto close;
    }
    flags = fcntl(dev->ctx->async_fd, F_GETFL);
    if (flags >= 0)
        fcntl(dev->ctx->async_fd, F_SETFL, flags | O_NONBLOCK);
    return 0;

close:
    ibv_close_device(dev->ctx);
    dev->ctx = NULL;
    return err ? -err : -EIO;
}

/* A context opened before the device failed. */
struct mr_device_before {
    struct mr_device_before *before;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
};

static void close_context(struct ibv_context *ctx, struct ibv_pd *pd)
{
    if (pd)
        ibv_dealloc_pd(pd);
    if (ctx)
        ibv_close_device(ctx);
}

static void close_device(struct mr_device *dev)
{
    struct mr_device_before *b;

    close_context(dev->ctx, dev->pd);
    while ((b = dev->before)) {
        dev->before = b->before;
        close_context(b->ctx, b->pd);
        free(b);
    }
    memset(dev, 0, sizeof *dev);
}

/* ---- polled rails ------------------------------------------------------------------------------------------------ */

static void polled_add(struct mr_rail *rail)
{
    struct mr_rail *last = mr_verbs.polled;

    while (last && last->next_polled != mr_verbs.polled)
        last = last->next_polled;
    rail->next_polled = last ? mr_verbs.polled : rail;
    if (last)
        last->next_polled = rail;
    else
        mr_verbs.polled = rail;
}

static void polled_remove(struct mr_rail *rail)
{
    struct mr_rail *before = rail;

    if (!rail->next_polled)
        return;
    while (before->next_polled != rail)
        before = before->next_polled;
    before->next_polled = rail->next_polled;
    if (mr_verbs.polled == rail)
        mr_verbs.polled = before == rail ? NULL : rail->next_polled;
    rail->next_polled = NULL;
}

/* The request at the opening of the devices, and its result. */
struct opening {
    struct mr_gid_wish gid;
    mr_rail_reject *reject;
    void *arg;
    unsigned rails_max;
    bool count_left_out; /* go on to the end: there may be ports without a rail left for them */
    unsigned left_out;
    char left_out_names[512]; /* as MRMPI_DEVICES takes them */
};

/* ---- rails ----------------------------------------------------------------------------------------------------- */

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static int create_cq(struct mr_rail *rail, const struct mr_device *dev)
{
    unsigned fixed = (unsigned)mr_config.srq_depth * (mr_verbs.datagrams ? 2u : 1u) + MR_UD_RECVS + MR_UD_SENDS;
    unsigned sends = CQ_SENDS + (mr_verbs.datagrams ? mr_ud_pool_completions() : 0);

    if (dev->max_cqe && fixed + sends > dev->max_cqe)
        sends = dev->max_cqe > fixed + 64 ? dev->max_cqe - fixed : 64;
    rail->cq = ibv_create_cq(dev->ctx, (int)(fixed + sends), NULL, NULL, 0);
    if (!rail->cq)
        return negative_errno(ENOMEM);
    rail->cq_room = rail->cq_room_all = sends;
    rail->signal_every = 16;
    return 0;
}

static void tell_leaks(const struct mr_rail *rail)
{
    if (rail->num_qps)
        mr_log_print(MR_LOG_WARN, "leak: rail %u: %u queue pairs were not destroyed", rail->index, rail->num_qps);
    if (rail->cq_room != rail->cq_room_all)
        mr_log_print(MR_LOG_WARN, "leak: rail %u: the completion queue has room for %u requests instead of %u",
                     rail->index, rail->cq_room, rail->cq_room_all);
}

/* Its counters go on counting if the library starts once more: tools have read them. */
static void clear_rail(struct mr_rail *rail)
{
    uint64_t count[MR_RAIL_STAT_COUNT];

    memcpy(count, rail->count, sizeof count);
    memset(rail, 0, sizeof *rail);
    memcpy(rail->count, count, sizeof count);
}

static void close_queues(struct mr_rail *rail, bool tells_leaks)
{
    polled_remove(rail);
    mr_ud_pool_close(rail);
    mr_udp_close(rail);
    if (tells_leaks)
        tell_leaks(rail);
    mr_ud_close(rail);
    mr_rx_close(&rail->rx);
    if (rail->cq)
        ibv_destroy_cq(rail->cq);
    rail->cq = NULL;
}

static void close_rail(struct mr_rail *rail)
{
    close_queues(rail, mr_config.leaks);
    clear_rail(rail);
}

static int open_queues(struct mr_rail *rail)
{
    int err = create_cq(rail, rail->dev);

    if (!err)
        err = mr_rx_open(rail, &rail->rx, (unsigned)mr_config.srq_depth, mr_verbs.packet_max, false);
    if (!err)
        err = mr_ud_open(rail);
    if (!err && mr_verbs.datagrams)
        err = mr_udp_open(rail);
    return err;
}

static int open_rail(struct mr_device *dev, uint8_t num, const struct ibv_port_attr *port, const struct opening *o)
{
    struct mr_rail *rail = &mr_verbs.rail[mr_verbs.num_rails];
    int err;

    clear_rail(rail);
    rail->index = mr_verbs.num_rails;
    rail->dev = dev;
    rail->port = num;
    err = mr_port_describe(dev->ctx, dev->name, num, port, &o->gid, &rail->addr, &rail->gid_index);
    if (err)
        return err;
    rail->max_msg = port->max_msg_sz ? port->max_msg_sz : 1u << 30;
    if (port->link_layer == IBV_LINK_LAYER_ETHERNET && rail->max_msg > ROCE_WRITE_PACKETS * mtu_bytes(port->active_mtu))
        rail->max_msg = ROCE_WRITE_PACKETS * mtu_bytes(port->active_mtu);
    rail->rate_mbps = rail->addr.rate_mbps;
    rail->addr.reads = mr_qp_reads(rail->dev);

    err = mr_partitions_open(rail, port);
    if (err)
        return err;
    err = open_queues(rail);
    if (err) {
        mr_log(MR_LOG_WARN, "%s port %u: no queues: %s%s", dev->name, num, strerror(-err), mr_log_memory_advice(err));
        close_rail(rail);
        return err;
    }
    polled_add(rail);
    mr_verbs.num_rails++;
    mr_log(MR_LOG_INFO, "rail %u: %s port %u, LID %u LMC %u, %u Mb/s", rail->index, dev->name, num, port->lid,
           port->lmc, rail->rate_mbps);
    return 0;
}

static bool port_is_usable(const struct mr_device *dev, unsigned num, const struct ibv_port_attr *port,
                           const struct opening *o)
{
    const char *why;

    if (!mr_device_selected(mr_config.devices, dev->name, num))
        return false;
    why = mr_port_unusable(dev->name, num, port, o->reject, o->arg);
    if (why)
        mr_log(MR_LOG_INFO, "%s port %u is not used: %s", dev->name, num, why);
    return !why;
}

/*
 * A user who requests fewer rails gets them without a message; if the library's limit is reached, the unused rails are
 * logged.
 */
static void limit_rails(struct opening *o)
{
    unsigned wanted = (unsigned)mr_config.rails_max;

    o->rails_max = wanted && wanted < MR_RAILS_MAX ? wanted : MR_RAILS_MAX;
    o->count_left_out = (!wanted || wanted > MR_RAILS_MAX) && mr_log_for_host() && mr_config.log_level >= MR_LOG_WARN;
}

static void leave_out(struct opening *o, const struct mr_device *dev, unsigned num)
{
    size_t used = strlen(o->left_out_names);

    if (used + sizeof dev->name + 8 < sizeof o->left_out_names)
        snprintf(o->left_out_names + used, sizeof o->left_out_names - used, "%s%s:%u", used ? "," : "", dev->name, num);
    else if (used + 4 < sizeof o->left_out_names && o->left_out_names[used - 1] != '.')
        memcpy(o->left_out_names + used, ",...", 5);
    o->left_out++;
}

static void tell_left_out(const struct opening *o)
{
    if (o->left_out)
        mr_log(MR_LOG_WARN,
               "%u active port(s) are not used, because there can be %u rails: %s; name those to use in MRMPI_DEVICES",
               o->left_out, o->rails_max, o->left_out_names);
}

/* True if the device gave at least one rail. */
static bool open_ports(struct mr_device *dev, unsigned ports, struct opening *o)
{
    unsigned before = mr_verbs.num_rails;

    for (unsigned num = 1; num <= ports; num++) {
        bool full = mr_verbs.num_rails == o->rails_max;
        struct ibv_port_attr port;

        if (full && !o->count_left_out)
            break;
        if (ibv_query_port(dev->ctx, (uint8_t)num, &port) || !port_is_usable(dev, num, &port, o))
            continue;
        if (full)
            leave_out(o, dev, num);
        else
            open_rail(dev, (uint8_t)num, &port, o);
    }
    return mr_verbs.num_rails > before;
}

static void open_devices(struct ibv_device *const *list, int n, struct opening *o)
{
    _Static_assert(MR_DEVICES_MAX >= MR_RAILS_MAX, "while there is place for a rail there is place for its device");

    for (int i = 0; i < n; i++) {
        bool full = mr_verbs.num_rails == o->rails_max;
        struct mr_device spare, *dev = full ? &spare : &mr_verbs.device[mr_verbs.num_devices];
        struct ibv_device_attr attr;

        if (full && !o->count_left_out)
            break;
        if (!mr_device_selected(mr_config.devices, ibv_get_device_name(list[i]), 0) || open_device(list[i], dev, &attr))
            continue;
        dev->index = mr_verbs.num_devices;
        if (open_ports(dev, attr.phys_port_cnt, o))
            mr_verbs.num_devices++;
        else
            close_device(dev);
    }
}

int mr_verbs_open(const struct mr_verbs_handlers *handlers, size_t packet_max, bool datagrams, mr_rail_reject *reject,
                  void *arg)
{
    struct opening opening = {.reject = reject, .arg = arg};
    struct ibv_device **list;
    int n = 0;

    if (!mr_gid_wish_parse(mr_config.roce_gid, &opening.gid)) {
        mr_log(MR_LOG_ERROR,
               "MRMPI_ROCE_GID=%s is neither an index (0 to 255) nor words of roce-v2, roce-v1, ipv4, ipv6 joined by /",
               mr_config.roce_gid);
        return -EINVAL;
    }
    mr_verbs.num_memories = 0; /* the rest was cleared at the close */
    mr_verbs.streak_left = MR_POLL_STREAK;
    mr_verbs.alone = false;
    mr_verbs.beside = NULL;
    mr_verbs.later = NULL;
    mr_verbs.lives = mr_verbs.moves = 0;
    mr_verbs.costs = (struct mr_costs){0};
    mr_verbs.packet_max = packet_max;
    mr_verbs.datagrams = datagrams;
    mr_verbs_up = *handlers;
    /* keeps registered pages when a child forks; no effect where the kernel does so itself */
    if (ibv_fork_init())
        mr_log(MR_LOG_INFO, "no protection of registered memory against fork");
    list = ibv_get_device_list(&n);
    limit_rails(&opening);
    open_devices(list, list ? n : 0, &opening);
    tell_left_out(&opening);
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        mr_rx_rails_changed(mr_verbs.rail[i].rx);
    if (list)
        ibv_free_device_list(list);
    if (mr_verbs.num_rails)
        return 0;
    if (!n)
        mr_log(MR_LOG_ERROR, "this host has no InfiniBand device, and the job has ranks on other hosts");
    else
        mr_log(MR_LOG_ERROR,
               "none of the %d InfiniBand device(s) here has a port that can be used%s%s: look at ibstat, and "
               "whether a subnet manager runs",
               n, *mr_config.devices ? ", given MRMPI_DEVICES=" : "", mr_config.devices);
    return -ENODEV;
}

void mr_verbs_close(void)
{
    if (mr_config.leaks && mr_verbs.num_memories)
        mr_log_print(MR_LOG_WARN, "leak: %u pieces of memory are still registered", mr_verbs.num_memories);
    while (mr_verbs.num_rails)
        close_rail(&mr_verbs.rail[--mr_verbs.num_rails]);
    while (mr_verbs.num_devices)
        close_device(&mr_verbs.device[--mr_verbs.num_devices]);
}

/* ---- asynchronous events, and lost devices ----------------------------------------------------------------------- */

static void count_down(struct mr_rail *rail, bool down)
{
    uint64_t now = mr_clock_ns(), since = rail->down ? now - rail->down_ns : 0;

    mr_rail_add(rail, MR_RAIL_PORT_DOWNS, down && !rail->down);
    mr_rail_add(rail, MR_RAIL_DOWN_NS, since);
    rail->down_ns = now;
    rail->down = down;
}

uint64_t mr_rail_counted(unsigned i, enum mr_rail_stat s)
{
    const struct mr_rail *rail = &mr_verbs.rail[i];
    uint64_t count = __atomic_load_n(&rail->count[s], __ATOMIC_RELAXED);

    if (s == MR_RAIL_DOWN_NS && rail->down)
        count += mr_clock_ns() - rail->down_ns;
    return count;
}

static void change_rails(const struct mr_device *dev, unsigned port, bool down)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_rail *rail = &mr_verbs.rail[i];

        if (rail->dev != dev || (port && rail->port != port) || (rail->down == down && !dev->fatal))
            continue;
        count_down(rail, down);
        mr_log(MR_LOG_WARN, "rail %u (%s port %u) is %s", i, dev->name, rail->port,
               dev->fatal ? "lost: the device failed"
               : down     ? "down"
                          : "up again");
        mr_verbs_up.rail_changed(rail);
    }
}

void mr_device_lost(struct mr_device *dev)
{
    if (dev->fatal)
        return;
    dev->fatal = true;
    dev->lost_ns = mr_clock_ns();
    dev->reopen_ns = dev->lost_ns + REOPEN_NS;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].dev == dev)
            polled_remove(&mr_verbs.rail[i]);
    change_rails(dev, 0, true);
}

/* ---- returning devices ------------------------------------------------------------------------------------------- */

static struct mr_rail *next_rail_of(const struct mr_device *dev, struct mr_rail *rail)
{
    for (rail = rail ? rail + 1 : mr_verbs.rail; rail < mr_verbs.rail + mr_verbs.num_rails; rail++)
        if (rail->dev == dev)
            return rail;
    return NULL;
}

/* The device's remaining rails are queues closed with them: they have no other users. */
static bool is_unused(const struct mr_device *dev)
{
    for (struct mr_rail *r = next_rail_of(dev, NULL); r; r = next_rail_of(dev, r))
        if (r->num_qps > mr_udp_num_qps(r) || mr_ud_pool_in_use(r))
            return false;
    return true;
}

/* All ports of the rails are active, as far as the device opened anew says. */
static bool has_all_ports(const struct mr_device *dev, const struct mr_device *fresh)
{
    struct ibv_port_attr port;

    for (struct mr_rail *r = next_rail_of(dev, NULL); r; r = next_rail_of(dev, r))
        if (ibv_query_port(fresh->ctx, r->port, &port) || port.state != IBV_PORT_ACTIVE ||
            (!r->addr.global && !port.lid))
            return false;
    return true;
}

static int open_by_name(const char *name, struct mr_device *fresh)
{
    struct ibv_device_attr attr;
    int n = 0, err = -ENODEV;
    struct ibv_device **list = ibv_get_device_list(&n);

    for (int i = 0; list && i < n; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            err = open_device(list[i], fresh, &attr);
            break;
        }
    if (list)
        ibv_free_device_list(list);
    return err;
}

/* Peers know its key, and where its GID is; where its port and its queue pairs are they learn by the next messages. */
static int renew_rail(struct mr_rail *rail)
{
    struct ibv_port_attr port;
    unsigned shift = rail->index * MR_RAIL_LIFE_BITS;
    int err;

    close_queues(rail, false);
    rail->num_qps = 0;
    err = ibv_query_port(rail->dev->ctx, rail->port, &port);
    if (err)
        return -err;
    mr_partitions_renew(rail, &port);
    rail->addr.lid = port.lid;
    rail->addr.lmc = port.lmc;
    rail->until = 0;
    mr_verbs.moves++;
    rail->life = (uint8_t)((rail->life + 1) % MR_RAIL_LIVES);
    mr_verbs.lives = (mr_verbs.lives & ~((MR_RAIL_LIVES - 1) << shift)) | (uint32_t)rail->life << shift;
    err = open_queues(rail);
    if (!err)
        mr_rx_rails_changed(rail->rx);
    return err;
}

static int renew_rails(struct mr_device *dev)
{
    int err = 0;

    for (struct mr_rail *r = next_rail_of(dev, NULL); r && !err; r = next_rail_of(dev, r))
        err = renew_rail(r);
    if (!err)
        err = mr_verbs_up.device_renewed(dev);
    for (struct mr_rail *r = next_rail_of(dev, NULL); r; r = next_rail_of(dev, r)) {
        if (err)
            close_queues(r, false);
        else
            polled_add(r);
    }
    return err;
}

/*
 * A failed device has forgotten all settings. Its users deregister their memory, each in its time: until then the old
 * context stays open.
 */
static int reopen_device(struct mr_device *dev)
{
    struct mr_device_before *before = NULL;
    struct mr_device fresh;
    int err = open_by_name(dev->name, &fresh);

    if (err)
        return err;
    if (!has_all_ports(dev, &fresh) || !(before = malloc(sizeof *before))) {
        close_context(fresh.ctx, fresh.pd);
        return -ENETDOWN;
    }
    *before = (struct mr_device_before){.before = dev->before, .ctx = dev->ctx, .pd = dev->pd};
    dev->before = before;
    dev->ctx = fresh.ctx;
    dev->pd = fresh.pd;
    dev->fatal = false;
    err = renew_rails(dev);
    dev->fatal = err;
    return err;
}

static void seek_device(struct mr_device *dev)
{
    uint64_t now = mr_clock_ns(), pause = (now - dev->lost_ns) / REOPEN_PART;
    int err;

    if (now < dev->reopen_ns || !is_unused(dev))
        return;
    err = reopen_device(dev);
    if (!err) {
        change_rails(dev, 0, false);
        return;
    }
    mr_log(MR_LOG_DEBUG, "%s is not back yet: %s", dev->name, strerror(-err));
    dev->reopen_ns = now + (pause < REOPEN_NS ? REOPEN_NS : pause < REOPEN_MOST_NS ? pause : REOPEN_MOST_NS);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* A subnet manager may have given the port another address. */
static void check_address(const struct mr_device *dev, unsigned num)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_rail *rail = &mr_verbs.rail[i];
        struct ibv_port_attr port;

        if (rail->dev != dev || rail->port != num || rail->addr.global ||
            ibv_query_port(dev->ctx, (uint8_t)num, &port) || !port.lid ||
            (port.lid == rail->addr.lid && port.lmc == rail->addr.lmc))
            continue;
        mr_log(MR_LOG_WARN, "%s port %u has LID %u LMC %u now; it had LID %u LMC %u", dev->name, num, port.lid,
               port.lmc, rail->addr.lid, rail->addr.lmc);
        rail->addr.lid = port.lid;
        rail->addr.lmc = port.lmc;
        mr_verbs.moves++;
        mr_verbs_up.rail_moved(rail);
    }
}

/* A subnet manager may have changed its table of P_Keys, also while it was down. */
static void check_partitions(const struct mr_device *dev, unsigned num)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].dev == dev && mr_verbs.rail[i].port == num)
            mr_partitions_changed(&mr_verbs.rail[i]);
}

static void handle_event(struct mr_device *dev, struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
        mr_device_lost(dev);
        break;
    case IBV_EVENT_PORT_ERR:
        change_rails(dev, (unsigned)e->element.port_num, true);
        break;
    case IBV_EVENT_PORT_ACTIVE:
        check_address(dev, (unsigned)e->element.port_num);
        check_partitions(dev, (unsigned)e->element.port_num);
        change_rails(dev, (unsigned)e->element.port_num, false);
        break;
    case IBV_EVENT_PKEY_CHANGE:
        check_partitions(dev, (unsigned)e->element.port_num);
        break;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        mr_log(MR_LOG_DEBUG, "%s port %d: %s", dev->name, e->element.port_num, ibv_event_type_str(e->event_type));
        check_address(dev, (unsigned)e->element.port_num);
        break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_SRQ_ERR:
        mr_log(MR_LOG_ERROR, "%s: %s", dev->name, ibv_event_type_str(e->event_type));
        break;
    default:
        mr_log(MR_LOG_DEBUG, "%s: %s", dev->name, ibv_event_type_str(e->event_type));
    }
}

bool mr_rail_is_active(const struct mr_rail *rail)
{
    struct ibv_port_attr port;

    return !rail->down && !rail->dev->fatal && !ibv_query_port(rail->dev->ctx, rail->port, &port) &&
           port.state == IBV_PORT_ACTIVE;
}

void mr_verbs_check_events(void)
{
    for (unsigned i = 0; i < mr_verbs.num_devices; i++) {
        struct mr_device *dev = &mr_verbs.device[i];
        struct pollfd p = {.fd = dev->ctx->async_fd, .events = POLLIN};
        struct ibv_async_event e;

        while (!dev->fatal && poll(&p, 1, 0) == 1 && p.revents & POLLIN && !ibv_get_async_event(dev->ctx, &e)) {
            handle_event(dev, &e);
            ibv_ack_async_event(&e);
        }
        if (dev->fatal)
            seek_device(dev);
    }
}
