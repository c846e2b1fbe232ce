/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the bus, from start to end, again and again: see dbus.h. */
#include "fabricd/dbus/dbus.h"
#include "fabricd/dbus/internal.h"
#include "fabricd/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_S 1u
#define RETRY_MOST_S  60u /* between two tries to get on the bus */

static int on_retry(sd_event_source *source, uint64_t usec, void *arg);

/* ---- news of the daemon ------------------------------------------------------------------------------------------ */

static void on_job_news(void *arg, const struct job *job, enum job_news news)
{
    struct dbus *b = arg;
    if (!b->named)
        return;
    manager_tell_job(b, job, news);
    job_tell(b, job, news);
}

static void on_state(void *arg)
{
    struct dbus *b = arg;
    if (b->named && manager_tell(b))
        for (unsigned i = 0; i < b->d->jobs.n; i++)
            job_tell(b, b->d->jobs.job[i], JOB_CHANGED);
}

static void on_joined(void *arg, const char *job, const struct join *join)
{
    struct dbus *b = arg;
    if (!b->named)
        return;
    join_tell(b, job, join);
    manager_tell(b);
}

static void on_said(void *arg, uint64_t asker, const char *line, size_t len)
{
    waiting_said(arg, asker, line, len);
}

static void on_task_done(void *arg, uint64_t asker, int status)
{
    waiting_done(arg, asker, status);
}

static void on_user(void *arg)
{
    join_user_known(arg);
}

static const struct daemon_listener listener = {
    .job = on_job_news, .state = on_state, .joined = on_joined, .user = on_user, .said = on_said, .done = on_task_done};

/* ---- the connection ---------------------------------------------------------------------------------------------- */

static void leave(struct dbus *b)
{
    sender_forget(b);
    waiting_forget(b);
    join_forget(b);
    b->named = false;
    b->request = sd_bus_slot_unref(b->request);
    b->bus = sd_bus_close_unref(b->bus);
}

/* Once for each reason, not for each try. */
static void log_trouble(struct dbus *b, int rc)
{
    if (rc == b->trouble)
        return;
    b->trouble = rc;
    log_info("not on the system bus: %s; jobs are told over the socket alone", strerror(-rc));
}

static void try_later(struct dbus *b, int rc)
{
    log_trouble(b, rc);
    leave(b);
    if (!b->retry && sd_event_add_time_relative(b->d->event, &b->retry, CLOCK_MONOTONIC, 0, 0, on_retry, b) < 0)
        return;
    sd_event_source_set_time_relative(b->retry, (uint64_t)b->retry_s * 1000000);
    sd_event_source_set_enabled(b->retry, SD_EVENT_ONESHOT);
    b->retry_s = 2 * b->retry_s < RETRY_MOST_S ? 2 * b->retry_s : RETRY_MOST_S;
}

static int on_name(sd_bus_message *answer, void *arg, sd_bus_error *err)
{
    struct dbus *b = arg;
    if (sd_bus_message_is_method_error(answer, NULL)) {
        try_later(b, -sd_bus_message_get_errno(answer));
        return 1;
    }
    uint32_t how = 0;
    sd_bus_message_read(answer, "u", &how);
    if (how != 1 && how != 4) { /* primary owner, or already so */
        try_later(b, -EEXIST);
        return 1;
    }
    b->named = true;
    b->trouble = 0;
    b->retry_s = RETRY_FIRST_S;
    log_info("on the system bus as %s", DBUS_NAME);
    manager_tell(b);
    return 1;
}

static int on_gone(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    try_later(arg, -ECONNRESET);
    return 1;
}

static int join_bus(struct dbus *b)
{
    int rc = sd_bus_new(&b->bus);
    const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
    if (rc >= 0)
        rc = sd_bus_set_address(b->bus, address ? address : "unix:path=/run/dbus/system_bus_socket");
    if (rc >= 0)
        rc = sd_bus_set_bus_client(b->bus, 1);
    if (rc >= 0)
        rc = sd_bus_set_description(b->bus, "fabricd");
    if (rc >= 0)
        rc = sd_bus_attach_event(b->bus, b->d->event, SD_EVENT_PRIORITY_NORMAL);
    if (rc >= 0)
        rc = manager_add(b);
    if (rc >= 0)
        rc = job_add(b);
    if (rc >= 0)
        rc = sd_bus_match_signal_async(b->bus, NULL, "org.freedesktop.DBus.Local", NULL, "org.freedesktop.DBus.Local",
                                       "Disconnected", on_gone, NULL, b);
    if (rc >= 0)
        rc = sd_bus_start(b->bus);
    if (rc >= 0)
        rc = sd_bus_request_name_async(b->bus, &b->request, DBUS_NAME, 0, on_name, b);
    return rc;
}

static void try_now(struct dbus *b)
{
    int rc = join_bus(b);
    if (rc < 0)
        try_later(b, rc);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *arg)
{
    struct dbus *b = arg;
    try_now(b);
    return 0;
}

struct dbus *dbus_start(struct daemon *d)
{
    struct dbus *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->d = d;
    b->retry_s = RETRY_FIRST_S;
    d->listener = &listener;
    d->listener_arg = b;
    try_now(b);
    return b;
}

void dbus_stop(struct dbus *b)
{
    if (!b)
        return;
    b->d->listener = NULL;
    while (b->bus && sd_bus_process(b->bus, NULL) > 0) /* pending answers are sent; nothing is waited for */
        ;
    leave(b);
    manager_forget(b);
    sd_event_source_unref(b->retry);
    free(b);
}
