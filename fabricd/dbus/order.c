/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of jobs by calls, on either object: the daemon's orders, with the bus's errors. */
#include "fabricd/dbus/internal.h"
#include "fabricd/proto/message.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/subscribers.h"

#include <errno.h>
#include <string.h>

int order_no_job(sd_bus_error *err, const char *id)
{
    return sd_bus_error_setf(err, DBUS_NO_JOB, "there is no job '%s'", id);
}

int order_text(char *to, size_t size, const char *s, const char *what, bool may_be_empty, sd_bus_error *err)
{
    size_t n = strlen(s);
    if (n >= size || !message_good_text(s, n + 1, may_be_empty))
        return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS, "%s: %s%zu printable ASCII characters at most", what,
                                 may_be_empty ? "" : "one, and ", size - 1);
    memset(to, 0, size);
    memcpy(to, s, n);
    return 0;
}

/* The result of an order about a job. */
static int outcome(struct dbus *b, int rc, const char *id, struct text *why, sd_bus_error *err)
{
    if (rc == -ENOENT)
        rc = order_no_job(err, id);
    else if (rc == -EINVAL || rc == -EPERM || rc == -EBADR)
        rc = sd_bus_error_setf(err,
                               rc == -EINVAL  ? DBUS_NO_CLASS
                               : rc == -EPERM ? DBUS_NOT_FREE
                                              : SD_BUS_ERROR_INVALID_ARGS,
                               "%.*s", (int)strcspn(text_str(why), "\n"), text_str(why));
    else if (rc)
        rc = sd_bus_error_setf(err, DBUS_UNKEPT, "%s: %s", b->d->jobs.journal.path, strerror(-rc));
    else
        subscribers_publish(b->d);
    text_free(why);
    return rc;
}

int order_set(struct dbus *b, const struct job *job, uint32_t uid, sd_bus_error *err)
{
    struct text why = {0};
    return outcome(b, orders_job_set(b->d, job, uid, &why), job->id, &why, err);
}

int order_renew(struct dbus *b, sd_bus_message *m, const struct job *job, uint32_t uid, sd_bus_error *err)
{
    struct text why = {0};
    int rc = outcome(b, orders_job_renew(b->d, job, uid, &why), job->id, &why, err);
    return rc < 0 ? rc : sd_bus_reply_method_return(m, NULL);
}

int order_set_class(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *class_name,
                    sd_bus_error *err)
{
    char name[FD_NAME_MAX];
    struct text why = {0};
    int rc = order_text(name, sizeof(name), class_name, "class", true, err);
    if (rc >= 0)
        rc = outcome(b, orders_job_give(b->d, id, name, uid, &why), id, &why, err);
    return rc < 0 ? rc : sd_bus_reply_method_return(m, NULL);
}

int order_choose(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *class_name,
                 sd_bus_error *err)
{
    char wish[FD_NAME_MAX];
    struct text why = {0};
    int rc = order_text(wish, sizeof(wish), class_name, "class", true, err);
    if (rc >= 0)
        rc = outcome(b, orders_job_choose(b->d, id, wish, uid, &why), id, &why, err);
    return rc < 0 ? rc : sd_bus_reply_method_return(m, NULL);
}

int order_ratio_good(const char *small_ratio, bool may_be_empty, sd_bus_error *err)
{
    struct ratio r;
    if ((may_be_empty && !*small_ratio) || !strcmp(small_ratio, RATIO_NONE) || ratio_parse(small_ratio, &r))
        return 0;
    return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS,
                             "small_ratio is '%.32s'; allowed: SMALL:LARGE, 0 to 1000 and 1 to 1000, as 1:99; none",
                             small_ratio);
}

int order_ratio(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, const char *small_ratio,
                sd_bus_error *err)
{
    struct text why = {0};
    int rc = order_ratio_good(small_ratio, false, err);
    if (rc >= 0)
        rc = outcome(b, orders_job_ratio(b->d, id, small_ratio, uid), id, &why, err);
    return rc < 0 ? rc : sd_bus_reply_method_return(m, NULL);
}

int order_end(struct dbus *b, sd_bus_message *m, uint32_t uid, const char *id, uint32_t run, sd_bus_error *err)
{
    struct text why = {0};
    int rc = outcome(b, orders_job_end(b->d, id, run, uid), id, &why, err);
    return rc < 0 ? rc : sd_bus_reply_method_return(m, NULL);
}

/* ---- options: facts of a job ---- */

static int read_lease(sd_bus_message *m, struct job *job, sd_bus_error *err)
{
    int rc = sd_bus_message_read(m, "v", "u", &job->lease_s);
    if (rc >= 0 && (!job->lease_s || job->lease_s > FD_LEASE_MAX))
        return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS, "lease is %u; allowed: 1 to %u seconds", job->lease_s,
                                 FD_LEASE_MAX);
    return rc;
}

int order_good_run(uint32_t run, sd_bus_error *err)
{
    if (run <= FD_RUN_MAX)
        return 0;
    return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS, "run is %u; allowed: 0 to %u", run, FD_RUN_MAX);
}

static int read_run(sd_bus_message *m, struct job *job, sd_bus_error *err)
{
    int rc = sd_bus_message_read(m, "v", "u", &job->run);
    if (rc >= 0)
        rc = order_good_run(job->run, err);
    job->run++;
    return rc;
}

int order_options(sd_bus_message *m, struct job *job, sd_bus_error *err)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } options[] = {{"account", job->account, sizeof(job->account)},
                   {"qos", job->qos, sizeof(job->qos)},
                   {"partition", job->partition, sizeof(job->partition)},
                   {"name", job->name, sizeof(job->name)},
                   {"wish", job->wish, sizeof(job->wish)},
                   {"cgroup", job->cgroup, sizeof(job->cgroup)},
                   {"small_ratio", job->small_ratio, sizeof(job->small_ratio)}};
    const unsigned n = sizeof(options) / sizeof(options[0]);
    const char *key, *value;
    int rc = sd_bus_message_enter_container(m, 'a', "{sv}");
    while (rc >= 0 && (rc = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
        unsigned i = 0;
        rc = sd_bus_message_read(m, "s", &key);
        while (rc >= 0 && i < n && strcmp(key, options[i].name))
            i++;
        if (rc >= 0 && i == n && !strcmp(key, "lease"))
            rc = read_lease(m, job, err);
        else if (rc >= 0 && i == n && !strcmp(key, "run"))
            rc = read_run(m, job, err);
        else if (rc >= 0 && i == n)
            return sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS,
                                     "no such option: '%s'; allowed: account, qos, "
                                     "partition, name, wish, cgroup, lease, run, small_ratio",
                                     key);
        else if (rc >= 0 && (rc = sd_bus_message_read(m, "v", "s", &value)) >= 0)
            rc = order_text(options[i].to, options[i].size, value, key, true, err);
        if (rc >= 0)
            rc = sd_bus_message_exit_container(m);
    }
    if (rc >= 0)
        rc = order_ratio_good(job->small_ratio, true, err);
    return rc < 0 ? rc : sd_bus_message_exit_container(m);
}
