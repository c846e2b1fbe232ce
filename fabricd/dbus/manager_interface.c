/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon as an object: its properties, the jobs by their ids, and signals for changes. */
#include "fabricd/dbus/internal.h"
#include "fabricd/proto/message.h"
#include "fabricd/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- properties -------------------------------------------------------------------------------------------------- */

struct dbus_told {
    uint64_t generation;
    char state[64], applying[sizeof(((struct daemon *)0)->applying)];
    unsigned ports, differences, joins;
    struct rails rails;
    struct text managers; /* SubnetManagers without the time of the last look */
};

static int get_manager_text(sd_bus *bus, const char *path, const char *interface, const char *property,
                            sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    const struct daemon *d = ((struct dbus *)arg)->d;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    return sd_bus_message_append(reply, "s",
                                 !strcmp(property, "Version") ? MRMPI_VERSION
                                 : !strcmp(property, "Host")  ? host
                                 : !strcmp(property, "Role")  ? status_role(d)
                                 : !strcmp(property, "State") ? status_policy_state(d)
                                                              : d->applying);
}

static int get_manager_number(sd_bus *bus, const char *path, const char *interface, const char *property,
                              sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    const struct daemon *d = ((struct dbus *)arg)->d;
    if (!strcmp(property, "Generation"))
        return sd_bus_message_append(reply, "t", d->generation);
    return sd_bus_message_append(reply, "u",
                                 !strcmp(property, "Ports")         ? d->ports
                                 : !strcmp(property, "Differences") ? d->differences
                                 : !strcmp(property, "NumJoined")   ? d->joins.n
                                                                    : d->jobs.n);
}

static int append_class(sd_bus_message *reply, const struct policy_class *p, const struct class_levels *l)
{
    int rc = sd_bus_message_open_container(reply, 'r', "sdyay");
    if (rc >= 0)
        rc = sd_bus_message_append(reply, "sdy", p->name, l->share,
                                   l->vl_small == l->vl_bulk[0] ? l->sl_bulk[0] : l->sl_small);
    if (rc >= 0)
        rc = sd_bus_message_append_array(reply, 'y', l->sl_bulk, l->num_lanes);
    return rc < 0 ? rc : sd_bus_message_close_container(reply);
}

static int get_classes(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    const struct in_force *f = &((struct dbus *)arg)->d->current;
    int rc = sd_bus_message_open_container(reply, 'a', "(sdyay)");
    for (unsigned i = 0; f->valid && rc >= 0 && i < f->policy.num_classes; i++)
        rc = append_class(reply, &f->policy.classes[i], &f->tables.classes[i]);
    return rc < 0 ? rc : sd_bus_message_close_container(reply);
}

static int get_rails(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                     void *arg, sd_bus_error *err)
{
    const struct rails *r = &((struct dbus *)arg)->d->rails;
    int rc = sd_bus_message_open_container(reply, 'a', "(syysqu)");
    for (unsigned i = 0; rc >= 0 && i < r->n; i++)
        rc = sd_bus_message_append(reply, "(syysqu)", r->rail[i].device, r->rail[i].port, r->rail[i].usable,
                                   rails_state_name(r->rail[i].state), r->rail[i].lid, r->rail[i].rate_mbps);
    return rc < 0 ? rc : sd_bus_message_close_container(reply);
}

static int get_health(sd_bus *bus, const char *path, const char *interface, const char *property, sd_bus_message *reply,
                      void *arg, sd_bus_error *err)
{
    const struct rails *r = &((struct dbus *)arg)->d->rails;
    int rc = sd_bus_message_open_container(reply, 'a', "(sysdus)");
    for (unsigned i = 0; rc >= 0 && i < r->n; i++) {
        const struct rail_judgement *j = &r->judgement[i];
        if (j->known)
            rc = sd_bus_message_append(reply, "(sysdus)", r->rail[i].device, r->rail[i].port,
                                       rails_health_name(j->state), (double)j->weight / FD_HEALTHY, j->flaps, j->why);
    }
    return rc < 0 ? rc : sd_bus_message_close_container(reply);
}

/* ---- subnet managers, on a host that manages ---- */

/* A row of SubnetManagers. */
struct manager_row {
    const struct plane *plane;
    uint64_t guid;
    const char *node, *state;
    uint8_t priority;
    bool here;
    const struct sm_verdict *had;
};

typedef void manager_row_take(void *arg, const struct manager_row *row);

static void each_subnet_manager(const struct daemon *d, manager_row_take *take, void *arg)
{
    for (unsigned i = 0; d->manages && i < d->num_planes; i++) {
        const struct plane *p = &d->plane[i];
        struct manager_row row = {p, p->sm_guid, p->sm_node, "master", p->sm_priority, p->is_ours, &p->had};
        if (p->answers)
            take(arg, &row);
        for (unsigned k = 0; k < p->num_standbys; k++) {
            const struct plane_standby *s = &p->standby[k];
            row = (struct manager_row){p, s->guid, s->node, "no answer", s->priority, s->is_ours, &s->had};
            if (s->answers)
                row.state = planes_sm_states[s->state];
            take(arg, &row);
        }
    }
}

struct manager_reply {
    sd_bus_message *m;
    int rc;
};

static void append_subnet_manager(void *arg, const struct manager_row *row)
{
    struct manager_reply *r = arg;
    if (r->rc >= 0)
        r->rc = sd_bus_message_append(r->m, "(sytsysbtu)", row->plane->port.device, (uint8_t)row->plane->port.num,
                                      row->guid, row->node, row->priority, row->state, (int)row->here,
                                      (uint64_t)row->had->at * 1000000, row->had->differences);
}

static int get_subnet_managers(sd_bus *bus, const char *path, const char *interface, const char *property,
                               sd_bus_message *reply, void *arg, sd_bus_error *err)
{
    struct manager_reply r = {reply, sd_bus_message_open_container(reply, 'a', "(sytsysbtu)")};
    each_subnet_manager(((struct dbus *)arg)->d, append_subnet_manager, &r);
    return r.rc < 0 ? r.rc : sd_bus_message_close_container(reply);
}

/* Each look that finds a master moves the time of its row: no news. */
static void put_subnet_manager(void *arg, const struct manager_row *row)
{
    text_printf(arg, "%s/%d %" PRIx64 " %s %u %s %d %d %u\n", row->plane->port.device, row->plane->port.num, row->guid,
                row->node, row->priority, row->state, row->here, row->had->at != 0, row->had->differences);
}

/* ---- news ---- */

bool manager_tell(struct dbus *b)
{
    struct dbus_told now = {
        .generation = b->d->generation, .ports = b->d->ports, .differences = b->d->differences, .joins = b->d->joins.n};
    char *changed[11] = {NULL};
    unsigned n = 0;
    bool first = !b->told;
    if (first && !(b->told = calloc(1, sizeof(*b->told))))
        return false;
    snprintf(now.state, sizeof(now.state), "%s", status_policy_state(b->d));
    memcpy(now.applying, b->d->applying, sizeof(now.applying));
    now.rails = b->d->rails;
    if (now.generation != b->told->generation) {
        changed[n++] = "Generation";
        changed[n++] = "Classes";
    }
    if (strcmp(now.state, b->told->state))
        changed[n++] = "State";
    if (strcmp(now.applying, b->told->applying))
        changed[n++] = "Applying";
    if (now.ports != b->told->ports)
        changed[n++] = "Ports";
    if (now.differences != b->told->differences)
        changed[n++] = "Differences";
    if (!rails_equal(&now.rails, &b->told->rails)) {
        changed[n++] = "Rails";
        changed[n++] = "RailHealth";
    }
    if (now.joins != b->told->joins)
        changed[n++] = "NumJoined";
    each_subnet_manager(b->d, put_subnet_manager, &now.managers);
    if (strcmp(text_str(&now.managers), text_str(&b->told->managers)))
        changed[n++] = "SubnetManagers";
    bool other_policy = !first && now.generation != b->told->generation;
    text_free(&b->told->managers);
    *b->told = now;
    if (n)
        sd_bus_emit_properties_changed_strv(b->bus, DBUS_PATH, DBUS_MANAGER, changed);
    return other_policy;
}

void manager_forget(struct dbus *b)
{
    if (b->told)
        text_free(&b->told->managers);
    free(b->told);
    b->told = NULL;
}

void manager_tell_job(struct dbus *b, const struct job *job, enum job_news news)
{
    char *path = job_path(job);
    if (path && news != JOB_CHANGED) {
        const char *name = news == JOB_NEW ? "JobNew" : "JobRemoved";
        sd_bus_emit_signal(b->bus, DBUS_PATH, DBUS_MANAGER, name, "so", job->id, path);
        sd_bus_emit_properties_changed(b->bus, DBUS_PATH, DBUS_MANAGER, "NumJobs", NULL);
    }
    free(path);
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static int on_register_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    struct job job = {0};
    const char *id, *class_name;
    int rc = sd_bus_message_read(m, "ssu", &id, &class_name, &job.uid);
    if (rc >= 0)
        rc = order_text(job.id, sizeof(job.id), id, "id", false, err);
    if (rc >= 0)
        rc = order_text(job.class_name, sizeof(job.class_name), class_name, "class", true, err);
    if (rc >= 0 && job.uid == FD_UID_ANY)
        rc = sd_bus_error_setf(err, SD_BUS_ERROR_INVALID_ARGS, "user: whose job is it? %u is nobody's number", job.uid);
    if (rc >= 0)
        rc = order_options(m, &job, err);
    if (rc >= 0)
        rc = order_set(b, &job, uid, err);
    char *path = rc < 0 ? NULL : job_path(&job);
    if (path)
        rc = sd_bus_reply_method_return(m, "o", path);
    else if (rc >= 0)
        rc = -ENOMEM;
    free(path);
    return rc;
}

static int on_renew_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    struct job job = {.uid = FD_UID_ANY};
    const char *id;
    int rc = sd_bus_message_read(m, "s", &id);
    if (rc >= 0)
        rc = order_text(job.id, sizeof(job.id), id, "id", false, err);
    if (rc >= 0)
        rc = order_options(m, &job, err);
    return rc < 0 ? rc : order_renew(b, m, &job, uid, err);
}

static int on_renew(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, on_renew_known, err);
}

static int on_register(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, on_register_known, err);
}

static int set_job_class_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id, *class_name;
    int rc = sd_bus_message_read(m, "ss", &id, &class_name);
    return rc < 0 ? rc : order_set_class(b, m, uid, id, class_name, err);
}

static int on_set_job_class(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, set_job_class_known, err);
}

static int on_choose_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id, *class_name;
    int rc = sd_bus_message_read(m, "ss", &id, &class_name);
    return rc < 0 ? rc : order_choose(b, m, may ? FD_UID_ANY : uid, id, class_name, err);
}

static int on_choose(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, NULL, on_choose_known, err);
}

static int on_ratio_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id, *small_ratio;
    int rc = sd_bus_message_read(m, "ss", &id, &small_ratio);
    return rc < 0 ? rc : order_ratio(b, m, may ? FD_UID_ANY : uid, id, small_ratio, err);
}

static int on_set_ratio(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, NULL, on_ratio_known, err);
}

static int end_job_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id;
    int rc = sd_bus_message_read(m, "s", &id);
    return rc < 0 ? rc : order_end(b, m, uid, id, 0, err);
}

static int on_end_run_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id;
    uint32_t run;
    int rc = sd_bus_message_read(m, "su", &id, &run);
    if (rc >= 0)
        rc = order_good_run(run, err);
    return rc < 0 ? rc : order_end(b, m, uid, id, run + 1, err);
}

static int on_end_run(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, on_end_run_known, err);
}

static int on_end_job(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, DBUS_JOBS_ACTION, end_job_known, err);
}

/* ---- questions: of every user about own jobs, with the right to give orders about all ---------------------------- */

static int append_job(const struct daemon *d, sd_bus_message *reply, const struct job *job)
{
    const char *source, *class_name = job_class(d, job, &source);
    char *path = job_path(job);
    int rc = !path ? -ENOMEM
                   : sd_bus_message_append(reply, "(sossut)", job->id, path, class_name, source, job->uid,
                                           (uint64_t)job->since * 1000000);
    free(path);
    return rc;
}

static int list_jobs_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const struct jobs *j = &b->d->jobs;
    sd_bus_message *reply = NULL;
    int rc = reply_list_begin(m, "(sossut)", &reply);
    for (unsigned i = 0; rc >= 0 && i < j->n; i++)
        if (may || j->job[i]->uid == uid)
            rc = append_job(b->d, reply, j->job[i]);
    return reply_list_send(b, reply, rc);
}

static int on_list(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, NULL, list_jobs_known, err);
}

static int on_describe_known(struct dbus *b, sd_bus_message *m, uint32_t uid, bool may, sd_bus_error *err)
{
    const char *id, *source;
    int rc = sd_bus_message_read(m, "s", &id);
    if (rc < 0)
        return rc;
    const struct job *job = jobs_find(&b->d->jobs, id);
    if (!job || (!may && job->uid != uid))
        return sd_bus_error_setf(err, DBUS_NO_JOB, "there is no job '%s'%s", id, may ? "" : " of yours");
    const char *class_name = job_class(b->d, job, &source);
    return sd_bus_reply_method_return(m, "a{sv}", 15, "Run", "i", (int32_t)job->run - 1, "Id", "s", job->id, "Class",
                                      "s", class_name, "Given", "s", job->class_name, "Wish", "s", job->wish, "Source",
                                      "s", source, "Since", "t", (uint64_t)job->since * 1000000, "User", "u", job->uid,
                                      "Account", "s", job->account, "Qos", "s", job->qos, "Partition", "s",
                                      job->partition, "Name", "s", job->name, "Cgroup", "s", job->cgroup, "Lease", "u",
                                      job->lease_s, "SmallRatio", "s", job->small_ratio);
}

static int on_describe(sd_bus_message *m, void *arg, sd_bus_error *err)
{
    return sender_ask(arg, m, NULL, on_describe_known, err);
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable manager_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Version", "s", get_manager_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Host", "s", get_manager_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Role", "s", get_manager_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Generation", "t", get_manager_number, 0, CHANGES),
    SD_BUS_PROPERTY("State", "s", get_manager_text, 0, CHANGES),
    SD_BUS_PROPERTY("Applying", "s", get_manager_text, 0, CHANGES),
    SD_BUS_PROPERTY("Ports", "u", get_manager_number, 0, CHANGES),
    SD_BUS_PROPERTY("Differences", "u", get_manager_number, 0, CHANGES),
    SD_BUS_PROPERTY("Classes", "a(sdyay)", get_classes, 0, CHANGES),
    SD_BUS_PROPERTY("Rails", "a(syysqu)", get_rails, 0, CHANGES),
    SD_BUS_PROPERTY("RailHealth", "a(sysdus)", get_health, 0, CHANGES),
    SD_BUS_PROPERTY("NumJobs", "u", get_manager_number, 0, CHANGES),
    SD_BUS_PROPERTY("NumJoined", "u", get_manager_number, 0, CHANGES),
    SD_BUS_PROPERTY("SubnetManagers", "a(sytsysbtu)", get_subnet_managers, 0, CHANGES),
    SD_BUS_METHOD_WITH_ARGS("RegisterJob", SD_BUS_ARGS("s", id, "s", class, "u", user, "a{sv}", options),
                            SD_BUS_RESULT("o", job), on_register, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("RenewJob", SD_BUS_ARGS("s", id, "a{sv}", options), SD_BUS_NO_RESULT, on_renew,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("SetJobClass", SD_BUS_ARGS("s", id, "s", class), SD_BUS_NO_RESULT, on_set_job_class,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ChooseClass", SD_BUS_ARGS("s", id, "s", class), SD_BUS_NO_RESULT, on_choose,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("SetSmallRatio", SD_BUS_ARGS("s", id, "s", ratio), SD_BUS_NO_RESULT, on_set_ratio,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("EndJob", SD_BUS_ARGS("s", id), SD_BUS_NO_RESULT, on_end_job, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("EndRun", SD_BUS_ARGS("s", id, "u", run), SD_BUS_NO_RESULT, on_end_run,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ListJobs", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(sossut)", jobs), on_list,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("DescribeJob", SD_BUS_ARGS("s", id), SD_BUS_RESULT("a{sv}", job), on_describe,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("JoinPartition", SD_BUS_ARGS("s", id, "s", class, "as", hosts, "u", user, "a{sv}", options),
                            SD_BUS_RESULT("q", pkey, "s", said), join_on_join, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("LeavePartition", SD_BUS_ARGS("s", id, "i", run), SD_BUS_NO_RESULT, join_on_leave,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ListJoined", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(siqtas)", jobs), join_on_list,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ListGenerations", SD_BUS_NO_ARGS, SD_BUS_RESULT("a(ttsussb)", generations), policy_on_list,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("ShowGeneration", SD_BUS_ARGS("t", generation), SD_BUS_RESULT("s", text), policy_on_show,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("RollbackPolicy", SD_BUS_ARGS("x", generation, "b", partial),
                            SD_BUS_RESULT("t", generation, "s", said), policy_on_rollback, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL_WITH_ARGS("JobNew", SD_BUS_ARGS("s", id, "o", job), 0),
    SD_BUS_SIGNAL_WITH_ARGS("JobRemoved", SD_BUS_ARGS("s", id, "o", job), 0),
    SD_BUS_SIGNAL_WITH_ARGS("JobJoined", SD_BUS_ARGS("s", id, "q", pkey, "as", hosts), 0),
    SD_BUS_SIGNAL_WITH_ARGS("JobLeft", SD_BUS_ARGS("s", id), 0),
    SD_BUS_VTABLE_END,
};

int manager_add(struct dbus *b)
{
    int rc = sd_bus_add_object_vtable(b->bus, NULL, DBUS_PATH, DBUS_MANAGER, manager_vtable, b);
    return rc < 0 ? rc : sd_bus_add_object_manager(b->bus, NULL, DBUS_PATH);
}
