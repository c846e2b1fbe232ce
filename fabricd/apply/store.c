/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy in force on disk: see store.h. */
#include "fabricd/apply/store.h"
#include "fabricd/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void state_path(const struct conf *c, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", c->state, name);
}

/* ---- what a daemon that was killed has left ---- */

static void clean_directory(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        if (text_is_unfinished(e->d_name))
            unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
}

static void clean_generation(void *arg, const char *name, uint64_t number)
{
    const struct conf *c = arg;
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/generations/%s", c->state, name);
    clean_directory(path);
}

static void clean(const struct conf *c)
{
    char path[PATH_MAX + 32];
    clean_directory(c->state);
    generation_each(c->state, clean_generation, (void *)c);
    state_path(c, "reserve", path, sizeof(path)); /* of a version before */
    unlink(path);
}

/* ---- opening ---- */

static bool can_be_read_still(int rc)
{
    return rc == -EROFS || rc == -EACCES || rc == -EPERM || rc == -ENOSPC || rc == -EDQUOT;
}

/* Without a lock file and without the right to make one, there is nothing that another daemon could write meanwhile. */
static int open_lock(const struct conf *c, const char *path)
{
    if (mkdir(c->state, 0700) && errno != EEXIST)
        return -errno;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* A user with write access there can give himself a class, or have this process write to the target of a link. */
static const char *what_is_wrong(const struct stat *st, bool last)
{
    bool others = st->st_mode & (S_IWGRP | S_IWOTH);
    if (st->st_uid && st->st_uid != geteuid())
        return "it belongs to another user";
    if (S_ISLNK(st->st_mode))
        return last ? "it is a symbolic link" : NULL;
    if (others && (last || !(st->st_mode & S_ISVTX)))
        return "others can write there";
    return NULL;
}

/* Each directory on the way. A user who may rename a directory may replace it. */
static bool is_safe_way(const char *dir)
{
    char path[PATH_MAX];
    bool safe = true;
    int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s", dir);
    for (char *name, *rest = path; safe && at >= 0 && (name = strsep(&rest, "/"));) {
        struct stat st;
        if (!*name)
            continue;
        bool last = !rest || !rest[strspn(rest, "/")];
        if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
            break; /* a missing part shows at its use */
        const char *wrong = what_is_wrong(&st, last);
        size_t len = (size_t)(name - path) + strlen(name);
        if (wrong && last)
            log_error("%s is not used: %s; it must be root's, and writable for no other user", dir, wrong);
        else if (wrong)
            log_error(
                "%s is not used: %.*s is on the way there, and %s; it must be root's, and writable for no other user",
                dir, (int)len, dir, wrong);
        safe = !wrong;
        int next = safe ? openat(at, name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        close(at);
        at = next;
    }
    if (at >= 0)
        close(at);
    return safe;
}

/* The way as given, and the way behind its links. */
static bool is_ours_alone(const char *dir)
{
    char *real = realpath(dir, NULL);
    bool safe = is_safe_way(dir) && (!real || is_safe_way(real));
    free(real);
    return safe;
}

int store_open(const struct conf *c, int *lock_fd)
{
    char path[PATH_MAX + 32];
    if (!is_ours_alone(c->state))
        return -EPERM;
    state_path(c, "lock", path, sizeof(path));
    int fd = open_lock(c, path);
    if (fd < 0 && can_be_read_still(fd)) {
        log_warn("%s: %s: what it has is served, and what cannot be kept there is refused", c->state, strerror(-fd));
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return 0;
    }
    if (fd < 0) {
        log_error("%s: %s", path, strerror(-fd));
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        int rc = -errno;
        log_error("%s: %s", path, rc == -EWOULDBLOCK ? "another fabricd uses this state directory" : strerror(-rc));
        close(fd);
        return rc;
    }
    clean(c);
    *lock_fd = fd;
    return 0;
}

/* ---- writing ---- */

static int not_kept(const struct conf *c, const char *what, int rc)
{
    if (rc)
        log_event(LOG_STATE_NOT_KEPT, SD_ERR, "%s/%s: %s", c->state, what, strerror(-rc));
    return rc;
}

void store_stamp(struct in_force *f, uint64_t generation)
{
    f->lock.generation = generation;
    f->lock.digest = f->text.len ? lock_digest(f->text.s, f->text.len) : 0;
}

uint64_t store_next_number(const struct conf *c, uint64_t current)
{
    uint64_t last = generation_last(c->state);
    return (last > current ? last : current) + 1;
}

static void add_file(struct generation_file *file, unsigned *n, const char *name, const struct text *t)
{
    file[(*n)++] = (struct generation_file){name, text_str(t), t->len};
}

int store_write(const struct conf *c, const struct in_force *f, const struct generation_file *extra, unsigned num_extra,
                char name[GENERATION_NAME_MAX])
{
    struct generation_file file[STORE_FILES_MAX + 3];
    struct text lock = {0}, tables = {0};
    unsigned n = 0;
    lock_text(&lock, &f->lock);
    if (f->valid)
        tables_plan_text(&tables, &f->policy, &f->tables);
    if (f->valid && f->planes.n) {
        text_printf(&tables, "planes:\n");
        tables_planes_text(&tables, &f->planes, "  ");
    }
    add_file(file, &n, "policy.yaml", &f->text);
    add_file(file, &n, "policy.lock", &lock);
    add_file(file, &n, "tables.yaml", &tables);
    for (unsigned i = 0; i < num_extra && i < STORE_FILES_MAX; i++)
        file[n++] = extra[i];
    int rc = not_kept(c, "generations", generation_write(c->state, f->lock.generation, file, n, name));
    text_free(&lock);
    text_free(&tables);
    return rc;
}

void store_current(const struct conf *c, char name[GENERATION_NAME_MAX])
{
    struct text why = {0};
    *name = 0;
    if (generation_current(c->state, name, &why))
        *name = 0;
    text_free(&why);
}

/* For people, and for older scripts. Files of an older version are in a generation now. */
static void link_for_people(const struct conf *c, const char *name)
{
    char path[PATH_MAX + 32], new[PATH_MAX + 64], to[64];
    struct stat st;
    state_path(c, name, path, sizeof(path));
    snprintf(new, sizeof(new), "%s" TEXT_UNFINISHED "people", path);
    snprintf(to, sizeof(to), "current/%s", name);
    if (!lstat(path, &st) && S_ISLNK(st.st_mode))
        return;
    unlink(new);
    if (symlink(to, new) || rename(new, path))
        unlink(new);
}

int store_commit(const struct conf *c, const char *name)
{
    char before[GENERATION_NAME_MAX], path[PATH_MAX + 32];
    store_current(c, before);
    int rc = not_kept(c, "current", generation_set_current(c->state, name));
    if (rc && generation_set_current(c->state, *before ? before : NULL))
        return -EUCLEAN;
    if (rc)
        return rc;
    link_for_people(c, "policy.yaml");
    link_for_people(c, "policy.lock");
    state_path(c, "generation", path, sizeof(path)); /* of a version before */
    if (!access(path, F_OK))
        unlink(path);
    generation_prune(c->state);
    return 0;
}

int store_save(const struct conf *c, const struct in_force *f)
{
    char name[GENERATION_NAME_MAX];
    int rc = store_write(c, f, NULL, 0, name);
    return rc ? rc : store_commit(c, name);
}

int store_tell(const struct conf *c, const char *name, const char *file, const struct text *text)
{
    return not_kept(c, file, generation_add(c->state, name, file, text));
}

/* ---- what is being changed ---- */

static const char intent_end[] = "end\n";

int store_intend(const struct conf *c, const struct store_intent *i)
{
    char path[PATH_MAX + 32];
    struct text t = {0};
    text_printf(&t, "intent 1\ngeneration %s\n", i->generation);
    for (unsigned k = 0; k < i->n; k++)
        text_printf(&t, "opensm %s\n%s%s%s", i->config[k], i->partitions[k][0] ? "partitions " : "", i->partitions[k],
                    i->partitions[k][0] ? "\n" : "");
    text_printf(&t, "%s", intent_end);
    state_path(c, "intent", path, sizeof(path));
    int rc = text_write_file(path, t.s, t.len);
    text_free(&t);
    return not_kept(c, "intent", rc); /* a file that is there all the same does no harm */
}

static bool parse_intent(char *text, struct store_intent *i)
{
    char *line, *rest = text;
    bool ended = false, good = true;
    for (unsigned n = 0; good && !ended && (line = strsep(&rest, "\n")); n++) {
        if (!n)
            good = !strcmp(line, "intent 1");
        else if (!strncmp(line, "generation ", 11) && strlen(line + 11) < sizeof(i->generation))
            strcpy(i->generation, line + 11);
        else if (!strncmp(line, "opensm /", 8) && strlen(line + 7) < PATH_MAX && i->n < CONF_OPENSM_MAX)
            strcpy(i->config[i->n++], line + 7);
        else if (!strncmp(line, "partitions /", 12) && strlen(line + 11) < PATH_MAX && i->n)
            strcpy(i->partitions[i->n - 1], line + 11);
        else
            ended = good = !strcmp(line, "end");
    }
    return good && ended && *i->generation;
}

int store_intent(const struct conf *c, struct store_intent *i)
{
    char path[PATH_MAX + 32], aside[PATH_MAX + 80];
    struct text t = {0};
    *i = (struct store_intent){0};
    state_path(c, "intent", path, sizeof(path));
    int rc = text_read_file(&t, path, CONF_OPENSM_MAX * 2 * (PATH_MAX + 16) + 256);
    if (!rc && !(t.len && strlen(t.s) == t.len && parse_intent(t.s, i)))
        rc = -EUCLEAN;
    text_free(&t);
    if (rc != -EUCLEAN)
        return rc;
    *i = (struct store_intent){0};
    text_corrupt_name(path, aside, sizeof(aside));
    log_error("%s is damaged and is kept as %s: opensm and the ports are brought to the policy in force", path, aside);
    if (rename(path, aside))
        return not_kept(c, "intent", -errno);
    store_current(c, i->generation);
    if (!i->generation[0])
        snprintf(i->generation, sizeof(i->generation), "0");
    return store_intend(c, i); /* remains to be done */
}

int store_intent_done(const struct conf *c)
{
    char path[PATH_MAX + 32];
    state_path(c, "intent", path, sizeof(path));
    int rc = unlink(path) && errno != ENOENT ? -errno : 0;
    return not_kept(c, "intent", rc);
}

/* ---- for hosts that follow ---- */

void store_clean_published(const struct conf *c)
{
    char path[PATH_MAX + 8];
    if (c->policy[0] && lock_path(c->policy, path, sizeof(path)))
        text_remove_unfinished(path);
}

int store_publish_policy(const struct conf *c, const struct in_force *f)
{
    struct text policy = {0}, kept = {0};
    int rc = c->policy[0] ? text_read_file(&policy, c->policy, FD_POLICY_MAX) : -ENOENT;
    bool same = !rc && policy.len == f->text.len && !memcmp(text_str(&policy), text_str(&f->text), policy.len);
    text_printf(&kept, "%s.before-rollback", c->policy);
    if (!rc && !same)
        rc = text_write_file(kept.s, text_str(&policy), policy.len);
    if (!rc && !same)
        rc = text_write_file(c->policy, text_str(&f->text), f->text.len);
    text_free(&policy);
    text_free(&kept);
    return rc == -ENOENT ? 0 : rc;
}

static int write_lock(const char *path, const struct in_force *f)
{
    struct text there = {0}, lock = {0};
    int rc = 0;
    lock_text(&lock, &f->lock);
    if (text_read_file(&there, path, FD_LOCK_MAX) || strcmp(text_str(&there), lock.s))
        rc = text_write_file(path, lock.s, lock.len);
    text_free(&there);
    text_free(&lock);
    return rc;
}

int store_publish_none(const struct conf *c, const struct in_force *f)
{
    char path[PATH_MAX + 8];
    if (!c->policy[0] || !lock_path(c->policy, path, sizeof(path)) || access(c->policy, F_OK))
        return -ENOENT;
    return write_lock(path, f);
}

int store_publish(const struct conf *c, const struct in_force *f)
{
    char path[PATH_MAX + 8];
    struct text policy = {0};
    int rc = -ENOENT;
    if (c->policy[0] && lock_path(c->policy, path, sizeof(path)) && !text_read_file(&policy, c->policy, FD_POLICY_MAX))
        rc = policy.len == f->text.len && !memcmp(text_str(&policy), text_str(&f->text), policy.len) ? 0 : -EXDEV;
    if (!rc)
        rc = write_lock(path, f);
    text_free(&policy);
    return rc;
}

/* Of the present configured file. */
static uint64_t digest_of_file(const struct conf *c)
{
    struct text policy = {0};
    uint64_t digest =
        text_read_file(&policy, c->policy, FD_POLICY_MAX) ? 0 : lock_digest(text_str(&policy), policy.len);
    text_free(&policy);
    return digest;
}

/* "GENERATION DIGEST". */
static void unpublished_text(const struct conf *c, struct text *out)
{
    char current[GENERATION_NAME_MAX];
    store_current(c, current);
    text_printf(out, "%s %016" PRIx64 "\n", current, digest_of_file(c));
}

int store_note_unpublished(const struct conf *c)
{
    char path[PATH_MAX + 32];
    struct text t = {0};
    unpublished_text(c, &t);
    state_path(c, "unpublished", path, sizeof(path));
    int rc = text_write_file(path, t.s, t.len);
    text_free(&t);
    return not_kept(c, "unpublished", rc);
}

bool store_is_unpublished(const struct conf *c)
{
    char path[PATH_MAX + 32];
    struct text noted = {0}, now = {0};
    state_path(c, "unpublished", path, sizeof(path));
    bool is = !text_read_file(&noted, path, GENERATION_NAME_MAX + 32);
    if (is) {
        unpublished_text(c, &now);
        is = !strcmp(text_str(&noted), now.s);
        if (!is)
            store_published(c);
    }
    text_free(&noted);
    text_free(&now);
    return is;
}

void store_published(const struct conf *c)
{
    char path[PATH_MAX + 32];
    state_path(c, "unpublished", path, sizeof(path));
    if (!access(path, F_OK) && unlink(path))
        not_kept(c, "unpublished", -errno);
}

/* ---- reading ---- */

/* given: the assigned service levels. */
static bool adopt_policy(struct in_force *to, const char *path, const struct text *t, const struct policy_lock *given)
{
    struct diag diag = {.file = path};
    struct in_force f = {.valid = true};
    bool ok = policy_parse(&f.policy, text_str(t), t->len, &diag) &&
              lock_next(&f.policy, given, NULL, &f.lock, &diag) && in_force_compile(&f, &diag);
    if (!ok)
        log_error("%s", text_str(&diag.out));
    text_free(&diag.out);
    if (!ok)
        return false;
    text_put(&f.text, text_str(t), t->len);
    in_force_free(to);
    *to = f;
    return true;
}

/* 0; -ENOENT: no lock; -EINVAL: damaged, which has been logged. */
static int read_stored_lock(const char *path, struct policy_lock *out)
{
    struct diag diag = {.file = path};
    struct text t = {0};
    int rc = text_read_file(&t, path, FD_LOCK_MAX);
    *out = (struct policy_lock){0};
    if (!rc && !lock_parse(out, text_str(&t), t.len, &diag))
        rc = -EINVAL;
    if (rc && rc != -ENOENT)
        log_error("%s", diag.out.len ? diag.out.s : strerror(-rc));
    text_free(&t);
    text_free(&diag.out);
    return rc == -ENOENT ? rc : rc ? -EINVAL : 0;
}

/* Of a version before generations: STATE/generation. */
static uint64_t read_old_generation(const struct conf *c)
{
    char path[PATH_MAX + 32];
    struct text t = {0};
    uint64_t generation = 0;
    state_path(c, "generation", path, sizeof(path));
    if (!text_read_file(&t, path, 64))
        generation = strtoull(text_str(&t), NULL, 10);
    text_free(&t);
    return generation;
}

/* Every class of the policy has a line in the lock, so no level is assigned anew. */
static bool knows_all(const struct policy *p, const struct policy_lock *l)
{
    for (unsigned i = 0; i < p->num_classes; i++)
        if (!lock_find(l, p->classes[i].name))
            return false;
    return true;
}

static bool is_regular(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && S_ISREG(st.st_mode);
}

static int damaged(const char *what, const char *lock_name)
{
    log_error("no policy is in force: %s; both files stay as they are. fabricctl policy apply with the lock beside the "
              "policy puts one in force; or mend %s, or remove both if no job runs",
              what, lock_name);
    return -EINVAL;
}

/* The text has been read; reads its lock. */
static int load_with_lock(const struct conf *c, struct in_force *f, const char *path, const struct text *saved)
{
    char lock_name[PATH_MAX + 32], what[PATH_MAX + 128];
    struct policy_lock given;
    struct policy p;
    struct diag diag = {.file = path};
    state_path(c, "policy.lock", lock_name, sizeof(lock_name));
    int rc = read_stored_lock(lock_name, &given);
    if (rc == -EINVAL) {
        snprintf(what, sizeof(what), "%s cannot be read", lock_name);
        return damaged(what, lock_name);
    }
    f->lock = given;
    if (!saved->len && (given.digest || is_regular(path))) {
        snprintf(what, sizeof(what), "%s is empty or gone, and %s is of a policy", path, lock_name);
        return damaged(what, lock_name);
    }
    if (!saved->len)
        return -ENOENT;
    bool parsed = policy_parse(&p, text_str(saved), saved->len, &diag);
    if (!parsed)
        log_error("%s", text_str(&diag.out));
    text_free(&diag.out);
    if (rc == -ENOENT && parsed) /* written before there were locks */
        lock_of_before(&p, &given);
    if (!parsed || !knows_all(&p, &given) || !adopt_policy(f, path, saved, &given)) {
        snprintf(what, sizeof(what), "%s and %s do not fit", path, lock_name);
        return damaged(what, lock_name);
    }
    if (rc == -ENOENT)
        log_info("%s is written: classes keep the service levels that they had", lock_name);
    else if (!lock_equal(&given, &f->lock))
        log_warn("%s and %s do not fit: the daemon ended between writing them; every class keeps its service levels",
                 lock_name, path);
    uint64_t generation = read_old_generation(c);
    store_stamp(f, generation ? generation : 1);
    return 0;
}

/* Turns the files of a version before generations into a generation. */
static int load_old(const struct conf *c, struct in_force *f)
{
    char path[PATH_MAX + 32];
    struct text saved = {0};
    state_path(c, "policy.yaml", path, sizeof(path));
    int rc = text_read_file(&saved, path, FD_POLICY_MAX);
    if (rc && rc != -ENOENT) {
        log_error("no policy is in force: %s: %s", path, text_read_error(rc));
        rc = -EINVAL;
    } else {
        rc = load_with_lock(c, f, path, &saved);
    }
    text_free(&saved);
    if (!rc)
        store_save(c, f);
    return rc;
}

int store_load_generation(const struct conf *c, const char *name, struct in_force *f, struct text *why)
{
    char place[GENERATION_NAME_MAX + 64];
    struct text saved = {0}, lock = {0};
    struct diag diag = {.file = place};
    struct policy_lock given = {0};
    snprintf(place, sizeof(place), "generations/%s/policy.lock", name);
    int rc = generation_read(c->state, name, "policy.lock", FD_LOCK_MAX, &lock, why);
    if (!rc && !lock_parse(&given, text_str(&lock), lock.len, &diag)) {
        text_printf(why, "%.*s", (int)strcspn(text_str(&diag.out), "\n"), text_str(&diag.out));
        rc = -EUCLEAN;
    }
    f->lock = given;
    f->lock.generation = generation_number(name); /* without a policy the lock does not tell */
    snprintf(place, sizeof(place), "generations/%s/policy.yaml", name);
    if (!rc)
        rc = generation_read(c->state, name, "policy.yaml", FD_POLICY_MAX, &saved, why);
    if (!rc && !saved.len) {
        rc = -ENODATA;
    } else if (!rc && !adopt_policy(f, place, &saved, &given)) {
        text_printf(why, "%s is not a policy that this fabricd can read", place);
        rc = -EUCLEAN;
    }
    if (!rc) {
        f->lock.generation = given.generation;
        f->lock.digest = given.digest;
    }
    text_free(&diag.out);
    text_free(&saved);
    text_free(&lock);
    return rc;
}

bool store_is_rollback(const struct conf *c, const char *name)
{
    struct text about = {0};
    bool is = *name && !generation_read_fact(c->state, name, "about", 4096, &about) &&
              strstr(text_str(&about), "\nby: rollback\n");
    text_free(&about);
    return is;
}

int store_load(const struct conf *c, struct in_force *f)
{
    char name[GENERATION_NAME_MAX], people[PATH_MAX + 32], to[8];
    struct text why = {0};
    int rc = generation_current(c->state, name, &why);
    state_path(c, "policy.yaml", people, sizeof(people));
    bool was_there = readlink(people, to, sizeof(to)) > 0;
    if (rc == -ENOENT && !was_there) {
        rc = load_old(c, f);
    } else {
        if (rc == -ENOENT)
            text_printf(&why, "the link 'current' to the generation in force is gone");
        if (!rc)
            rc = store_load_generation(c, name, f, &why);
        if (rc == -ENODATA && !f->lock.none && !store_is_rollback(c, name)) /* there is a lock and no policy */
            rc = -ENOENT;
        else if (rc == -ENODATA)
            log_info("no policy is in force: what was there before the first policy was put back by order");
        else if (rc) {
            log_error(
                "no policy is in force: %s: %s; it stays as it is. fabricctl policy apply (with the lock beside the "
                "policy) or rollback puts one in force",
                c->state, text_str(&why));
            rc = -EINVAL;
        }
    }
    text_free(&why);
    return rc;
}

int store_read_file(const char *path, struct text *text, struct text *lock)
{
    char lock_name[PATH_MAX + 8];
    int rc = text_read_file(text, path, FD_POLICY_MAX);
    if (rc)
        return rc;
    rc = lock_path(path, lock_name, sizeof(lock_name)) ? text_read_file(lock, lock_name, FD_LOCK_MAX) : -ENAMETOOLONG;
    return rc == -ENOENT ? 0 : rc;
}

bool store_adopt_file(const struct conf *c, struct in_force *f, const struct text *file)
{
    char lock_name[PATH_MAX + 8];
    struct policy_lock given;
    if (!lock_path(c->policy, lock_name, sizeof(lock_name)) || read_stored_lock(lock_name, &given) == -EINVAL)
        return false;
    if (given.none) {
        log_info("%s: the lock beside it says that by order no policy is in force", c->policy);
        return false;
    }
    if (given.digest && given.digest != lock_digest(text_str(file), file->len)) {
        log_warn("%s: the lock beside it is of another policy: waiting for the one that the manager of the subnet "
                 "writes when it has put this policy in force",
                 c->policy);
        return false;
    }
    if (c->num_opensm && !given.digest) /* its opensm may come up yet, and then the policy is applied */
        return false;
    uint64_t generation = given.generation;
    if (!given.num_classes)
        given = f->lock;
    bool ok = adopt_policy(f, c->policy, file, &given);
    if (ok)
        store_stamp(f, generation ? generation : store_next_number(c, 0));
    return ok;
}
