/* SPDX-License-Identifier: BSD-3-Clause */
/* See keep.h. */
#include "fabricd/apply/keep.h"
#include "fabricd/fabric/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PLANES_MAX 65536 /* bytes of the file `planes` */

bool keep_is_same(const struct in_force *a, const struct in_force *b)
{
    return a->valid && b->valid && a->text.len == b->text.len &&
           !memcmp(text_str(&a->text), text_str(&b->text), a->text.len) && in_force_same_tables(a, b);
}

void keep_number(const struct applier *a, const struct task *t, struct in_force *next)
{
    struct policy_lock given;
    struct diag d = {0};
    bool told = (!a->sms.n || t->kind == TASK_FOLLOW) &&
                lock_parse(&given, text_str(&t->lock_text), t->lock_text.len, &d) && given.generation &&
                given.digest == lock_digest(text_str(&next->text), next->text.len);
    text_free(&d.out);
    store_stamp(next, told                              ? given.generation
                      : keep_is_same(&t->current, next) ? t->generation
                                                        : store_next_number(a->conf, t->generation));
}

/* ---- files of a generation ---- */

struct files {
    struct generation_file file[STORE_FILES_MAX];
    char name[2 * CONF_OPENSM_MAX][32];
    struct text planes, about;
    unsigned n;
};

static void add(struct files *f, const char *name, const struct text *t)
{
    if (f->n < STORE_FILES_MAX)
        f->file[f->n++] = (struct generation_file){name, text_str(t), t->len};
}

/* The file `planes` has lines for each opensm: the file of its configuration, and the file of its partitions. */
static void add_configs(struct files *f, const struct sms *sms, bool old)
{
    for (unsigned i = 0; i < sms->n; i++) {
        snprintf(f->name[i], sizeof(f->name[i]), "opensm-%u.conf", i + 1);
        text_printf(&f->planes, "%s %s\n", f->name[i], sms->sm[i].opensm.config);
        add(f, f->name[i], old ? &sms->sm[i].old_conf : &sms->sm[i].new_conf);
        const struct partition_file *p = old ? &sms->sm[i].old_part : &sms->sm[i].new_part;
        char *name = f->name[CONF_OPENSM_MAX + i];
        if (!p->there)
            continue;
        snprintf(name, sizeof(f->name[0]), "partitions-%u.conf", i + 1);
        text_printf(&f->planes, "%s %s\n", name, sms->sm[i].partitions);
        add(f, name, &p->text);
    }
    add(f, "planes", &f->planes);
}

static void add_about(struct files *f, const struct task *t)
{
    static const char *const by[] = {[TASK_APPLY] = "apply",   [TASK_DIFF] = "diff",     [TASK_VERIFY] = "verify",
                                     [TASK_FOLLOW] = "follow", [TASK_FORGET] = "forget", [TASK_MEMBERS] = "members"};
    bool rollback = t->flags & FD_CHANGE_ROLLBACK;
    text_printf(&f->about, "at: %lld\nby: %s\nname: ", (long long)time(NULL), rollback ? "rollback" : by[t->kind]);
    text_yaml_string(&f->about, t->name);
    text_printf(&f->about, "\nafter: %" PRIu64 "\n", t->generation);
    if (t->client)
        text_printf(&f->about, "uid: %u\n", t->uid);
    add(f, "about", &f->about);
}

static void free_files(struct files *f)
{
    text_free(&f->planes);
    text_free(&f->about);
}

int keep_write(const struct applier *a, const struct task *t, const struct in_force *next,
               char name[GENERATION_NAME_MAX])
{
    struct files f = {0};
    add_configs(&f, &a->sms, false);
    add_about(&f, t);
    int rc = store_write(a->conf, next, f.file, f.n, name);
    free_files(&f);
    return rc;
}

void keep_intend(const struct applier *a, struct store_intent *i)
{
    i->n = a->sms.n;
    for (unsigned k = 0; k < i->n; k++) {
        snprintf(i->config[k], sizeof(i->config[k]), "%s", a->sms.sm[k].opensm.config);
        snprintf(i->partitions[k], sizeof(i->partitions[k]), "%s", a->sms.sm[k].partitions);
    }
}

int keep_result(const struct applier *a, const char *generation, const char *what, const struct text *planes)
{
    struct text t = {0};
    text_printf(&t, "result: %s\n", what);
    if (planes)
        text_printf(&t, "planes: %s\n", text_str(planes));
    int rc = store_tell(a->conf, generation, "result", &t);
    text_free(&t);
    return rc;
}

int keep_save(const struct applier *a, const struct task *t, const struct in_force *next)
{
    char name[GENERATION_NAME_MAX];
    struct files f = {0};
    if (keep_is_same(&t->current, next) && lock_equal(&t->current.lock, &next->lock) &&
        next->lock.generation == t->current.lock.generation && next->lock.digest == t->current.lock.digest)
        return 0;
    add_about(&f, t);
    int rc = store_write(a->conf, next, f.file, f.n, name);
    free_files(&f);
    if (!rc)
        rc = store_commit(a->conf, name);
    if (!rc)
        keep_result(a, name, "in force", NULL);
    return rc;
}

int keep_before(const struct applier *a, const struct snapshot *ports)
{
    char name[GENERATION_NAME_MAX];
    struct in_force nothing = {0};
    struct files f = {0};
    struct text tables = {0};
    snapshot_text(ports, &tables);
    add_configs(&f, &a->sms, true);
    add(&f, "ports", &tables);
    int rc = store_write(a->conf, &nothing, f.file, f.n, name);
    text_free(&tables);
    free_files(&f);
    return rc;
}

struct snapshot *keep_load_before(const struct applier *a, char name[GENERATION_NAME_MAX])
{
    struct text tables = {0}, why = {0};
    struct snapshot *s = NULL;
    *name = 0;
    if (!generation_find(a->conf->state, 0, name) &&
        !generation_read(a->conf->state, name, "ports", STORE_PORTS_MAX, &tables, &why))
        s = snapshot_parse(text_str(&tables));
    text_free(&tables);
    text_free(&why);
    return s;
}

int keep_load_config(const struct applier *a, const char *name, const char *config, size_t max, struct text *out)
{
    struct text planes = {0}, why = {0};
    int rc = *name ? generation_read(a->conf->state, name, "planes", PLANES_MAX, &planes, &why) : -ENOENT,
        found = -ENOENT;
    for (char *line, *rest = rc ? NULL : planes.s; found == -ENOENT && (line = strsep(&rest, "\n"));) {
        char *path = strchr(line, ' ');
        if (!path || strcmp(path + 1, config))
            continue;
        *path = 0;
        found = generation_read(a->conf->state, name, line, max, out, &why);
    }
    text_free(&planes);
    text_free(&why);
    return rc ? rc : found;
}

/* ---- other hosts ---- */

int keep_publish_rollback(const struct applier *a, const struct task *t, const struct in_force *f)
{
    int rc = f->valid ? store_publish_policy(a->conf, f) : store_publish_none(a->conf, f);
    if (rc && rc != -ENOENT) {
        manager_say(a->m, t,
                    "warning: %s%s could not be written (%s): hosts that follow it do not hear of this; it is tried "
                    "again at each look",
                    f->valid ? "" : "the lock beside ", a->conf->policy, strerror(-rc));
        return store_note_unpublished(a->conf);
    }
    store_published(a->conf);
    if (!f->valid && !rc)
        manager_say(a->m, t, "hosts that follow %s are told by the lock beside it that no policy is in force",
                    a->conf->policy);
    return 0;
}

void keep_publish(const struct applier *a, const struct task *t, const struct in_force *f)
{
    if (a->sms.n && t->kind == TASK_VERIFY && store_is_unpublished(a->conf))
        keep_publish_rollback(a, t, f);
    int rc = a->sms.n && f->valid && t->kind != TASK_FOLLOW ? store_publish(a->conf, f) : 0;
    if (rc == -EXDEV && t->kind == TASK_APPLY)
        manager_say(a->m, t, "note: %s is another policy; hosts that follow it go on with the one before",
                    a->conf->policy);
    else if (rc && rc != -EXDEV && rc != -ENOENT)
        manager_say(a->m, t,
                    "warning: the lock beside %s could not be written (%s): hosts that follow it do not hear of "
                    "this; it is tried again at each look",
                    a->conf->policy, strerror(-rc));
}
