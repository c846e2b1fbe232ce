/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of fabricctl: see ctl.h. */
#include "fabricd/ctl/ctl.h"
#include "fabricd/proto/message.h"
#include "fabricd/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int ctl_connect(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int size = 2 * FD_MSG_MAX;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

/* Counts come only if the request has asked for them. */
static void show_count(struct progress *p, const struct fd_count *c)
{
    static const char *const things[] = {
        [FD_PORTS_READ] = "ports read",
        [FD_PORTS_RIGHT] = "ports have the tables",
        [FD_BLOCKS_BACK] = "blocks of the ports' tables are as before",
    };
    const char *what = c->what < sizeof(things) / sizeof(things[0]) ? things[c->what] : NULL;
    if (what && c->of >= c->done && c->of)
        progress_show(p, "fabricctl: %u of %u %s", c->done, c->of, what);
    else if (what)
        progress_show(p, "fabricctl: %u %s", c->done, what);
}

/* The result is known when this returns true. */
static bool take_daemon_message(const char *buf, size_t len, uint32_t seq, struct ctl_sink *to, int *status)
{
    const struct fd_header *h = (const struct fd_header *)buf;
    if (len < sizeof(*h) || h->magic != FD_MAGIC || h->version != FD_VERSION || h->length != len) {
        *status = -EPROTO;
        return true;
    }
    if (h->type == FD_DONE && len == sizeof(struct fd_done)) {
        *status = ((const struct fd_done *)buf)->status;
        return true;
    }
    if (h->type == FD_MORE && len == sizeof(struct fd_more))
        snprintf(to->more, FD_JOB_MAX, "%.*s", (int)FD_JOB_MAX - 1, ((const struct fd_more *)buf)->after);
    if (h->type == FD_COUNT && len == sizeof(struct fd_count) && h->seq == seq)
        show_count(&to->progress, (const struct fd_count *)buf);
    if (h->type == FD_TEXT && h->seq == seq) {
        progress_erase(&to->progress);
        fwrite(buf + sizeof(*h), 1, len - sizeof(*h), to->out);
        to->said = true;
        fflush(to->out);
    }
    if (h->type == FD_FOUND && h->seq == seq && to->found)
        fwrite(buf + sizeof(*h), 1, len - sizeof(*h), to->found);
    return false;
}

int ctl_request_to(int fd, enum fd_type type, void *msg, size_t len, struct ctl_sink *to)
{
    static _Alignas(16) char buf[FD_MSG_MAX];
    struct fd_header h = message_header(type, len, 1);
    int status = 0;
    *to->more = 0;
    memcpy(msg, &h, sizeof(h));
    if (send(fd, msg, len, MSG_NOSIGNAL) != (ssize_t)len)
        return -errno;
    for (bool done = false; !done;) {
        ssize_t n = recv(fd, buf, sizeof(buf), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            status = n < 0 ? -errno : -ECONNRESET;
        done = n <= 0 || take_daemon_message(buf, (size_t)n, 1, to, &status);
    }
    progress_erase(&to->progress);
    return status;
}

int ctl_request(int fd, enum fd_type type, void *msg, size_t len, FILE *out, FILE *found)
{
    struct ctl_sink to = {.out = out, .found = found};
    return ctl_request_to(fd, type, msg, len, &to);
}

int ctl_jobs(int fd, enum fd_type type, struct ctl_sink *to)
{
    struct fd_job m = {0};
    int rc;
    do {
        memcpy(m.job, to->more, sizeof(m.job));
        rc = ctl_request_to(fd, type, &m, sizeof(m), to);
    } while (!rc && *to->more && strcmp(to->more, m.job) > 0);
    return rc;
}

static bool is_sane(const struct fd_state *s, size_t len)
{
    int levels = fd_state_num_levels(s, len);
    if (levels < 0 || s->h.magic != FD_MAGIC || s->h.version != FD_VERSION || s->h.type != FD_STATE ||
        s->h.length != len || s->num_lanes < 1 || s->num_lanes > FD_LANES_MAX ||
        s->class_name[sizeof(s->class_name) - 1])
        return false;
    const struct fd_spread *spread = fd_state_spread(s, len, levels);
    if (spread && (spread->small[FD_SPREAD_MAX - 1] || spread->large[FD_SPREAD_MAX - 1]))
        return false;
    for (int i = 0; i < levels; i++)
        if (!fd_level_is_sane(&fd_state_levels(s)[i], i ? fd_state_levels(s)[i - 1].max : s->small_max))
            return false;
    return true;
}

int ctl_hello(int fd, const char *job, struct fd_state_long *s)
{
    struct fd_hello m = {.h = message_header(FD_HELLO, sizeof(m), 1),
                         .flags = FD_HELLO_LEVELS | FD_HELLO_SPREAD | FD_HELLO_OWNER | FD_HELLO_KNOWN};
    if (strlen(job) >= sizeof(m.job))
        return -ENAMETOOLONG;
    memcpy(m.job, job, strlen(job));
    if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m))
        return -errno;
    ssize_t n = recv(fd, s, sizeof(*s), 0);
    if (n < 0)
        return -errno;
    return is_sane(&s->s, (size_t)n) ? 0 : -EPROTO;
}

/* ---- an answer for people --------------------------------------------------------------------------------------- */

static void print_lanes(FILE *out, const uint8_t *sl, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        fprintf(out, "%s%u", i ? ", " : "", sl[i]);
}

/* The levels between small and large. */
static void show_levels(FILE *out, const struct fd_state *s)
{
    const struct fd_level *l = fd_state_levels(s);
    int n = fd_state_num_levels(s, s->h.length);
    for (int i = 0; i < n; i++) {
        fprintf(out, "%s{upto: %u, sl: [", i ? ", " : "medium: [", l[i].max);
        print_lanes(out, l[i].sl, l[i].num_lanes);
        fprintf(out, "]}");
    }
    if (n > 0)
        fprintf(out, "]\n");
}

static void show_spread(FILE *out, const struct fd_state *s)
{
    const struct fd_spread *spread = fd_state_spread(s, s->h.length, fd_state_num_levels(s, s->h.length));
    if (!spread)
        return;
    fprintf(out, "rails: {small: \"%s\", large: \"%s\"}\n", *spread->small ? spread->small : "auto",
            *spread->large ? spread->large : "auto");
}

/* The part of a rail that a process may send ahead of the bulk on each such level: the least of the levels. */
static void show_ahead(FILE *out, const struct fd_state *s)
{
    unsigned least = 0;
    for (unsigned i = 0; i < s->num_rails; i++)
        if (s->rails[i].ahead && (!least || s->rails[i].ahead < least))
            least = s->rails[i].ahead;
    if (least)
        fprintf(out, "ahead: %.4g\n", 100.0 * least / FD_AHEAD_ALL);
}

void ctl_show_state(FILE *out, const char *job, const struct fd_state *s)
{
    struct text id = {0};
    text_yaml_string(&id, job);
    fprintf(out, "job: %s\n", text_str(&id));
    text_free(&id);
    if (s->changed & FD_NO_JOB)
        fprintf(out, "known: false\n");
    if (s->status) {
        fprintf(out, "class: none\n");
        return;
    }
    fprintf(out, "class: %s\nsl_small: %u\nsl_bulk: [", s->class_name, s->sl_small);
    print_lanes(out, s->sl_bulk, s->num_lanes);
    fprintf(out, "]\nsmall: %u\n", s->small_max);
    show_levels(out, s);
    show_spread(out, s);
    show_ahead(out, s);
    fprintf(out, "generation: %llu\nverified: %s\n", (unsigned long long)s->generation, s->verified ? "true" : "false");
}
