/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A picture consists of the daemon's status, and of two readings of the ports' counters in sysfs. On a terminal each
 * picture replaces the former, cut to its size; elsewhere they follow each other.
 */
#include "fabricd/ctl/top.h"
#include "fabricd/ctl/ctl.h"
#include "fabricd/ctl/json.h"
#include "fabricd/fabric/rails.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SYSFS "/sys/class/infiniband"
#define WORD  4 /* bytes: port_xmit_data and port_rcv_data count these */

/* ---- counters ---- */

struct counters {
    bool known;
    uint64_t sent, received; /* words */
};

struct reading {
    struct rails rails;
    struct counters counters[FD_RAILS_MAX];
    uint64_t at_ns;
    bool simulated;
};

static bool read_counter(const char *device, unsigned port, const char *name, uint64_t *out)
{
    char path[256];
    struct text t = {0};
    snprintf(path, sizeof(path), SYSFS "/%s/ports/%u/counters/%s", device, port, name);
    bool ok = !text_read_file(&t, path, 4096);
    *out = ok ? strtoull(text_str(&t), NULL, 10) : 0;
    text_free(&t);
    return ok;
}

static bool is_simulated(const char *device)
{
    char path[256];
    struct text t = {0};
    snprintf(path, sizeof(path), SYSFS "/%s/board_id", device);
    bool yes = !text_read_file(&t, path, 4096) && !strncmp(text_str(&t), "simfab", 6);
    text_free(&t);
    return yes;
}

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void take_reading(struct reading *r)
{
    *r = (struct reading){.at_ns = monotonic_ns()};
    rails_read(&r->rails);
    for (unsigned i = 0; i < r->rails.n; i++) {
        const struct fd_rail *rail = &r->rails.rail[i];
        struct counters *c = &r->counters[i];
        c->known = read_counter(rail->device, rail->port, "port_xmit_data", &c->sent) &&
                   read_counter(rail->device, rail->port, "port_rcv_data", &c->received);
        r->simulated = r->simulated || is_simulated(rail->device);
    }
}

static const struct counters *counters_of(const struct reading *r, const struct fd_rail *rail)
{
    for (unsigned i = 0; i < r->rails.n; i++)
        if (!strcmp(r->rails.rail[i].device, rail->device) && r->rails.rail[i].port == rail->port)
            return r->counters[i].known ? &r->counters[i] : NULL;
    return NULL;
}

/* ---- the picture, line by line ---- */

struct picture {
    struct text out;
    unsigned rows, columns; /* 0: as many as there are */
    unsigned used;
};

static void print_row(struct picture *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool has_rows(const struct picture *p, unsigned lines)
{
    return !p->rows || p->used + lines < p->rows;
}

static void print_row(struct picture *p, const char *fmt, ...)
{
    struct text t = {0};
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(&t, fmt, ap);
    va_end(ap);
    size_t len = p->columns && t.len > p->columns ? p->columns : t.len;
    if (has_rows(p, 1)) {
        text_put(&p->out, text_str(&t), len);
        text_put(&p->out, "\n", 1);
        p->used++;
    }
    text_free(&t);
}

static const char *value(struct ydoc *y, yaml_node_t *map, const char *key)
{
    yaml_node_t *n = map ? ydoc_get(y, map, key) : NULL;
    const char *s = n ? ydoc_scalar(n) : NULL;
    return s ? s : "";
}

/* A list or a number, with commas. */
static void put_values(struct ydoc *y, yaml_node_t *n, struct text *out)
{
    const char *s = n ? ydoc_scalar(n) : NULL;
    if (s)
        text_printf(out, "%s%s", out->len ? "," : "", s);
    for (size_t i = 0; n && n->type == YAML_SEQUENCE_NODE; i++) {
        yaml_node_t *item = ydoc_item(y, n, i);
        if (!item)
            break;
        put_values(y, item, out);
    }
}

static void show_head(struct picture *p, struct ydoc *y, const struct reading *now)
{
    yaml_node_t *daemon = ydoc_get(y, ydoc_root(y), "fabricd"), *policy = ydoc_get(y, ydoc_root(y), "policy");
    yaml_node_t *follows = ydoc_get(y, ydoc_root(y), "follows");
    const char *waiting = value(y, follows, "waiting"), *differences = value(y, policy, "differences");
    print_row(p, "%s (%s), %s clients   policy: generation %s, %s, %s ports%s", value(y, daemon, "host"),
              value(y, daemon, "role"), value(y, daemon, "clients"), value(y, policy, "generation"),
              value(y, policy, "state"), value(y, policy, "ports"), now->simulated ? "   (simulated)" : "");
    if (strcmp(differences, "0"))
        print_row(p, "%s differences: fabricctl status names the ports", differences);
    if (*waiting && strcmp(waiting, "no"))
        print_row(p, "waiting: %s", waiting);
}

/* The traffic of a rail between two readings; false: unknown. */
struct rates {
    double sent, received; /* 10^6 bytes a second */
};

static bool rates_of(const struct reading *before, const struct reading *now, const struct fd_rail *r,
                     struct rates *out)
{
    double seconds = (double)(now->at_ns - before->at_ns) / 1e9;
    const struct counters *a = counters_of(before, r), *b = counters_of(now, r);
    if (!a || !b || seconds <= 0 || b->sent < a->sent || b->received < a->received) /* the counters have been reset */
        return false;
    out->sent = (double)(b->sent - a->sent) * WORD / seconds / 1e6;
    out->received = (double)(b->received - a->received) * WORD / seconds / 1e6;
    return true;
}

/* "bad 0.00", by the status; "-": not in the status. */
static void format_health(struct ydoc *y, const struct fd_rail *r, char out[32])
{
    yaml_node_t *rails = ydoc_get(y, ydoc_root(y), "rails"), *n;
    snprintf(out, 32, "-");
    for (size_t i = 0; rails && rails->type == YAML_SEQUENCE_NODE && (n = ydoc_item(y, rails, i)); i++)
        if (!strcmp(value(y, n, "device"), r->device) && strtoul(value(y, n, "port"), NULL, 10) == r->port &&
            *value(y, n, "health"))
            snprintf(out, 32, "%.20s %.4s", value(y, n, "health"), value(y, n, "weight"));
}

static void show_rails(struct picture *p, struct ydoc *y, const struct reading *before, const struct reading *now)
{
    print_row(p, "%s", "");
    print_row(p, "%-16s %-8s %10s %20s %20s  %s", "RAIL", "STATE", "Mb/s", "SENT MB/s", "RECEIVED MB/s", "HEALTH");
    for (unsigned i = 0; i < now->rails.n; i++) {
        const struct fd_rail *r = &now->rails.rail[i];
        struct rates rate;
        char name[64], sent[32] = "-", received[32] = "-", well[32];
        format_health(y, r, well);
        snprintf(name, sizeof(name), "%s/%u", r->device, r->port);
        if (rates_of(before, now, r, &rate)) {
            double full = now->rails.data_mbps[i] / 8.0, to_percent = full > 0 ? 100 / full : 0;
            snprintf(sent, sizeof(sent), "%.1f (%3.0f %%)", rate.sent, rate.sent * to_percent);
            snprintf(received, sizeof(received), "%.1f (%3.0f %%)", rate.received, rate.received * to_percent);
        }
        print_row(p, "%-16s %-8s %10u %20s %20s  %s", name, rails_state_name(r->state), r->rate_mbps, sent, received,
                  well);
    }
}

static void show_classes(struct picture *p, struct ydoc *y)
{
    yaml_node_t *classes = ydoc_get(y, ydoc_root(y), "classes"), *c;
    yaml_node_t *jobs = ydoc_get(y, ydoc_root(y), "jobs_by_class");
    if (!classes || classes->type != YAML_SEQUENCE_NODE)
        return;
    print_row(p, "%s", "");
    print_row(p, "%-16s %7s %5s %-20s %-20s %6s", "CLASS", "SHARE %", "PRIO", "SERVICE LEVELS", "LANES", "JOBS");
    for (size_t i = 0; (c = ydoc_item(y, classes, i)); i++) {
        static const char *const levels[] = {"sl_small", "sl_medium", "sl_bulk"};
        static const char *const lanes[] = {"vl_small", "vl_medium", "vl_bulk"};
        struct text sl = {0}, vl = {0};
        for (int k = 0; k < 3; k++) {
            put_values(y, ydoc_get(y, c, levels[k]), &sl);
            put_values(y, ydoc_get(y, c, lanes[k]), &vl);
        }
        print_row(p, "%-16s %7s %5s %-20s %-20s %6s", value(y, c, "name"), value(y, c, "share"),
                  value(y, c, "priority"), text_str(&sl), text_str(&vl), value(y, jobs, value(y, c, "name")));
        text_free(&sl);
        text_free(&vl);
    }
}

/* Of all classes; the status names only the first of many. */
static unsigned long count_jobs(struct ydoc *y)
{
    yaml_node_t *classes = ydoc_get(y, ydoc_root(y), "classes"), *c;
    yaml_node_t *jobs = ydoc_get(y, ydoc_root(y), "jobs_by_class");
    unsigned long n = 0;
    for (size_t i = 0; classes && classes->type == YAML_SEQUENCE_NODE && (c = ydoc_item(y, classes, i)); i++)
        n += strtoul(value(y, jobs, value(y, c, "name")), NULL, 10);
    return n;
}

static void show_jobs(struct picture *p, struct ydoc *y)
{
    yaml_node_t *jobs = ydoc_get(y, ydoc_root(y), "jobs"), *j;
    size_t shown = 0;
    if (!jobs || jobs->type != YAML_SEQUENCE_NODE || !ydoc_item(y, jobs, 0))
        return;
    print_row(p, "%s", "");
    print_row(p, "%-16s %-16s %-10s %-12s %s", "JOB", "CLASS", "SOURCE", "USER", "SINCE");
    for (; has_rows(p, 2) && (j = ydoc_item(y, jobs, shown)); shown++) { /* a line for how many are not here */
        const char *user = value(y, j, "user");
        print_row(p, "%-16s %-16s %-10s %-12s %s", value(y, j, "id"), value(y, j, "class"), value(y, j, "source"),
                  *user ? user : value(y, j, "uid"), value(y, j, "since"));
    }
    unsigned long n = count_jobs(y);
    if (n > shown)
        print_row(p, "and %lu more: fabricctl job list", n - shown);
}

/* ---- again and again ---- */

static int ask_status(const char *socket, struct text *status)
{
    struct fd_header h;
    char *s = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&s, &len);
    int fd = out ? ctl_connect(socket) : -ENOMEM;
    int rc = fd < 0 ? fd : ctl_request(fd, FD_STATUS, &h, sizeof(h), out, NULL);
    if (fd >= 0)
        close(fd);
    if (out)
        fclose(out);
    text_put(status, s ? s : "", len);
    free(s);
    return rc;
}

static void show(const struct text *status, const struct reading *before, const struct reading *now)
{
    struct diag d = {.file = "status"};
    struct picture p = {0};
    struct winsize w;
    struct ydoc y;
    bool terminal = isatty(STDOUT_FILENO);
    if (terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w)) {
        p.rows = w.ws_row;
        p.columns = w.ws_col;
    }
    if (ydoc_load(&y, text_str(status), status->len, &d)) {
        show_head(&p, &y, now);
        show_rails(&p, &y, before, now);
        show_classes(&p, &y);
        show_jobs(&p, &y);
        ydoc_free(&y);
    }
    text_free(&d.out);
    printf("%s%s%s", terminal ? "\033[H\033[J" : "", text_str(&p.out), terminal ? "" : "\n");
    fflush(stdout);
    text_free(&p.out);
}

static void show_json(const struct text *status, const struct reading *before, const struct reading *now)
{
    struct text out = {0};
    text_printf(&out, "{\"simulated\": %s, \"rates\": [", now->simulated ? "true" : "false");
    for (unsigned i = 0; i < now->rails.n; i++) {
        const struct fd_rail *r = &now->rails.rail[i];
        struct rates rate;
        text_printf(&out, "%s{\"device\": ", i ? ", " : "");
        text_json_string(&out, r->device, strlen(r->device));
        text_printf(&out, ", \"port\": %u", r->port);
        if (rates_of(before, now, r, &rate))
            text_printf(&out, ", \"sent_mbytes_s\": %.3f, \"received_mbytes_s\": %.3f", rate.sent, rate.received);
        text_printf(&out, "}");
    }
    text_printf(&out, "], \"status\": ");
    if (json_of_yaml(&out, text_str(status), status->len)) {
        printf("%.*s}\n", (int)out.len - 1, text_str(&out));
        fflush(stdout);
    }
    text_free(&out);
}

int top_run(const char *socket, const struct top_options *o)
{
    struct reading before, now;
    take_reading(&before);
    for (uint32_t i = 0; !o->count || i < o->count; i++) {
        struct text status = {0};
        struct timespec pause = {.tv_sec = o->interval_s};
        while (nanosleep(&pause, &pause) && errno == EINTR)
            ;
        int rc = ask_status(socket, &status);
        take_reading(&now);
        if (!rc && o->json)
            show_json(&status, &before, &now);
        else if (!rc)
            show(&status, &before, &now);
        text_free(&status);
        if (rc || ferror(stdout))
            return rc;
        before = now;
    }
    return 0;
}
