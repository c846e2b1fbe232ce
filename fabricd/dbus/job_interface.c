/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs as objects, each at DBUS_JOBS/ID; and changes of a job for this object and the manager. */
#include "fabricd/dbus/internal.h"
#include "fabricd/jobs/orders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *job_path(const struct job *job)
{
    char *path = NULL;
    return sd_bus_path_encode(DBUS_JOBS, job->id, &path) < 0 ? NULL : path;
}

const char *job_class(const struct daemon *d, const struct job *job, const char **source)
{
    const struct policy_class *c = orders_class_of(d, job, source);
    return c ? c->name : "";
}

/* ---- the objects ------------------------------------------------------------------------------------------------- */

/* The job of a path; NULL: there is none. */
static const struct job *job_of_path(struct dbus *b, const char *path)
{
    char *id = NULL;
    if (sd_bus_path_decode(path, DBUS_JOBS, &id) <= 0)
        return NULL;
    const struct job *job = jobs_find(&b->d->jobs, id);
    free(id);
    return job;
}

static int on_find(sd_bus *bus, const char *path, const char *interface, void *arg, void **found, sd_bus_error *err)
{
    *found = arg; /* the path is looked up again: a job may end before its property is read */
    return job_of_path(arg, path) != NULL;
}

static int on_nodes(sd_bus *bus, const char *prefix, void *arg, char ***nodes, sd_bus_error *err)
{
    struct dbus *b = arg;
    char **list = calloc(b->d->jobs.n + 1, sizeof(char *));
    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < b->d->jobs.n; i++)
        if (!(list[i] = job_path(b->d->jobs.job[i]))) {
            while (i)
                free(list[--i]);
            free(list);
            return -ENOMEM;
        }
    *nodes = list;
    return 1;
}

static int get_job_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    struct dbus *b = arg;
    const struct job *job = job_of_path(b, path);
    const char *source;
    if (!job)
        return -ENOENT;
    const char *class_name = job_class(b->d, job, &source);
    const struct {
        const char *name, *value;
    } all[] = {{"Id", job->id},
               {"Class", class_name},
               {"Source", source},
               {"Given", job->class_name},
               {"Wish", job->wish},
               {"Account", job->account},
               {"Qos", job->qos},
               {"Partition", job->partition},
               {"Name", job->name},
               {"Cgroup", job->cgroup},
               {"SmallRatio", job->small_ratio}};
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!strcmp(property, all[i].name))
            return sd_bus_message_append(reply, "s", all[i].value);
    return -ENOENT;
}

static int get_job_number(sd_bus *bus, const char *path, const char *interface, const char *property,
                          sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    const struct job *job = job_of_path(arg, path);
    if (!job)
        return -ENOENT;
    if (!strcmp(property, "Since"))
        return sd_bus_message_append(reply, "t", (uint64_t)job->since * 1000000);
    if (!strcmp(property, "Run"))
        return sd_bus_message_append(reply, "i", (int32_t)job->run - 1);
    return sd_bus_message_append(reply, "u", !strcmp(property, "Lease") ? job->lease_s : job->uid);
}

/* The calls of a job's object, from permitted senders. */
static int set_own_class_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const struct job *job = job_of_path(b, sd_bus_message_get_path(m));
    const char *name;
    int rc = sd_bus_message_read(m, "s", &name);
    if (rc < 0)
        return rc;
    return job ? order_set_class(b, m, uid, job->id, name, err) : order_no_job(err, sd_bus_message_get_path(m));
}

static int on_set_own_class(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, set_own_class_known, err);
}

static int end_own_job_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const struct job *job = job_of_path(b, sd_bus_message_get_path(m));
    char id[FD_JOB_MAX];
    if (!job)
        return order_no_job(err, sd_bus_message_get_path(m));
    strcpy(id, job->id);
    return order_end(b, m, uid, id, 0, err);
}

static int on_end_own_job(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, end_own_job_known, err);
}

static const sd_bus_vtable job_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Id", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Class", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Given", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Wish", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Source", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Since", "t", get_job_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("User", "u", get_job_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Account", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Qos", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Partition", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Name", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Cgroup", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("SmallRatio", "s", get_job_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Lease", "u", get_job_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Run", "i", get_job_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_METHOD_WITH_ARGS("SetClass", SD_BUS_ARGS("s", class), SD_BUS_NO_RESULT, on_set_own_class,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("End", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, on_end_own_job, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int job_add(struct dbus *b)
{
    int rc = sd_bus_add_fallback_vtable(b->bus, NULL, DBUS_JOBS, DBUS_JOB, job_vtable, on_find, b);
    return rc < 0 ? rc : sd_bus_add_node_enumerator(b->bus, NULL, DBUS_JOBS, on_nodes, b);
}

void job_tell(struct dbus *b, const struct job *job, enum job_news news)
{
    char *path = job_path(job);
    if (!path)
        return;
    if (news == JOB_NEW)
        sd_bus_emit_object_added(b->bus, path);
    else if (news == JOB_CHANGED)
        sd_bus_emit_properties_changed(b->bus, path, DBUS_JOB, "Class", "Given", "Wish", "Source", "Since", "User",
                                       "Account", "Qos", "Partition", "Name", "Cgroup", "SmallRatio", "Lease", "Run",
                                       NULL);
    else
        sd_bus_emit_interfaces_removed(b->bus, path, DBUS_JOB, NULL);
    free(path);
}
