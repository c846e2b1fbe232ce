/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and groups of users: see users.h. */
#include "fabricd/jobs/users.h"
#include "fabricd/jobs/helper.h"
#include "fabricd/base/text.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEPT_S      60
#define RETRY_S     5          /* after a directory that did not answer */
#define FORGOT_S    600        /* forgotten after so long without a question */
#define USERS_MOST  65536      /* at a time */
#define GROUPS_MOST 65536      /* of a user: the kernel's own limit */
#define BUFFER_MOST (4u << 20) /* bytes of an entry: a group names its members */

/* A known user, or a user being looked up. */
struct listed {
    uid_t uid; /* first: the tree compares it */
    struct users *owner;
    struct user user;
    struct text groups;
    time_t until, used;
    bool asking;
};

/* Filled in by the thread. */
struct lookup {
    uid_t uid;
    struct users *owner;
    int rc; /* 0: the members below are valid */
    char name[FD_JOB_MAX];
    struct text groups;
};

struct users {
    struct helper *helper;
    void (*changed)(void *arg, uid_t uid);
    void *arg;
    void *by_uid; /* tsearch */
    unsigned n;
    time_t swept;
};

static time_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* ---- in the thread ----------------------------------------------------------------------------------------------- */

/* Calls with a buffer until the entry fits into it. */
static int look_up_user(uid_t uid, struct passwd *pw, char **buf)
{
    struct passwd *found = NULL;
    for (size_t size = 4096; size <= BUFFER_MOST; size *= 4) {
        free(*buf);
        *buf = malloc(size);
        int rc = *buf ? getpwuid_r(uid, pw, *buf, size, &found) : ENOMEM;
        if (rc == ERANGE)
            continue;
        /* "There is none" has many names: see getpwuid_r(3). */
        return found ? 0 : !rc || rc == ENOENT || rc == ESRCH || rc == EBADF || rc == EPERM ? -ENOENT : -rc;
    }
    return -ERANGE;
}

static int put_group(struct text *to, gid_t gid)
{
    struct group gr, *found = NULL;
    char *buf = NULL, number[16];
    int rc = ERANGE;
    for (size_t size = 4096; size <= BUFFER_MOST && rc == ERANGE; size *= 4) {
        free(buf);
        buf = malloc(size);
        rc = buf ? getgrgid_r(gid, &gr, buf, size, &found) : ENOMEM;
    }
    snprintf(number, sizeof(number), "%u", gid);
    const char *name = found && *gr.gr_name ? gr.gr_name : number;
    text_put(to, name, strlen(name) + 1);
    free(buf);
    return found || !rc || rc == ENOENT || rc == ESRCH ? 0 : -rc;
}

static int put_groups(struct text *to, const char *name, gid_t primary)
{
    int n = 64, rc = 0;
    gid_t *all = NULL;
    for (int room = n; n <= GROUPS_MOST; room = n) {
        gid_t *more = realloc(all, (size_t)room * sizeof(*all));
        if (!more) {
            rc = -ENOMEM;
            break;
        }
        all = more;
        n = room;
        if (getgrouplist(name, primary, all, &n) >= 0)
            break;
        n = n > room ? n : 2 * room;
    }
    for (int i = 0; !rc && i < n && n <= GROUPS_MOST; i++)
        rc = put_group(to, all[i]);
    free(all);
    return n > GROUPS_MOST ? -E2BIG : rc;
}

static void run_lookup(void *arg)
{
    struct lookup *l = arg;
    struct passwd pw;
    char *buf = NULL;
    int rc = look_up_user(l->uid, &pw, &buf);
    if (!rc && *pw.pw_name) {
        snprintf(l->name, sizeof(l->name), "%s", pw.pw_name);
        rc = put_groups(&l->groups, pw.pw_name, pw.pw_gid);
    } else if (!rc || rc == -ENOENT) {
        snprintf(l->name, sizeof(l->name), "%u", l->uid);
        rc = 0;
    }
    text_put(&l->groups, "", 1);
    free(buf);
    l->rc = rc;
}

/* ---- in the loop ------------------------------------------------------------------------------------------------- */

static int compare_users(const void *a, const void *b)
{
    uid_t x = *(const uid_t *)a, y = *(const uid_t *)b;
    return x < y ? -1 : x > y;
}

static void lookup_free(void *arg)
{
    struct lookup *l = arg;
    text_free(&l->groups);
    free(l);
}

static void lookup_done(void *arg)
{
    struct lookup *l = arg;
    struct users *u = l->owner;
    struct listed **found = tfind(&l->uid, &u->by_uid, compare_users), *e = found ? *found : NULL;
    bool differs = false, changed = e && !e->user.tried;
    if (e) {
        e->user.tried = true;
        e->asking = false;
        e->until = now_s() + (l->rc ? RETRY_S : KEPT_S);
        differs = !l->rc && (!e->user.known || strcmp(e->user.name, l->name) || e->groups.len != l->groups.len ||
                             memcmp(e->groups.s, l->groups.s, l->groups.len));
    }
    if (differs) {
        struct text old = e->groups;
        e->groups = l->groups;
        l->groups = old;
        memcpy(e->user.name, l->name, sizeof(l->name));
        e->user.groups = e->groups.s;
        e->user.known = true;
    }
    uid_t uid = l->uid;
    lookup_free(l);
    if (changed || differs)
        u->changed(u->arg, uid);
}

static void ask_user(struct users *u, struct listed *e)
{
    struct lookup *l = calloc(1, sizeof(*l));
    if (!l)
        return;
    l->uid = e->uid;
    l->owner = u;
    e->asking = helper_do(u->helper, run_lookup, lookup_done, l);
    if (!e->asking)
        free(l);
}

static void listed_free(void *p)
{
    struct listed *e = p;
    text_free(&e->groups);
    free(e);
}

struct sweep {
    time_t now;
    struct listed *old[64];
    unsigned n;
};

static void collect_unused(const void *node, VISIT which, void *arg)
{
    struct sweep *s = arg;
    struct listed *e = *(struct listed *const *)node;
    if ((which == postorder || which == leaf) && s->n < 64 && !e->asking && s->now - e->used > FORGOT_S)
        s->old[s->n++] = e;
}

/* Drops users without recent questions, some at a time. */
static void sweep(struct users *u, time_t now)
{
    struct sweep s = {.now = now};
    if (now == u->swept)
        return;
    u->swept = now;
    twalk_r(u->by_uid, collect_unused, &s);
    while (s.n) {
        struct listed *e = s.old[--s.n];
        tdelete(e, &u->by_uid, compare_users);
        listed_free(e);
        u->n--;
    }
}

static struct listed *enter(struct users *u, uid_t uid)
{
    struct listed *e = u->n < USERS_MOST ? calloc(1, sizeof(*e)) : NULL;
    if (!e)
        return NULL;
    e->uid = e->user.uid = uid;
    e->user.groups = "";
    if (!tsearch(e, &u->by_uid, compare_users)) {
        free(e);
        return NULL;
    }
    u->n++;
    return e;
}

const struct user *users_get(struct users *u, uid_t uid)
{
    static const struct user nobody = {.uid = FD_UID_ANY, .groups = ""};
    struct listed **found, *e;
    time_t now = now_s();
    if (!u || uid == FD_UID_ANY)
        return &nobody;
    found = tfind(&uid, &u->by_uid, compare_users);
    e = found ? *found : NULL;
    if (!e) {
        sweep(u, now);
        e = enter(u, uid);
    }
    if (!e)
        return &nobody;
    e->used = now;
    if (!e->asking && now >= e->until)
        ask_user(u, e);
    return &e->user;
}

struct users *users_start(sd_event *event, void (*changed)(void *arg, uid_t uid), void *arg)
{
    struct users *u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->changed = changed;
    u->arg = arg;
    u->helper = helper_start(event);
    if (u->helper)
        return u;
    free(u);
    return NULL;
}

void users_stop(struct users *u)
{
    if (!u || !helper_stop(u->helper, lookup_free))
        return; /* a directory that does not answer: the thread may still write to its data */
    tdestroy(u->by_uid, listed_free);
    free(u);
}
