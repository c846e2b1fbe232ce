/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming messages are checked here, once, before anything looks at them. */
#include "fabricd/proto/message.h"
#include "fabricd/proto/ratio.h"

#include <errno.h>
#include <string.h>

bool message_good_text(const char *s, size_t size, bool may_be_empty)
{
    size_t n = strnlen(s, size);
    if (n == size || (!n && !may_be_empty))
        return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] < 0x20 || s[i] > 0x7e)
            return false;
    return true;
}

static int check_job(const struct fd_job *j)
{
    bool good = message_good_text(j->job, sizeof(j->job), false) &&
                message_good_text(j->class_name, sizeof(j->class_name), true) &&
                message_good_text(j->account, sizeof(j->account), true) &&
                message_good_text(j->name, sizeof(j->name), true) && message_good_text(j->qos, sizeof(j->qos), true) &&
                message_good_text(j->partition, sizeof(j->partition), true) &&
                message_good_text(j->wish, sizeof(j->wish), true) &&
                message_good_text(j->cgroup, sizeof(j->cgroup), true) && j->lease_s <= FD_LEASE_MAX &&
                j->run <= FD_RUN_MAX &&
                (!(j->flags & FD_JOB_RATIO) || ratio_good(&(struct ratio){j->ratio_small, j->ratio_large}));
    return good ? 0 : -EINVAL;
}

/* Names with one space between two. */
static bool good_hosts(const char *s, size_t len)
{
    size_t name = 0;
    for (size_t i = 0; i < len; i++) {
        bool space = s[i] == ' ';
        if (s[i] < ' ' || s[i] > '~' || (space && (!name || i + 1 == len)) || name > 64)
            return false;
        name = space ? 0 : name + 1;
    }
    return len && name <= 64;
}

static int check_join(const struct fd_join *m, size_t len)
{
    if (len > sizeof(*m) + FD_HOSTS_MAX)
        return -EPROTO;
    return good_hosts((const char *)(m + 1), len - sizeof(*m)) ? check_job(&m->job) : -EINVAL;
}

/* Its id may be empty. */
static int check_list(const struct fd_job *j)
{
    return message_good_text(j->job, sizeof(j->job), true) ? 0 : -EINVAL;
}

static int check_port(const char device[FD_DEV_MAX], uint8_t port)
{
    return message_good_text(device, FD_DEV_MAX, false) && !strchr(device, '/') && port ? 0 : -EINVAL;
}

static int check_where(const struct fd_where *w)
{
    return w->guid ? check_port(w->device, w->port) : -EINVAL;
}

/* IBTA volume 1, 4.1.3: unicast LIDs, and a base LID has LMC zero bits at its end */
#define LID_MAX 0xbfffu
#define LMC_MAX 7u
static int check_paths(const struct fd_paths *m)
{
    bool good = m->lid && m->lid <= LID_MAX && m->lmc <= LMC_MAX && !(m->lid & ((1u << m->lmc) - 1));
    return good ? check_port(m->device, m->port) : -EINVAL;
}

static int check_ends(const struct fd_ends *m)
{
    return message_good_text(m->from, sizeof(m->from), false) && message_good_text(m->to, sizeof(m->to), false)
               ? 0
               : -EINVAL;
}

static int check_name(const struct fd_name *m)
{
    bool good = m->what >= FD_NAME_PUBLISH && m->what <= FD_NAME_WITHDRAW &&
                message_good_text(m->name, sizeof(m->name), false) &&
                message_good_text(m->value, sizeof(m->value), m->what != FD_NAME_PUBLISH);
    return good ? 0 : -EINVAL;
}

static int check_seen(const struct fd_seen *m)
{
    return check_port(m->device, m->port);
}

static int check_rail(const struct fd_rail_order *m)
{
    return check_port(m->device, m->port);
}

static int check_apply(const struct fd_apply *a, size_t len)
{
    if (len < sizeof(*a) || a->lock_length > FD_LOCK_MAX || len - sizeof(*a) < a->lock_length ||
        len - sizeof(*a) - a->lock_length > FD_POLICY_MAX)
        return -EPROTO;
    return message_good_text(a->name, sizeof(a->name), false) ? 0 : -EINVAL;
}

static int check_change(const struct fd_change *m, size_t len)
{
    bool rollback = m->flags & FD_CHANGE_ROLLBACK;
    if (len < sizeof(*m) || m->lock_length > FD_LOCK_MAX || len - sizeof(*m) < m->lock_length ||
        len - sizeof(*m) - m->lock_length > FD_POLICY_MAX || (rollback && len != sizeof(*m)))
        return -EPROTO;
    return message_good_text(m->name, sizeof(m->name), false) ? 0 : -EINVAL;
}

int message_check(const void *msg, size_t len)
{
    const struct fd_header *h = msg;
    if (len < sizeof(*h) || len > FD_MSG_MAX || h->magic != FD_MAGIC || h->version != FD_VERSION || h->length != len)
        return -EPROTO;
    switch (h->type) {
    case FD_HELLO:
        if (len != sizeof(struct fd_hello))
            return -EPROTO;
        return message_good_text(((const struct fd_hello *)msg)->job, FD_JOB_MAX, true) ? 0 : -EINVAL;
    case FD_WHERE:
        return len == sizeof(struct fd_where) ? check_where(msg) : -EPROTO;
    case FD_PATHS:
        return len == sizeof(struct fd_paths) ? check_paths(msg) : -EPROTO;
    case FD_PATHS_SHOW:
        return len == sizeof(struct fd_ends) ? check_ends(msg) : -EPROTO;
    case FD_READS:
        return len == sizeof(struct fd_reads) ? 0 : -EPROTO;
    case FD_NAME:
        return len == sizeof(struct fd_name) ? check_name(msg) : -EPROTO;
    case FD_SEEN:
        return len == sizeof(struct fd_seen) ? check_seen(msg) : -EPROTO;
    case FD_RAIL_DRAIN:
    case FD_RAIL_UNDRAIN:
    case FD_RAIL_SHOW:
        return len == sizeof(struct fd_rail_order) ? check_rail(msg) : -EPROTO;
    case FD_STATUS:
    case FD_VERIFY:
    case FD_RAIL_LIST:
    case FD_LOCK:
    case FD_HISTORY:
    case FD_METRICS:
        return len == sizeof(*h) ? 0 : -EPROTO;
    case FD_APPLY:
    case FD_DIFF:
        return check_apply(msg, len);
    case FD_CHANGE:
        return len < sizeof(struct fd_change) ? -EPROTO : check_change(msg, len);
    case FD_SHOW:
        return len == sizeof(struct fd_show) ? 0 : -EPROTO;
    case FD_FORGET:
        if (len != sizeof(struct fd_class))
            return -EPROTO;
        return message_good_text(((const struct fd_class *)msg)->class_name, FD_NAME_MAX, false) ? 0 : -EINVAL;
    case FD_JOIN:
        return len < sizeof(struct fd_join) ? -EPROTO : check_join(msg, len);
    case FD_LEAVE:
        return len == sizeof(struct fd_job) ? check_job(msg) : -EPROTO;
    case FD_JOIN_LIST:
    case FD_JOB_LIST:
        return len == sizeof(struct fd_job) ? check_list(msg) : -EPROTO;
    case FD_JOB_SET:
    case FD_JOB_DEL:
    case FD_JOB_CHOOSE:
    case FD_JOB_GIVE:
        return len == sizeof(struct fd_job) ? check_job(msg) : -EPROTO;
    default:
        return -EPROTO;
    }
}
