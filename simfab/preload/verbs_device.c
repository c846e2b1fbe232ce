/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices and contexts: the list of a host's HCAs, opening, and queries of ports, GIDs and partition keys. Answers
 * always come from the engine, because a subnet manager may change them at any time.
 */
#include "simfab/preload/preload.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/marks.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_cq.h"
#include "simfab/preload/verbs_domain.h"
#include "simfab/preload/verbs_mem.h"
#include "simfab/preload/verbs_post.h"
#include "simfab/preload/verbs_registry.h"
#include "simfab/preload/verbs_wr.h"

enum { SYSFS_GID_TYPE_IB = 0 }; /* called "IB/RoCE v1" in sysfs */

/* exported by libibverbs, declared in none of its public headers */
int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index, unsigned int *type);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static void put_device(struct sfp_device *d)
{
    if (__atomic_sub_fetch(&d->refs, 1, __ATOMIC_ACQ_REL) == 0)
        free(d);
}

static struct sfp_device *make_device(const struct sf_device *from)
{
    struct sfp_device *d = calloc(1, sizeof *d);

    if (!d)
        return NULL;
    d->dev.node_type = IBV_NODE_CA;
    d->dev.transport_type = IBV_TRANSPORT_IB;
    snprintf(d->dev.name, sizeof d->dev.name, "%.*s", (int)sizeof from->name - 1, from->name);
    snprintf(d->dev.dev_name, sizeof d->dev.dev_name, "uverbs%u", from->index);
    snprintf(d->dev.dev_path, sizeof d->dev.dev_path, "/sys/class/infiniband_verbs/uverbs%u", from->index);
    snprintf(d->dev.ibdev_path, sizeof d->dev.ibdev_path, "/sys/class/infiniband/%s", d->dev.name);
    d->guid = htobe64(from->node_guid);
    d->index = from->index;
    d->refs = 1;
    return d;
}

SFP_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    struct {
        uint32_t n;
        char rest[SF_MSG_MAX];
    } *rep = NULL;
    struct ibv_device **list = NULL;
    size_t len = 0;
    uint32_t n = 0;
    int err = 0;

    if (num_devices)
        *num_devices = 0;
    if (sfp_enabled()) {
        rep = malloc(sizeof *rep);
        err = rep ? sfp_call(SF_OP_DEVICES, NULL, 0, rep, sizeof *rep, &len, NULL) : ENOMEM;
        if (!err && (len < sizeof rep->n || (len - sizeof rep->n) / sizeof(struct sf_device) < rep->n))
            err = EPROTO;
        if (!err)
            n = rep->n;
    }
    if (!err && !(list = calloc(n + 1, sizeof *list)))
        err = ENOMEM;
    for (uint32_t i = 0; !err && i < n; i++) {
        struct sf_device from;
        struct sfp_device *d;

        memcpy(&from, rep->rest + i * sizeof from, sizeof from);
        d = make_device(&from);
        if (d)
            list[i] = &d->dev;
        else
            err = ENOMEM;
    }
    free(rep);
    if (err) {
        if (list)
            ibv_free_device_list(list);
        errno = err;
        return NULL;
    }
    if (num_devices)
        *num_devices = (int)n;
    return list;
}

SFP_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    for (struct ibv_device **d = list; *d; d++)
        put_device(sfp_container(*d, struct sfp_device, dev));
    free(list);
}

SFP_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SFP_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return sfp_container(device, struct sfp_device, dev)->guid;
}

SFP_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return (int)sfp_container(device, struct sfp_device, dev)->index;
}

/* ---- contexts -------------------------------------------------------------------------------------------------- */

static int query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    uint32_t req[2] = {sfp_context(c)->handle, port};
    struct ibv_port_attr full;
    int err = sfp_call(SF_OP_QUERY_PORT, req, sizeof req, &full, sizeof full, NULL, NULL);

    if (err)
        return err;
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof full ? size : sizeof full);
    return 0;
}

static int query_device(struct ibv_context *c, struct ibv_device_attr *attr, struct ibv_odp_caps *odp)
{
    struct {
        struct ibv_device_attr attr;
        struct ibv_odp_caps odp;
    } rep;
    int err;

    _Static_assert(sizeof rep == sizeof rep.attr + sizeof rep.odp, "as it is sent");
    err = sfp_call(SF_OP_QUERY_DEVICE, &sfp_context(c)->handle, sizeof(uint32_t), &rep, sizeof rep, NULL, NULL);
    if (err)
        return err;
    *attr = rep.attr;
    *odp = rep.odp;
    return 0;
}

static int query_device_ex(struct ibv_context *c, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex full = {0};
    int err = input && input->comp_mask ? EINVAL : size < sizeof full.orig_attr ? EOPNOTSUPP : 0;

    if (!err)
        err = query_device(c, &full.orig_attr, &full.odp_caps);
    if (err)
        return err;
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = SFP_CORE_CLOCK_KHZ;
    full.cq_mod_caps = (struct ibv_cq_moderation_caps){.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX};
    full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof full ? size : sizeof full);
    return 0;
}

static int query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
    struct sf_actor *a = sfp_enter();

    if (!a)
        return errno;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return EINVAL;
    /* ticks of the adapter's clock, all of them in tv_nsec: as programs know it of real adapters */
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        values->raw_clock = (struct timespec){.tv_nsec = (long)(sfp_now(a) / 1000u)};
    return 0;
}

static void set_operations(struct verbs_context *v)
{
    v->sz = sizeof *v;
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_rt_values;
    v->create_cq_ex = sfp_create_cq_ex;
    v->modify_cq = sfp_modify_cq;
    v->alloc_td = sfp_alloc_td;
    v->dealloc_td = sfp_dealloc_td;
    v->alloc_parent_domain = sfp_alloc_parent_domain;
    v->alloc_null_mr = sfp_alloc_null_mr;
    v->context.ops.alloc_mw = sfp_alloc_mw;
    v->context.ops.bind_mw = sfp_bind_mw;
    v->context.ops.dealloc_mw = sfp_dealloc_mw;
    v->create_qp_ex = sfp_create_qp_ex;
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    v->context.ops.poll_cq = sfp_poll_cq;
    v->context.ops.req_notify_cq = sfp_req_notify_cq;
    v->context.ops.post_send = sfp_post_send;
    v->context.ops.post_recv = sfp_post_recv;
    v->context.ops.post_srq_recv = sfp_post_srq_recv;
}

SFP_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct sfp_device *d = sfp_container(device, struct sfp_device, dev);
    struct sfp_context *c = calloc(1, sizeof *c);
    int fd = -1, err;

    if (!c)
        return NULL;
    err = sfp_call(SF_OP_OPEN, &d->index, sizeof d->index, &c->handle, sizeof c->handle, NULL, &fd);
    if (!err && fd < 0) {
        sfp_call(SF_OP_CLOSE, &c->handle, sizeof c->handle, NULL, 0, NULL, NULL);
        err = EPROTO;
    }
    if (err) {
        free(c);
        errno = err;
        return NULL;
    }
    set_operations(&c->v);
    __atomic_add_fetch(&d->refs, 1, __ATOMIC_RELAXED);
    c->device = d;
    c->generation = sfp_generation;
    c->cookie = sfp_new_cookie();
    c->v.context.device = device;
    c->v.context.async_fd = fd;
    sfp_mark_fd(fd, true);
    c->v.context.num_comp_vectors = 1;
    /* some programs duplicate or fstat it; all commands go through the engine's socket */
    c->v.context.cmd_fd = (int)sfp_syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
    pthread_mutex_init(&c->v.context.mutex, NULL);
    return &c->v.context;
}

SFP_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct sfp_context *c = sfp_context(context);

    if (c->generation == sfp_generation)
        sfp_call(SF_OP_CLOSE, &c->handle, sizeof c->handle, NULL, 0, NULL, NULL);
    sfp_mark_fd(context->async_fd, false);
    if (context->async_fd >= 0)
        sfp_sys_close(context->async_fd);
    if (context->cmd_fd >= 0)
        sfp_sys_close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    put_device(c->device);
    free(c);
    return 0;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

SFP_EXPORT int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
    struct ibv_odp_caps odp;

    return query_device(c, attr, &odp);
}

/* Callers of this entry know a shorter ibv_port_attr: everything up to link_layer. */
SFP_EXPORT int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return query_port(c, port, (struct ibv_port_attr *)attr, 48);
}

SFP_EXPORT int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
    uint32_t req[3] = {sfp_context(c)->handle, port, (uint32_t)index};
    int err = sfp_call(SF_OP_QUERY_GID, req, sizeof req, gid, sizeof *gid, NULL, NULL);

    if (!err)
        return 0;
    errno = err;
    return -1;
}

SFP_EXPORT int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index, unsigned int *type)
{
    union ibv_gid gid;

    if (ibv_query_gid(c, port, (int)index, &gid))
        return -1;
    *type = SYSFS_GID_TYPE_IB;
    return 0;
}

static bool gid_is_set(const union ibv_gid *gid)
{
    return gid->global.subnet_prefix || gid->global.interface_id;
}

static void fill_gid_entry(const union ibv_gid *gid, uint32_t port, uint32_t index, void *to, size_t size)
{
    struct ibv_gid_entry e = {.gid = *gid, .gid_index = index, .port_num = port, .gid_type = IBV_GID_TYPE_IB};

    memset(to, 0, size);
    memcpy(to, &e, size < sizeof e ? size : sizeof e);
}

SFP_EXPORT int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                                 uint32_t flags, size_t size)
{
    union ibv_gid gid;

    if (flags)
        return EOPNOTSUPP;
    if (port > UINT8_MAX || ibv_query_gid(c, (uint8_t)port, (int)index, &gid))
        return EINVAL;
    if (!gid_is_set(&gid))
        return ENODATA;
    fill_gid_entry(&gid, port, index, entry, size);
    return 0;
}

SFP_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *c, struct ibv_gid_entry *entries, size_t max,
                                        uint32_t flags, size_t size)
{
    struct ibv_device_attr dev;
    size_t n = 0;
    int err;

    if (flags)
        return -EOPNOTSUPP;
    err = ibv_query_device(c, &dev);
    if (err)
        return -err;
    for (uint8_t port = 1; port <= dev.phys_port_cnt; port++) {
        struct ibv_port_attr attr;

        if ((err = query_port(c, port, &attr, sizeof attr)))
            return -err;
        for (int i = 0; i < attr.gid_tbl_len; i++) {
            union ibv_gid gid;

            if (ibv_query_gid(c, port, i, &gid) || !gid_is_set(&gid))
                continue;
            if (n == max)
                return -EINVAL;
            fill_gid_entry(&gid, port, (uint32_t)i, (char *)entries + n++ * size, size);
        }
    }
    return (ssize_t)n;
}

/* Programs ask for one entry after the other: the whole table comes with the first. Each question counts as a call. */
static int ask_pkey(const struct sfp_context *c, uint8_t port, int index, __be16 *pkey)
{
    static __thread struct {
        uint64_t cookie; /* the context's */
        uint32_t port, port_events;
        __be16 key[SF_PKEYS];
    } table;
    uint32_t req[2] = {c->handle, port}, port_events;
    int err = sfp_attach();

    if (err)
        return err;
    if (index < 0 || index >= (int)SF_PKEYS)
        return EINVAL;
    port_events = __atomic_load_n(&sfp_proc.arena->port_events, __ATOMIC_ACQUIRE);
    if (c->generation == sfp_generation && table.cookie == c->cookie && table.port == port &&
        table.port_events == port_events) {
        *pkey = table.key[index];
        return sfp_enter() ? 0 : errno;
    }
    table.cookie = 0;
    err = sfp_call(SF_OP_QUERY_PKEYS, req, sizeof req, table.key, sizeof table.key, NULL, NULL);
    if (err)
        return err;
    table.cookie = c->cookie;
    table.port = port;
    table.port_events = port_events;
    *pkey = table.key[index];
    return 0;
}

SFP_EXPORT int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
    int err = ask_pkey(sfp_context(c), port, index, pkey);

    if (!err)
        return 0;
    errno = err;
    return -1;
}

SFP_EXPORT int ibv_get_pkey_index(struct ibv_context *c, uint8_t port, __be16 pkey)
{
    __be16 have;

    for (int i = 0; ibv_query_pkey(c, port, i, &have) == 0; i++)
        if (have == pkey)
            return i;
    errno = ENOENT;
    return -1;
}

SFP_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];
    ssize_t n;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC); /* interposed: simulated sysfs */
    if (fd < 0)
        return -1;
    n = read(fd, buf, size);
    close(fd);
    if (n > 0) {
        if (buf[n - 1] == '\n')
            buf[--n] = 0;
        else if ((size_t)n < size)
            buf[n] = 0;
        else
            return -1;
    }
    return (int)n;
}
