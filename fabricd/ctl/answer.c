/* SPDX-License-Identifier: BSD-3-Clause */
/* How a request has ended, for people and programs: see answer.h. */
#include "fabricd/ctl/answer.h"
#include "fabricd/ctl/ctl.h"
#include "fabricd/ctl/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- printing ---- */

bool answer_document(const struct answer_to *to, char *text, size_t len)
{
    struct text json = {0};
    bool good = !to->json || json_of_yaml(&json, text, len);
    if (good)
        fwrite(to->json ? text_str(&json) : text, 1, to->json ? json.len : len, stdout);
    text_free(&json);
    free(text);
    return good;
}

static void put_lines(struct text *out, const char *lines)
{
    text_printf(out, "[");
    for (const char *p = lines; *p;) {
        size_t n = strcspn(p, "\n");
        text_printf(out, p == lines ? "" : ", ");
        text_json_string(out, p, n);
        p += n + (p[n] != 0);
    }
    text_printf(out, "]");
}

int answer_outcome(const struct answer_to *to, int status, const char *error, const char *messages, const char *found)
{
    struct text out = {0}, more = {0};
    if (!to->json)
        return status;
    text_printf(&out, "{\"exit\": %d", status);
    if (error) {
        text_printf(&out, ", \"error\": ");
        text_json_string(&out, error, strlen(error));
    }
    text_printf(&out, ", \"messages\": ");
    put_lines(&out, messages);
    if (*found && json_of_yaml(&more, found, strlen(found)) && *more.s == '{' && more.s[1] != '}')
        text_printf(&out, ", %.*s", (int)strcspn(more.s, "\n") - 1, more.s + 1);
    else
        text_printf(&out, "}");
    printf("%s\n", text_str(&out));
    text_free(&out);
    text_free(&more);
    return status;
}

/* Locks and metrics are no YAML: JSON gets their lines. */
static void print_lines(const char *text)
{
    struct text out = {0};
    put_lines(&out, text);
    printf("%s\n", text_str(&out));
    text_free(&out);
}

/* ---- requests ---- */

int answer_fail(const struct answer_to *to, int rc)
{
    struct text why = {0};
    if (rc == -ENOENT || rc == -ECONNREFUSED)
        text_printf(&why, "%s: nobody serves there; start fabricd, or give --socket PATH", to->socket);
    else if (rc == -EACCES)
        text_printf(&why, "%s: this user may not go there; open the socket's directory, or give --socket PATH",
                    to->socket);
    else
        text_printf(&why, "%s: %s", to->socket, strerror(-rc));
    fprintf(stderr, "fabricctl: %s\n", text_str(&why));
    answer_outcome(to, 1, text_str(&why), "", "");
    text_free(&why);
    return 1;
}

/* True for questions, rather than orders. */
static bool is_document(enum fd_type type)
{
    return type == FD_STATUS || type == FD_LOCK || type == FD_RAIL_LIST || type == FD_RAIL_SHOW ||
           type == FD_PATHS_SHOW || type == FD_JOB_LIST || type == FD_HISTORY || type == FD_SHOW ||
           type == FD_METRICS || type == FD_JOIN_LIST;
}

/* For people. NULL: the printed text is enough. */
static const char *problem(enum fd_type type, int rc)
{
    switch (rc) {
    case 0:
        return NULL;
    case -EACCES:
        return "only root and the daemon's own user may do that";
    case FD_ROLLED_BACK:
        return "rolled back: all is as it was before";
    case FD_ROLLBACK_FAILED:
        return "it was not taken, and what was there before could not be brought back yet; fabricd goes on trying, and "
               "'fabricctl status' tells";
    case FD_PLANE_MISSING:
        return "in force, but not on the planes that are named";
    case -EALREADY:
        return "not applied: one change at a time";
    case -ENODATA:
        return type == FD_CHANGE ? "not done: no policy is in force" : NULL;
    case -ESRCH:
        return type == FD_CHANGE ? "not done: no opensm of this host runs" : NULL;
    case -EBUSY:
        return "too many requests wait for the daemon; try again later";
    case -EILSEQ: /* the differences from another policy have been printed */
        return type == FD_DIFF ? NULL : "the fabric differs from the policy; see 'fabricctl status'";
    case -EPERM:
    case -EINVAL:
        return "refused; nothing was changed";
    case -ECONNRESET:
        return "the daemon ended the connection";
    case -ENETDOWN:
        return "not done: no InfiniBand port of this host is active (ibstat tells)";
    case -EHOSTUNREACH:
        return type == FD_JOIN ? "not done"
                               : "not done: the switches' forwarding tables lead from one to the other on no path";
    case -EUCLEAN:
        return "that generation is damaged";
    case -ENOENT:
        return type == FD_SHOW         ? "not done: no such generation is kept; 'fabricctl policy history' lists them"
               : type == FD_CHANGE     ? "not done: it is not known what was there before the first policy"
               : type == FD_VERIFY     ? "not done: no policy is in force"
               : type == FD_PATHS_SHOW ? "not done: no subnet of this host has both"
               : type == FD_FORGET     ? "not done: there is no such class"
               : type == FD_LEAVE      ? "not done: no such job has joined"
               : type == FD_RAIL_DRAIN || type == FD_RAIL_UNDRAIN || type == FD_RAIL_SHOW
                   ? "not done: this host has no such rail; 'fabricctl rail list' names them"
                   : "not done: there is no such job";
    default:
        return NULL;
    }
}

/* True: a missing thing, which the daemon's text names. Errors of disks and memory are none of these. */
static bool is_named(int rc)
{
    return rc == -ENODEV || rc == -ESRCH || rc == -ENODATA || rc == -ENOENT || rc == -ETIMEDOUT || rc == -EACCES ||
           rc == -EHOSTDOWN || rc == -ENOTSUP || rc == -ECANCELED;
}

/* The last line for people. Each cause is given once: said, the daemon's text has given the cause. */
static const char *verdict(enum fd_type type, int rc, bool said, const char *error)
{
    if (!said || !is_named(rc))
        return error;
    return type == FD_CHANGE ? "not applied; nothing was changed" : "not done";
}

/* The daemon's answer, printed as it comes or, for JSON, kept in these. */
struct said {
    char *text, *found;
    size_t text_len, found_len;
    struct ctl_sink to;
};

static bool listen_to(const struct answer_to *to, struct said *s)
{
    *s = (struct said){.to = {.out = stdout, .progress = progress_begin()}};
    if (!to->json)
        return true;
    s->to.out = open_memstream(&s->text, &s->text_len);
    s->to.found = open_memstream(&s->found, &s->found_len);
    return s->to.out && s->to.found;
}

static void close_answer(struct said *s)
{
    if (s->to.out && s->to.out != stdout)
        fclose(s->to.out);
    if (s->to.found)
        fclose(s->to.found);
}

static int exit_status(int rc)
{
    switch (rc) {
    case 0:
        return 0;
    case -EINVAL:
        return 2;
    case FD_ROLLED_BACK:
        return 3;
    case FD_ROLLBACK_FAILED:
        return 4;
    case FD_PLANE_MISSING:
        return 5;
    default:
        return 1;
    }
}

int answer_request(const struct answer_to *to, enum fd_type type, void *msg, size_t len)
{
    char other[256];
    struct said s;
    int fd = ctl_connect(to->socket);
    if (fd < 0)
        return answer_fail(to, fd);
    int rc = !listen_to(to, &s)                            ? -ENOMEM
             : type == FD_JOB_LIST || type == FD_JOIN_LIST ? ctl_jobs(fd, type, &s.to)
                                                           : ctl_request_to(fd, type, msg, len, &s.to);
    close_answer(&s);
    close(fd);
    const char *error = problem(type, rc);
    if (rc && !error && rc != -EILSEQ) {
        if (s.to.said && is_named(rc))
            snprintf(other, sizeof(other), "not done");
        else
            snprintf(other, sizeof(other), "not done: %s", strerror(-rc));
        error = other;
    }
    if (error)
        fprintf(stderr, "fabricctl: %s\n", verdict(type, rc, s.to.said, error));
    int status = exit_status(rc);
    if (to->json && (type == FD_LOCK || type == FD_METRICS) && !rc) {
        print_lines(s.text);
    } else if (to->json && is_document(type) && !rc) {
        if (!answer_document(to, s.text, s.text_len))
            status = 1;
        s.text = NULL;
    } else {
        answer_outcome(to, status, error, s.text ? s.text : "", s.found ? s.found : "");
    }
    free(s.text);
    free(s.found);
    return status;
}
