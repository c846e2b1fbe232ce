/* SPDX-License-Identifier: BSD-3-Clause */
/* See follow.h. */
#include "fabricd/apply/follow.h"
#include "fabricd/policy/lock.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_S   1
#define LOOKS_TO_TRUST 3 /* looks before a policy with an incomplete lock, or a problem, is handed on */
#define STOP_MS        100

struct follow {
    char policy_path[PATH_MAX], lock_path[PATH_MAX + 8];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping, ended, again;
    bool has_news;
    struct follow_news news;
    int fd;

    /* the thread's own */
    struct text problem;      /* the problem told last */
    uint64_t handed_on, seen; /* digests of the pair handed on, and of the pair of the last look */
    unsigned looks;           /* looks with the same result */
};

/* ---- one look ---- */

struct look {
    struct text policy, lock, problem;
    bool whole; /* confirmed by the lock */
};

static bool read_one(struct look *l, const char *path, size_t max, struct text *out, bool may_lack)
{
    struct stat st;
    int rc = text_read_file(out, path, max);
    if (rc == -ENOENT && may_lack)
        return true;
    if (!rc && stat(path, &st))
        rc = -errno;
    if (rc)
        text_printf(&l->problem, "%s: %s", path, text_read_error(rc));
    else if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & S_IWOTH)
        text_printf(&l->problem, "%s is not followed: %s; it must be root's, and writable for no other user", path,
                    st.st_mode & S_IWOTH ? "anybody can write it" : "it belongs to another user");
    return !l->problem.len;
}

static void read_both(const struct follow *f, struct look *l)
{
    struct diag d = {.file = f->lock_path};
    struct policy_lock lock;
    if (!read_one(l, f->policy_path, FD_POLICY_MAX, &l->policy, false) ||
        !read_one(l, f->lock_path, FD_LOCK_MAX, &l->lock, true))
        return;
    if (!lock_parse(&lock, text_str(&l->lock), l->lock.len, &d))
        text_printf(&l->problem, "%.*s", (int)(d.out.len ? d.out.len - 1 : 0), text_str(&d.out));
    else if (lock.digest && lock.digest != lock_digest(text_str(&l->policy), l->policy.len))
        text_printf(&l->problem,
                    "%s is not the policy that %s was written for: edited and not applied yet, or not copied whole",
                    f->policy_path, f->lock_path);
    l->whole = (lock.digest || lock.none) && !l->problem.len;
    text_free(&d.out);
}

static uint64_t digest_of(const struct look *l)
{
    return lock_digest(text_str(&l->policy), l->policy.len) ^ (lock_digest(text_str(&l->lock), l->lock.len) << 1) ^
           lock_digest(text_str(&l->problem), l->problem.len);
}

static bool same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && !memcmp(text_str(a), text_str(b), a->len);
}

/* ---- news ---- */

static void free_news(struct follow_news *n)
{
    text_free(&n->problem);
    text_free(&n->policy);
    text_free(&n->lock);
}

/* In place of news that have not been taken yet. */
static void post_news(struct follow *f, struct follow_news news)
{
    uint64_t one = 1;
    pthread_mutex_lock(&f->lock);
    free_news(&f->news);
    f->news = news;
    f->has_news = true;
    pthread_mutex_unlock(&f->lock);
    if (write(f->fd, &one, sizeof(one)) < 0)
        abort(); /* the counter cannot overflow */
}

static void weigh(struct follow *f, struct look *l, bool again)
{
    uint64_t digest = digest_of(l);
    f->looks = digest == f->seen ? f->looks + 1 : 1;
    f->seen = digest;
    if (!l->whole && f->looks < LOOKS_TO_TRUST)
        return;
    if (l->problem.len) {
        if (!same_text(&l->problem, &f->problem)) {
            struct follow_news news = {0};
            text_put(&news.problem, l->problem.s, l->problem.len);
            post_news(f, news);
            text_free(&f->problem);
            f->problem = l->problem;
            l->problem = (struct text){0};
        }
        return;
    }
    bool mended = f->problem.len > 0;
    text_free(&f->problem);
    if (digest != f->handed_on || again) {
        post_news(f, (struct follow_news){.policy = l->policy, .lock = l->lock});
        l->policy = l->lock = (struct text){0};
        f->handed_on = digest;
    } else if (mended) {
        post_news(f, (struct follow_news){0});
    }
}

static void *follow_main(void *arg)
{
    struct follow *f = arg;
    pthread_mutex_lock(&f->lock);
    while (!f->stopping) {
        bool again = f->again;
        f->again = false;
        pthread_mutex_unlock(&f->lock);
        struct look l = {0};
        read_both(f, &l);
        weigh(f, &l, again);
        text_free(&l.policy);
        text_free(&l.lock);
        text_free(&l.problem);
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LOOK_EVERY_S;
        pthread_mutex_lock(&f->lock);
        while (!f->stopping && pthread_cond_timedwait(&f->wake, &f->lock, &until) != ETIMEDOUT)
            ;
    }
    f->ended = true;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- for the main thread ---- */

struct follow *follow_start(const char *policy_path)
{
    struct follow *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    int rc = ENAMETOOLONG;
    f->fd = -1;
    snprintf(f->policy_path, sizeof(f->policy_path), "%s", policy_path);
    if (!lock_path(policy_path, f->lock_path, sizeof(f->lock_path)))
        goto free_follow;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    f->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = f->fd < 0 ? errno : pthread_create(&f->thread, NULL, follow_main, f);
    if (!rc)
        return f;
    if (f->fd >= 0)
        close(f->fd);
free_follow:
    free(f);
    errno = rc;
    return NULL;
}

void follow_stop(struct follow *f)
{
    struct timespec until;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_cond_broadcast(&f->wake);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += STOP_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!f->ended && pthread_cond_timedwait(&f->wake, &f->lock, &until) != ETIMEDOUT)
        ;
    bool ended = f->ended;
    pthread_mutex_unlock(&f->lock);
    if (!ended)
        return; /* a file server does not answer; the thread ends with the process, and uses f until then */
    pthread_join(f->thread, NULL);
    close(f->fd);
    free_news(&f->news);
    text_free(&f->problem);
    free(f);
}

int follow_fd(const struct follow *f)
{
    return f->fd;
}

bool follow_take(struct follow *f, struct follow_news *news)
{
    uint64_t count;
    if (read(f->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        return false;
    pthread_mutex_lock(&f->lock);
    bool has = f->has_news;
    *news = f->news;
    f->news = (struct follow_news){0};
    f->has_news = false;
    pthread_mutex_unlock(&f->lock);
    return has;
}

void follow_again(struct follow *f)
{
    pthread_mutex_lock(&f->lock);
    f->again = true;
    pthread_mutex_unlock(&f->lock);
}
