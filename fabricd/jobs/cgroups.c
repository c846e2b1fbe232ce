/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's facts about processes and jobs: see cgroups.h. */
#include "fabricd/jobs/cgroups.h"
#include "fabricd/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define SYS "/sys/fs/cgroup"

#define DEPTH_MOST        6u /* groups that are looked at for processes, where the kernel does not say */
#define DIRECTORIES_MOST  64u
#define CGROUPS_PROCS_MAX 65536u

static const char *root(void)
{
    const char *r = getenv("FABRICD_ROOT");
    return r ? r : "";
}

static bool cgroup_exists(const char *path)
{
    char full[PATH_MAX];
    struct stat st;
    return snprintf(full, sizeof(full), "%s%s", root(), path) < (int)sizeof(full) && !stat(full, &st);
}

/* Version 2 has one hierarchy, at SYS; else there is a directory for each, and version 2 may be at "unified". */
static bool is_unified(void)
{
    return cgroup_exists(SYS "/cgroup.controllers");
}

/* ---- lines of /proc/PID/cgroup: NUMBER:CONTROLLERS:PATH --------------------------------------------------------- */

struct line {
    const char *controllers, *path;
    size_t controllers_len, path_len;
};

/* The next line; false: there is none. Invalid lines are skipped. */
static bool next_cgroup(const char **at, struct line *l)
{
    for (const char *s = *at, *end; *s; s = *end ? end + 1 : end) {
        end = strchrnul(s, '\n');
        const char *a = memchr(s, ':', (size_t)(end - s)), *b = a ? memchr(a + 1, ':', (size_t)(end - a - 1)) : NULL;
        if (!b || b[1] != '/')
            continue;
        *l = (struct line){a + 1, b + 1, (size_t)(b - a - 1), (size_t)(end - b - 1)};
        *at = *end ? end + 1 : end;
        return true;
    }
    return false;
}

/* True if the word is in the list, separated by commas. */
static bool has_word(const char *list, size_t len, const char *word, size_t word_len)
{
    for (const char *s = list, *end = list + len; s <= end;) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;
        if ((size_t)(stop - s) == word_len && !memcmp(s, word, word_len))
            return true;
        s = stop + 1;
    }
    return false;
}

/* True if the line belongs to the hierarchy whose directory has this name. "cpu,cpuacct" is often called "cpu", too. */
static bool is_of_hierarchy(const struct line *l, const char *name, size_t len)
{
    char named[64];
    if (!l->controllers_len)
        return len == 7 && !memcmp(name, "unified", 7);
    int n = snprintf(named, sizeof(named), "name=%.*s", (int)(len < 32 ? len : 32), name);
    if (has_word(l->controllers, l->controllers_len, named, (size_t)n))
        return true;
    const char *comma = memchr(name, ',', len);
    return has_word(l->controllers, l->controllers_len, name, comma ? (size_t)(comma - name) : len);
}

bool cgroups_inside(const char *where, const char *path)
{
    bool unified = is_unified();
    const char *name = path + strlen(SYS) + 1, *below = unified ? name - 1 : strchr(name, '/');
    struct line l;
    if (!cgroups_good_path(path) || !below)
        return false;
    size_t len = strlen(below);
    while (next_cgroup(&where, &l)) {
        bool of = unified ? !l.controllers_len : is_of_hierarchy(&l, name, (size_t)(below - name));
        if (of && l.path_len >= len && !memcmp(l.path, below, len) && (l.path_len == len || l.path[len] == '/'))
            return true;
    }
    return false;
}

/* ---- the layouts of schedulers ----------------------------------------------------------------------------------- */

/*
 * From the root of a hierarchy, name by name, each a pattern of the shell; '%' is the job's id, up to the end of the
 * name or the text behind the '%'. lasts: a group in the job's group that exists from the job's beginning to its end,
 * if the scheduler makes one; otherwise the job's group may come and go with its steps. Only from the root: a user can
 * make groups of any name, but not there.
 */
static const struct layout {
    const char *scheduler, *pattern, *lasts;
} layouts[] = {
    {"Slurm", "/system.slice/*slurmstepd.scope/job_%", "step_extern"},
    {"Slurm", "/slurm*/uid_*/job_%", "step_extern"},
    {"PBS", "/pbs_jobs.service/jobid/%", ""},
    {"PBS", "/propbs/%", ""},
    {"LSF", "/lsf/*/job.%.*", ""},
};

static bool take_id(const char *name, size_t len, const char *pattern, const char *percent, char id[FD_JOB_MAX])
{
    size_t before = (size_t)(percent - pattern);
    if (len <= before || memcmp(name, pattern, before))
        return false;
    const char *s = name + before, *stop = percent[1] ? memchr(s, percent[1], len - before) : name + len;
    if (!stop || stop == s || (size_t)(stop - s) >= FD_JOB_MAX)
        return false;
    memset(id, 0, FD_JOB_MAX);
    memcpy(id, s, (size_t)(stop - s));
    return true;
}

/* How much of the path the pattern takes; 0: it does not match. */
static size_t match(const char *path, size_t len, const char *pattern, char id[FD_JOB_MAX])
{
    const char *at = path, *end = path + len;
    while (*pattern == '/') {
        char one[128], name[NAME_MAX + 1];
        size_t n = strcspn(++pattern, "/");
        if (at == end || *at++ != '/')
            return 0;
        const char *slash = memchr(at, '/', (size_t)(end - at)), *stop = slash ? slash : end;
        snprintf(one, sizeof(one), "%.*s", (int)n, pattern);
        snprintf(name, sizeof(name), "%.*s", (int)(stop - at), at);
        const char *percent = strchr(one, '%');
        if (percent ? !take_id(at, (size_t)(stop - at), one, percent, id) : fnmatch(one, name, FNM_PATHNAME) != 0)
            return 0;
        at = stop;
        pattern += n;
    }
    return (size_t)(at - path);
}

/* The directory of the first len bytes of a line's path; empty: too long, or not lasting. */
static void directory_of(const struct line *l, size_t len, const char *lasts, char out[FD_CGROUP_MAX])
{
    size_t n = strcspn(l->controllers, ",:");
    const char *name = l->controllers, *equals = memchr(name, '=', n);
    char lasting[FD_CGROUP_MAX + 32];
    if (equals) {
        n -= (size_t)(equals + 1 - name);
        name = equals + 1;
    }
    int is = !l->controllers_len && is_unified()
                 ? snprintf(out, FD_CGROUP_MAX, SYS "%.*s", (int)len, l->path)
                 : snprintf(out, FD_CGROUP_MAX, SYS "/%.*s%.*s", (int)(l->controllers_len ? n : 7),
                            l->controllers_len ? name : "unified", (int)len, l->path);
    if (is < (int)FD_CGROUP_MAX && *lasts) {
        snprintf(lasting, sizeof(lasting), "%s/%s", out, lasts);
        if (cgroup_exists(lasting))
            return;
    }
    *out = 0;
}

bool cgroups_job_of(const char *where, struct cgroup_job *job)
{
    bool found = false;
    struct line l;
    memset(job, 0, sizeof(*job));
    while (next_cgroup(&where, &l) && !*job->path)
        for (unsigned i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
            char id[FD_JOB_MAX];
            size_t n = match(l.path, l.path_len, layouts[i].pattern, id);
            if (!n || (found && strcmp(id, job->id)))
                continue;
            found = true;
            job->scheduler = layouts[i].scheduler;
            memcpy(job->id, id, sizeof(id));
            directory_of(&l, n, layouts[i].lasts, job->path);
            break;
        }
    return found;
}

/* ---- what is there ----------------------------------------------------------------------------------------------- */

bool cgroups_good_path(const char *path)
{
    size_t n = strlen(SYS "/"), hierarchy = n;
    if (strncmp(path, SYS "/", n) || strlen(path) >= FD_CGROUP_MAX)
        return false;
    for (const char *s = path + n;; s++) {
        size_t len = strcspn(s, "/");
        if (!len || (len == 1 && *s == '.') || (len == 2 && !memcmp(s, "..", 2)))
            return false;
        s += len;
        if (!*s)
            break;
    }
    return is_unified() || strchr(path + hierarchy, '/');
}

/*
 * Version 1 does not report the groups beneath: they are read, as deep as schedulers make them. Returns whether there
 * is a process; -1: unknown. left: directories that may still be read.
 */
static int has_process(const char *dir, unsigned depth, unsigned *left)
{
    char path[PATH_MAX];
    struct text t = {0};
    struct dirent *e;
    if (!depth || !*left)
        return -1;
    --*left;
    if (snprintf(path, sizeof(path), "%s/cgroup.procs", dir) >= (int)sizeof(path))
        return -1;
    int rc = text_read_file(&t, path, CGROUPS_PROCS_MAX);
    int is = rc == -EFBIG || t.len ? 1 : rc ? -1 : 0;
    text_free(&t);
    DIR *d = is ? NULL : opendir(dir);
    while (d && !is && (e = readdir(d)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
            is = has_process(path, depth - 1, left);
    if (d)
        closedir(d);
    return is;
}

enum cgroup_state cgroups_look(const char *path)
{
    char events[PATH_MAX];
    struct text t = {0};
    enum cgroup_state is = CGROUP_THERE;
    if (snprintf(events, sizeof(events), "%s%s/cgroup.events", root(), path) >= (int)sizeof(events))
        return CGROUP_GONE;
    int rc = text_read_file(&t, events, 4096);
    const char *populated = rc ? NULL : strstr(text_str(&t), "populated ");
    if (populated)
        is = populated[10] == '0' ? CGROUP_EMPTY : CGROUP_IN_USE;
    else if (!cgroup_exists(path))
        is = CGROUP_GONE;
    text_free(&t);
    if (is == CGROUP_THERE) {
        unsigned left = DIRECTORIES_MOST;
        char dir[PATH_MAX];
        snprintf(dir, sizeof(dir), "%s%s", root(), path);
        int found = has_process(dir, DEPTH_MOST, &left);
        is = found > 0 ? CGROUP_IN_USE : found ? CGROUP_THERE : CGROUP_EMPTY;
    }
    return is;
}

void cgroups_watch_path(const char *path, char *out, size_t size)
{
    snprintf(out, size, "%s%s/cgroup.events", root(), path);
    if (access(out, F_OK))
        snprintf(out, size, "%s%s", root(), path);
}

void cgroups_boot(char out[CGROUPS_BOOT_MAX])
{
    char path[PATH_MAX];
    struct text t = {0};
    *out = 0;
    snprintf(path, sizeof(path), "%s/proc/sys/kernel/random/boot_id", root());
    if (!text_read_file(&t, path, 4096)) {
        size_t n = strspn(text_str(&t), "0123456789abcdef-");
        if (n < CGROUPS_BOOT_MAX)
            snprintf(out, CGROUPS_BOOT_MAX, "%.*s", (int)n, text_str(&t));
    }
    text_free(&t);
}

/* ---- who is at the other end ------------------------------------------------------------------------------------- */

/* Nothing is to be read of a process's descriptor until it has ended. */
static bool has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

/* Without the kernel's reference: a connected process has not ended, unless a child inherited the connection. */
static bool may_be_another(int socket, pid_t pid, uid_t uid)
{
    struct pollfd p = {.fd = socket, .events = POLLRDHUP};
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof(path), "%s/proc/%d", root(), pid);
    return poll(&p, 1, 0) < 0 || p.revents & (POLLRDHUP | POLLHUP | POLLERR) || stat(path, &st) ||
           (st.st_uid != uid && st.st_uid != 0 && !*root());
}

int cgroups_of_peer(int socket, pid_t pid, uid_t uid, char **where)
{
    char path[PATH_MAX];
    struct text t = {0};
    int pidfd = -1;
    socklen_t len = sizeof(pidfd);
    *where = NULL;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len)) {
        if (errno != ENOPROTOOPT)
            return -ESRCH;
        pidfd = -1;
    }
    snprintf(path, sizeof(path), "%s/proc/%d/cgroup", root(), pid);
    int rc = text_read_file(&t, path, CGROUPS_WHERE_MAX);
    if (pidfd >= 0 ? has_ended(pidfd) : may_be_another(socket, pid, uid))
        rc = -ESRCH; /* the text may be of another process */
    if (pidfd >= 0)
        close(pidfd);
    if (!rc)
        *where = strdup(text_str(&t));
    text_free(&t);
    return rc ? rc : *where ? 0 : -ENOMEM;
}
