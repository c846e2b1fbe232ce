/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy in force on disk: see store.h. */
#include "fabricd/store.h"
#include "fabricd/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

static bool is_unfinished(const char *name)
{
    size_t len = strlen(name), end = strlen(TEXT_UNFINISHED) + 6;
    return len > end && !strncmp(name + len - end, TEXT_UNFINISHED, end - 6);
}

static void clean(const struct conf *c)
{
    DIR *dir = opendir(c->state);
    if (!dir)
        return;
    for (struct dirent *e; (e = readdir(dir));)
        if (is_unfinished(e->d_name))
            unlinkat(dirfd(dir), e->d_name, 0);
    closedir(dir);
    store_release(c);
}

/* ---- opening ---- */

static bool can_be_read_still(int rc)
{
    return rc == -EROFS || rc == -EACCES || rc == -EPERM || rc == -ENOSPC || rc == -EDQUOT;
}

/* Who cannot make the lock, and finds none, has nothing that another daemon could write to meanwhile. */
static int open_lock(const struct conf *c, const char *path)
{
    if (mkdir(c->state, 0700) && errno != EEXIST)
        return -errno;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* Whoever can write there can give himself a class, or have this process write where a link leads to. */
static bool is_ours_alone(const char *dir)
{
    struct stat st;
    if (stat(dir, &st))
        return true; /* what is wrong with it is found by using it */
    if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & (S_IWGRP | S_IWOTH)) {
        log_error("%s is not used: %s; it must be root's, and writable for no other user", dir,
                  st.st_mode & (S_IWGRP | S_IWOTH) ? "others can write there" : "it belongs to another user");
        return false;
    }
    return true;
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

static int save(const struct conf *c, const char *name, const char *s, size_t len)
{
    char path[PATH_MAX + 32];
    state_path(c, name, path, sizeof(path));
    int rc = text_write_file(path, s, len);
    if (rc)
        log_event(LOG_STATE_NOT_KEPT, SD_ERR, "%s: %s", path, strerror(-rc));
    return rc;
}

/* As large as all of them. What is written later takes its place. */
int store_reserve(const struct conf *c, size_t len)
{
    size_t room = len + FD_LOCK_MAX;
    char *zeros = calloc(1, room);
    int rc = zeros ? save(c, "reserve", zeros, room) : -ENOMEM;
    free(zeros);
    return rc;
}

void store_release(const struct conf *c)
{
    char path[PATH_MAX + 32];
    state_path(c, "reserve", path, sizeof(path));
    unlink(path);
}

void store_stamp(struct in_force *f, uint64_t generation)
{
    f->lock.generation = generation;
    f->lock.digest = f->text.len ? lock_digest(f->text.s, f->text.len) : 0;
}

int store_save_lock(const struct conf *c, const struct in_force *f)
{
    struct text t = {0};
    lock_text(&t, &f->lock);
    int rc = save(c, "policy.lock", t.s, t.len);
    text_free(&t);
    return rc;
}

/* The lock comes first: it has kept what was given out before, so the policy that is on disk until then fits it, too.
 */
int store_save(const struct conf *c, const struct in_force *f)
{
    char s[32];
    store_release(c);
    int rc = store_save_lock(c, f);
    if (!rc)
        rc = save(c, "policy.yaml", text_str(&f->text), f->text.len);
    snprintf(s, sizeof(s), "%" PRIu64 "\n", f->lock.generation);
    return rc ? rc : save(c, "generation", s, strlen(s));
}

int store_publish(const struct conf *c, const struct in_force *f)
{
    char path[PATH_MAX + 8];
    struct text policy = {0}, there = {0}, lock = {0};
    int rc = -ENOENT;
    if (c->policy[0] && lock_path(c->policy, path, sizeof(path)) && !text_read_file(&policy, c->policy, FD_POLICY_MAX))
        rc = policy.len == f->text.len && !memcmp(text_str(&policy), text_str(&f->text), policy.len) ? 0 : -EXDEV;
    lock_text(&lock, &f->lock);
    if (!rc && (text_read_file(&there, path, FD_LOCK_MAX) || strcmp(text_str(&there), lock.s)))
        rc = text_write_file(path, lock.s, lock.len);
    text_free(&policy);
    text_free(&there);
    text_free(&lock);
    return rc;
}

/* ---- reading ---- */

/* given: the service levels that have been given out. */
static bool adopt(struct in_force *to, const char *path, const struct text *t, const struct policy_lock *given)
{
    struct diag diag = {.file = path};
    struct in_force f = {.valid = true};
    bool ok = policy_parse(&f.policy, text_str(t), t->len, &diag) &&
              lock_next(&f.policy, given, NULL, &f.lock, &diag) && policy_compile(&f.policy, &f.lock, &f.tables, &diag);
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

/* 0; -ENOENT: there is none; -EINVAL: it is not a lock, which has been logged. */
static int read_lock(const char *path, struct policy_lock *out)
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

uint64_t store_load_generation(const struct conf *c)
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

/* The text is read; its lock is next. */
static int load_with_lock(const struct conf *c, struct in_force *f, const char *path, const struct text *saved)
{
    char lock_name[PATH_MAX + 32];
    struct policy_lock given;
    state_path(c, "policy.lock", lock_name, sizeof(lock_name));
    int rc = read_lock(lock_name, &given);
    if (rc == -EINVAL) {
        log_error("no policy is in force: %s cannot be read; mend it, or remove it together with %s if no job runs",
                  lock_name, path);
        return rc;
    }
    f->lock = given;
    if (!saved->len)
        return -ENOENT;
    if (rc == -ENOENT) { /* written before there were locks */
        struct policy p;
        struct diag diag = {.file = path};
        if (policy_parse(&p, text_str(saved), saved->len, &diag))
            lock_of_before(&p, &given);
        text_free(&diag.out);
    }
    if (!adopt(f, path, saved, &given))
        return -ENOENT;
    if (rc == -ENOENT)
        log_info("%s is written: classes keep the service levels that they had", lock_name);
    else if (!lock_equal(&given, &f->lock))
        log_warn("%s and %s do not fit: the daemon ended between writing them; the lock is made anew, and classes keep "
                 "their service levels",
                 lock_name, path);
    uint64_t generation = store_load_generation(c);
    store_stamp(f, generation ? generation : 1);
    if (rc == -ENOENT || !lock_equal(&given, &f->lock))
        store_save_lock(c, f);
    return 0;
}

int store_load(const struct conf *c, struct in_force *f)
{
    char path[PATH_MAX + 32];
    struct text saved = {0};
    state_path(c, "policy.yaml", path, sizeof(path));
    text_read_file(&saved, path, FD_POLICY_MAX);
    int rc = load_with_lock(c, f, path, &saved);
    text_free(&saved);
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
    if (!lock_path(c->policy, lock_name, sizeof(lock_name)) || read_lock(lock_name, &given) == -EINVAL)
        return false;
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
    bool ok = adopt(f, c->policy, file, &given);
    if (ok)
        store_stamp(f, generation ? generation : store_load_generation(c) + 1);
    return ok;
}
