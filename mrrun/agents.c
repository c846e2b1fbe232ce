/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun's side of its agents. */
#include "mrrun/agents.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/api/inquiry.h"
#include "libmrmpi/base/idioms.h"
#include "mrrun/report.h"
#include "mrrun/server.h"
#include "mrrun/streams.h"
#include "mrrun/tree.h"

/* Limit of all output under way; but a window is at least WINDOW_MIN. */
enum { WINDOWS_BYTES = 16 << 20, WINDOW_MIN = 4096, WINDOW_MAX = 65536 };
enum { LOOK_MS = 1000, LEAVE_MS = 5000, FETCH_MS = 30000 };

struct far_host {
    bool up, lost;
};

struct agents {
    struct job *job;
    struct tree tree;
    char secret[WIRE_SECRET + 1];
    char **name;      /* of hosts, in the order of the tree, */
    uint32_t *number; /* and their numbers */
    struct streams streams;
    struct reports reports;
    struct far_host *host; /* [hosts] */
    int num_hosts, num_up;
    bool ran, leaving;
    uint32_t look; /* number of the question */
    int unlooked;  /* hosts without an answer yet */
    uint64_t look_until_ms;
    enum ending *ending;
};

/* ---- events ---- */

static void end_look(struct agents *a)
{
    struct agents_event event = {.kind = AGENTS_LOOKED, .ending = a->ending};

    a->ending = NULL;
    a->unlooked = 0;
    a->look_until_ms = 0;
    reports_post(&a->reports, &event);
}

/* text becomes the event's. */
static void lose_host(struct agents *a, unsigned number, char *text)
{
    struct agents_event event = {.kind = AGENTS_LOST, .host = (int)number, .text = text};
    struct far_host *host = &a->host[number];

    if (host->lost || a->leaving) {
        free(text);
        return;
    }
    host->lost = true;
    reports_post(&a->reports, &event);
    if (a->ending && --a->unlooked <= 0)
        end_look(a);
    streams_forget(&a->streams, number);
}

static void lose_agent_host(void *arg, unsigned number, const char *why)
{
    char *text = why ? strdup(why) : NULL;

    if (why && !text)
        abort();
    lose_host(arg, number, text);
}

/* ---- reports of agents ---- */

static bool take_ready(struct agents *a, const struct wire_frame *f)
{
    struct agents_event event = {.kind = AGENTS_UP};

    if (a->host[f->host].up)
        return false;
    a->host[f->host].up = true;
    if (++a->num_up == a->num_hosts)
        reports_post(&a->reports, &event);
    return true;
}

static bool take_endings(struct agents *a, const struct wire_frame *f)
{
    bool wanted = a->ending && f->arg == a->look;

    if (!reports_decode_endings(f, a->job->place.ranks, wanted ? a->ending : NULL))
        return false;
    if (wanted && --a->unlooked <= 0)
        end_look(a);
    return true;
}

/* An answer to an inquiry becomes a file here, as the rank would have made it. */
static bool write_answer_file(struct agents *a, const struct wire_frame *f)
{
    char name[512];
    int fd;

    snprintf(name, sizeof(name), MR_INQUIRY_ANSWER, a->job->scratch.path, (int)f->arg);
    fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return true;
    if (write(fd, f->body, f->len) != (ssize_t)f->len) /* an incomplete answer is dropped */
        unlink(name);
    close(fd);
    return true;
}

static bool take_state(struct agents *a, const struct wire_frame *f)
{
    if (f->len == 1)
        a->job->ranks[f->arg].state = *f->body;
    return f->len == 1;
}

static bool is_of_host(const struct agents *a, const struct wire_frame *f)
{
    return f->arg < (uint32_t)a->job->place.ranks && a->job->place.host_of[f->arg] == (int)f->host;
}

/* Reports that are events: of a host, or of a rank. */
static bool take_report(struct agents *a, const struct wire_frame *f)
{
    struct agents_event event;

    if ((f->kind != WIRE_LOST && f->kind != WIRE_SAY && !is_of_host(a, f)) || !reports_decode(f, &event))
        return false;
    if (f->kind == WIRE_LOST)
        lose_host(a, f->host, event.text);
    else
        reports_post(&a->reports, &event);
    return true;
}

static bool take_frame(void *arg, const struct wire_frame *f)
{
    struct agents *a = arg;

    if (f->host >= (unsigned)a->num_hosts)
        return false;
    switch (f->kind) {
    case WIRE_READY:
        return take_ready(a, f);
    case WIRE_ENDINGS:
        return take_endings(a, f);
    case WIRE_ANSWER:
        return is_of_host(a, f) && write_answer_file(a, f);
    case WIRE_STATE:
        return is_of_host(a, f) && take_state(a, f);
    case WIRE_DATA:
    case WIRE_TAKEN:
    case WIRE_END:
        return streams_take(&a->streams, f);
    default:
        return take_report(a, f);
    }
}

static void send_frame(const struct channel_base *b, const struct wire_frame *f)
{
    tree_send(&container_of(b, struct agents, streams.base)->tree, f);
}

/* ---- orders to agents ---- */

static void send_to(struct agents *a, enum wire_kind kind, unsigned host, uint32_t arg, struct wire_text *body)
{
    struct wire_frame f = {.kind = kind, .host = host, .arg = arg};

    if (body) {
        f.body = body->bytes;
        f.len = body->len;
    }
    tree_send(&a->tree, &f);
    if (body)
        free(body->bytes);
}

int agents_add_part(struct agents *a, int part, char *const *env)
{
    const struct mrrun_part *of = &a->job->opts->parts[part];
    char here[4096];
    const char *dir = of->wdir && *of->wdir == '/' ? of->wdir : getcwd(here, sizeof(here));
    struct wire_part p = {
        .program = of->program[0], .mpi = a->job->mpi[part], .args = of->program, .env = (char **)env};
    struct wire_text body = {0};
    char *inside = NULL;

    if (!dir || (dir == here && of->wdir && asprintf(&inside, "%s/%s", here, of->wdir) < 0))
        return -errno;
    p.dir = inside ? inside : dir;
    wire_put_part(&body, &p);
    free(inside);
    if (body.len > WIRE_BODY_MAX) {
        free(body.bytes);
        return -E2BIG;
    }
    send_to(a, WIRE_PART, WIRE_ALL, (uint32_t)part, &body);
    return 0;
}

static bool has(char *const *env, const char *text)
{
    for (; *env; env++)
        if (!strcmp(*env, text))
            return true;
    return false;
}

/* The port of the PMIx server: "...;tcp4://127.0.0.1:PORT". */
static uint32_t port_of(const char *text)
{
    const char *uri = strncmp(text, "PMIX_SERVER_URI", 15) ? NULL : strrchr(text, ':');

    return uri ? (uint32_t)strtoul(uri + 1, NULL, 10) : 0;
}

int agents_add_rank(struct agents *a, int rank, char *const *part_env, char *const *env)
{
    struct wire_rank k = {.part = (uint32_t)a->job->ranks[rank].part, .reads = mrrun_options_reads(a->job->opts, rank)};
    struct wire_text body = {0};
    size_t count = 0, n = 0;

    while (env[count])
        count++;
    k.env = calloc(count + 1, sizeof(*k.env));
    if (!k.env)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        uint32_t port = port_of(env[i]);

        if (!has(part_env, env[i]))
            k.env[n++] = env[i];
        if (port)
            a->streams.pmix_port = port;
    }
    wire_put_rank(&body, &k);
    free(k.env);
    if (body.len > WIRE_BODY_MAX) {
        free(body.bytes);
        return -E2BIG;
    }
    send_to(a, WIRE_RANK, (unsigned)a->job->place.host_of[rank], (uint32_t)rank, &body);
    return 0;
}

void agents_run(struct agents *a)
{
    const struct binding_wish *bind = &a->job->opts->binding;
    struct wire_run run = {.ranks = (uint32_t)a->job->place.ranks,
                           .pmix_port = a->streams.pmix_port,
                           .bind_to = bind->to,
                           .bind_units = (uint32_t)bind->units,
                           .bind_map = bind->map,
                           .simfab = a->job->hosts.simfab ? a->job->hosts.simfab : ""};
    struct wire_text body = {0};

    a->ran = true;
    for (int r = 0; r < a->job->place.ranks; r++) {
        a->job->ranks[r].running = true;
        a->job->running++;
        streams_begin(&a->streams, r);
    }
    wire_put_run(&body, &run);
    send_to(a, WIRE_RUN, WIRE_ALL, 0, &body);
}

void agents_signal(struct agents *a, int rank, int sig)
{
    struct wire_text body = {0};

    if (rank >= 0)
        wire_put_number(&body, (uint32_t)rank);
    send_to(a, WIRE_SIGNAL, rank < 0 ? WIRE_ALL : (unsigned)a->job->place.host_of[rank], (uint32_t)sig, &body);
}

void agents_kill_all(struct agents *a)
{
    send_to(a, WIRE_KILL_ALL, WIRE_ALL, 0, NULL);
}

/* Queued orders go out before mrrun is stopped, as far as possible. */
void agents_pause(struct agents *a, bool pause)
{
    a->tree.paused = pause;
    send_to(a, WIRE_PAUSE, WIRE_ALL, pause, NULL);
    while (pause && watch_serve(a->tree.set, 20))
        continue;
    tree_look(&a->tree);
}

void agents_ask(struct agents *a, uint32_t number)
{
    send_to(a, WIRE_ASK, WIRE_ALL, number, NULL);
}

void agents_tell_end(struct agents *a, int rank)
{
    send_to(a, WIRE_ENDED, WIRE_ALL, (uint32_t)rank, NULL);
}

void agents_look(struct agents *a)
{
    free(a->ending);
    a->ending = calloc((size_t)a->job->place.ranks, sizeof(*a->ending));
    if (!a->ending)
        abort();
    a->unlooked = 0;
    for (int h = 0; h < a->num_hosts; h++)
        a->unlooked += !a->host[h].lost;
    a->look_until_ms = link_now_ms() + LOOK_MS;
    send_to(a, WIRE_LOOK, WIRE_ALL, ++a->look, NULL);
    if (!a->unlooked)
        end_look(a);
}

void agents_look_for_strangers(struct agents *a, const int *ranks, int count)
{
    struct wire_text body = {0};

    for (int i = 0; i < count; i++)
        wire_put_number(&body, (uint32_t)ranks[i]);
    send_to(a, WIRE_STRANGE, WIRE_ALL, 0, &body);
}

/* ---- life ---- */

int agents_fd(const struct agents *a)
{
    return a->tree.set;
}

char *agents_missing(const struct agents *a)
{
    enum { NAMED = 16 };
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    int n = 0;

    for (int h = 0; out && h < a->num_hosts; h++)
        if (!a->host[h].up && n++ < NAMED)
            fprintf(out, "%s%s", n > 1 ? ", " : "", a->job->hosts.name[h]);
    if (out && n > NAMED)
        fprintf(out, " and %d more", n - NAMED);
    if (!out || fclose(out))
        abort();
    return text;
}

bool agents_starting(const struct agents *a)
{
    return !a->ran;
}

uint64_t agents_due_ms(const struct agents *a)
{
    return a->tree.looked_ms + TREE_LOOK_MS;
}

void agents_serve(struct agents *a)
{
    uint64_t now = link_now_ms();

    for (int i = 0; i < 256 && watch_serve(a->tree.set, 0); i++)
        continue;
    if (now >= a->tree.looked_ms + TREE_LOOK_MS)
        tree_look(&a->tree);
    if (a->look_until_ms && now >= a->look_until_ms)
        end_look(a);
    if (a->ran)
        streams_settle(&a->streams);
}

bool agents_next_event(struct agents *a, struct agents_event *event)
{
    return reports_next(&a->reports, event);
}

bool agents_reaped(struct agents *a, pid_t pid, int status)
{
    return tree_reaped(&a->tree, pid, status);
}

static void make_secret(char secret[WIRE_SECRET + 1])
{
    unsigned char bytes[WIRE_SECRET / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        abort();
    for (size_t i = 0; i < sizeof(bytes); i++)
        sprintf(secret + 2 * i, "%02x", bytes[i]);
}

/* This machine first, if it is a host of the job: started without a launcher. */
static bool order_hosts(const struct job *job, char **name, uint32_t *number)
{
    int here = -1, n = 0;

    for (int h = 0; h < job->hosts.count && here < 0; h++)
        if (!job->hosts.far[h])
            here = h;
    if (here >= 0) {
        name[n] = job->hosts.name[here];
        number[n++] = (uint32_t)here;
    }
    for (int h = 0; h < job->hosts.count; h++) {
        if (h == here)
            continue;
        name[n] = job->hosts.name[h];
        number[n++] = (uint32_t)h;
    }
    return here >= 0;
}

static uint32_t choose_window(int ranks)
{
    uint32_t each = WINDOWS_BYTES / (2 * (uint32_t)ranks);

    return each > WINDOW_MAX ? WINDOW_MAX : each < WINDOW_MIN ? WINDOW_MIN : each;
}

static int open_tree(struct agents *a, const char *mrrun)
{
    struct job *job = a->job;
    bool here = order_hosts(job, a->name, a->number);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct wire_start start = {.version = WIRE_VERSION,
                               .secret = a->secret,
                               .scratch = job->scratch.path,
                               .job_id = job->job_id,
                               .nspace = server_namespace(),
                               .window = choose_window(job->place.ranks),
                               .launcher = job->hosts.launcher,
                               .mrrun = mrrun,
                               .host = a->name,
                               .number = a->number,
                               .num_hosts = (size_t)job->hosts.count};

    a->tree.arg = a;
    a->tree.files = job->old_files;
    a->tree.frame = take_frame;
    a->tree.lost = lose_agent_host;
    a->streams.base = (struct channel_base){.set = set, .window = start.window, .send = send_frame};
    return set < 0 || streams_open(&a->streams, job) ? -1 : tree_open(&a->tree, set, &start, here);
}

int agents_open(struct job *job, const char *mrrun, char *why, size_t cap)
{
    struct agents *a = calloc(1, sizeof(*a));

    if (a) {
        job->agents = a;
        a->job = job;
        reports_open(&a->reports);
        a->num_hosts = job->hosts.count;
        a->host = calloc((size_t)a->num_hosts, sizeof(*a->host));
        a->name = calloc((size_t)a->num_hosts + 1, sizeof(*a->name));
        a->number = calloc((size_t)a->num_hosts + 1, sizeof(*a->number));
        a->tree.set = -1;
        make_secret(a->secret);
    }
    if (a && a->host && a->name && a->number && !open_tree(a, mrrun))
        return 0;
    snprintf(why, cap, "cannot start agents: no memory or open files are left");
    return -1;
}

static void serve_until(struct agents *a, uint64_t until)
{
    uint64_t now = link_now_ms();

    watch_serve(a->tree.set, now < until ? 20 : 0);
    tree_look(&a->tree);
}

/* In mrrun's own loop nothing is left to do: only a second request to end counts. */
void agents_fetch(struct agents *a)
{
    uint64_t until = link_now_ms() + FETCH_MS;

    if (!a || !a->ran || !job_wants_records(a->job->opts) || a->job->hurry)
        return;
    for (int r = 0; r < a->job->place.ranks; r++) {
        unsigned host = (unsigned)a->job->place.host_of[r];

        if (!a->host[host].lost && streams_await_record(&a->streams, r))
            send_to(a, WIRE_FETCH, host, (uint32_t)r, NULL);
    }
    while (streams_records_open(&a->streams) && link_now_ms() < until)
        serve_until(a, until);
}

static void reap_launchers(struct agents *a)
{
    int status;
    pid_t pid;

    while (tree_launchers(&a->tree) && (pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (!tree_reaped(&a->tree, pid, status) && pid == a->job->scratch.janitor)
            a->job->scratch.janitor = -1;
}

static void free_all(struct agents *a)
{
    reports_close(&a->reports);
    streams_close(&a->streams);
    tree_close(&a->tree);
    if (a->tree.set >= 0)
        close(a->tree.set);
    free(a->ending);
    free(a->name);
    free(a->number);
    free(a->host);
    free(a);
}

void agents_close(struct agents *a)
{
    uint64_t until;

    if (!a)
        return;
    a->leaving = true;
    tree_kill_launchers(&a->tree, false);
    send_to(a, WIRE_LEAVE, WIRE_ALL, 0, NULL);
    until = link_now_ms() + LEAVE_MS;
    while (tree_launchers(&a->tree) && link_now_ms() < until) {
        serve_until(a, until);
        reap_launchers(a);
    }
    tree_kill_launchers(&a->tree, true);
    a->job->agents = NULL;
    free_all(a);
}
