/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMIx server: facts for ranks, and messages from ranks. */
#include "mrrun/server.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <sys/random.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_server.h>

#include "mrrun/environment.h"
#include "mrrun/published.h"
#include "mrrun/signals.h"

struct queued_event {
    struct queued_event *next;
    struct server_event event;
};

static struct {
    pmix_nspace_t nspace;
    int ranks;
    int event_fd;
    _Atomic pid_t *pid; /* [ranks]; 0: none */
    bool hold_aborts;
    pthread_mutex_t lock; /* of the queue */
    struct queued_event *head, **tail;
} server = {.event_fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .tail = &server.head};

/* ---- callbacks, on libpmix's thread ---- */

static void post_event(const struct server_event *event)
{
    struct queued_event *q = malloc(sizeof(*q));

    if (!q)
        abort();
    q->event = *event;
    q->next = NULL;
    pthread_mutex_lock(&server.lock);
    *server.tail = q;
    server.tail = &q->next;
    pthread_mutex_unlock(&server.lock);
    eventfd_write(server.event_fd, 1);
}

static pmix_status_t on_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *cbdata)
{
    struct server_event event = {.kind = SERVER_CONNECTED, .rank = proc->rank};

    post_event(&event);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done, void *cbdata)
{
    struct server_event event = {.kind = SERVER_FINALIZED, .rank = proc->rank};

    post_event(&event);
    return PMIX_OPERATION_SUCCEEDED;
}

/* The aborting rank waits for our answer and is alive, so it did not cause any end now under way. */
static enum ending *who_ends_now(void)
{
    pid_t *pid = calloc(server.ranks, sizeof(*pid));
    enum ending *ending = calloc(server.ranks, sizeof(*ending));

    if (pid && ending) {
        for (int r = 0; r < server.ranks; r++)
            pid[r] = server.pid[r];
        processes_ending(pid, server.ranks, ending);
    }
    free(pid);
    return ending;
}

static pmix_status_t on_abort(const pmix_proc_t *proc, void *object, int status, const char msg[], pmix_proc_t procs[],
                              size_t nprocs, pmix_op_cbfunc_t done, void *cbdata)
{
    static bool before; /* the first abort tells all */
    bool hold = server.hold_aborts && !before;
    struct server_event event = {.kind = SERVER_ABORT,
                                 .rank = proc->rank,
                                 .code = status,
                                 .ending = before || hold ? NULL : who_ends_now(),
                                 .answer = hold ? done : NULL,
                                 .answer_arg = cbdata};

    before = true;
    snprintf(event.why, sizeof(event.why), "%s", msg ? msg : "");
    post_event(&event);
    return hold ? PMIX_SUCCESS : PMIX_OPERATION_SUCCEEDED;
}

/* This server has all participants: its collected data is complete. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
                              char *data, size_t ndata, pmix_modex_cbfunc_t done, void *cbdata)
{
    done(PMIX_SUCCESS, data, ndata, cbdata, free, data);
    return PMIX_SUCCESS;
}

/*
 * A rank whose job recovers publishes keys of these beginnings: behind its first fence (libmrmpi/api/init/init.c), and
 * when it takes another rank, whose number follows, for dead (libmrmpi/p2p/fault/lost.c).
 */
#define KEY_MET   "mrmpi.met"
#define KEY_DOUBT "mrmpi.lost."

static bool begins_with(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* True: the rank waits for server_answer(). */
static bool hear_key(int rank, const char *key, pmix_op_cbfunc_t done, void *cbdata)
{
    struct server_event event = {.kind = SERVER_MET, .rank = rank};
    bool doubt = begins_with(key, KEY_DOUBT);

    if (doubt) {
        event.kind = SERVER_DOUBT;
        event.code = atoi(key + strlen(KEY_DOUBT));
        event.answer = done;
        event.answer_arg = cbdata;
    }
    if (doubt || begins_with(key, KEY_MET))
        post_event(&event);
    return doubt;
}

/* Directives, such as a lifetime, have names of libpmix's own: published values stay as long as the job. */
static pmix_status_t on_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done,
                                void *cbdata)
{
    pmix_status_t rc = PMIX_SUCCESS;
    bool waits = false;

    for (size_t i = 0; i < ninfo && rc == PMIX_SUCCESS && !waits; i++) {
        if (!PMIX_CHECK_RESERVED_KEY(info[i].key))
            rc = published_add(proc, info[i].key, &info[i].value);
        waits = hear_key((int)proc->rank, info[i].key, done, cbdata);
    }
    if (!waits)
        done(rc, cbdata);
    return PMIX_SUCCESS;
}

/* Returns present values, and waits for none. */
static pmix_status_t on_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t ninfo,
                               pmix_lookup_cbfunc_t done, void *cbdata)
{
    size_t wanted = 0, found = 0;

    while (keys && keys[wanted])
        wanted++;
    pmix_pdata_t *data = malloc((wanted + 1) * sizeof(*data));
    if (!data)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < wanted; i++) {
        const pmix_pdata_t *d = published_find(keys[i]);
        if (d)
            data[found++] = *d;
    }
    done(found ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND, data, found, cbdata);
    free(data);
    return PMIX_SUCCESS;
}

static pmix_status_t on_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[], size_t ninfo,
                                  pmix_op_cbfunc_t done, void *cbdata)
{
    pmix_status_t rc = PMIX_SUCCESS;

    for (; keys && *keys && rc == PMIX_SUCCESS; keys++)
        rc = published_remove(*keys);
    done(rc, cbdata);
    return PMIX_SUCCESS;
}

/* Asked only for a rank that is not a client here, and there is none. */
static pmix_status_t on_direct_modex(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                     pmix_modex_cbfunc_t done, void *cbdata)
{
    return PMIX_ERR_NOT_FOUND;
}

static pmix_server_module_t callbacks = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_direct_modex,
    .publish = on_publish,
    .lookup = on_lookup,
    .unpublish = on_unpublish,
};

/* ---- waiting for an operation of libpmix ---- */

/*
 * libpmix's thread is waited for only before the first rank is started. From then on ranks can block that thread:
 * libpmix 4.2 never leaves the set-up of a connection whose rank ended meanwhile.
 */
enum { PATIENCE_MS = 60000, LOOK_MS = 20 };

/* Shared with libpmix's thread; whoever of the two comes last frees it. */
struct completion {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, given_up;
    pmix_status_t status;
};

static struct completion *completion_new(void)
{
    struct completion *c = calloc(1, sizeof(*c));
    pthread_condattr_t attr;

    if (!c)
        abort();
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    return c;
}

static void completion_free(struct completion *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void complete(pmix_status_t status, void *cbdata)
{
    struct completion *c = cbdata;

    pthread_mutex_lock(&c->lock);
    bool given_up = c->given_up;
    c->status = status;
    c->done = true;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (given_up)
        completion_free(c);
}

static void wait_a_little(struct completion *c)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

/* rc is the result of the call: only PMIX_SUCCESS means that complete() will be called. Takes *c over. */
static pmix_status_t await(struct completion *c, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS) {
        completion_free(c);
        return rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc;
    }
    pthread_mutex_lock(&c->lock);
    for (int ms = 0; !c->done && ms < PATIENCE_MS && !signals_end_asked(); ms += LOOK_MS)
        wait_a_little(c);
    bool done = c->done;
    c->given_up = !done;
    rc = done ? c->status : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&c->lock);
    if (done)
        completion_free(c);
    return rc;
}

/* ---- facts for ranks ---- */

/* A growing array of pmix_info_t; loading copies the value. */
struct info_list {
    pmix_info_t *info;
    size_t count, room;
};

static void info_add(struct info_list *list, const char *key, const void *value, pmix_data_type_t type)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        pmix_info_t *grown = realloc(list->info, room * sizeof(*grown));
        if (!grown)
            abort();
        list->info = grown;
        list->room = room;
    }
    PMIX_INFO_LOAD(&list->info[list->count], key, value, type);
    list->count++;
}

static void info_clear(struct info_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        PMIX_INFO_DESTRUCT(&list->info[i]);
    free(list->info);
}

static void info_add_u32(struct info_list *list, const char *key, uint32_t value)
{
    info_add(list, key, &value, PMIX_UINT32);
}

/* A nested array takes a copy of its own, so the inner list is cleared here. */
static void info_add_array(struct info_list *list, const char *key, struct info_list *inner)
{
    pmix_data_array_t array = {.type = PMIX_INFO, .size = inner->count, .array = inner->info};

    info_add(list, key, &array, PMIX_DATA_ARRAY);
    info_clear(inner);
}

/*
 * Facts of the job only, none of single ranks or hosts: libpmix copies all facts into every rank, and facts of a rank
 * took 3 KiB there. A rank's own facts are in its environment; one text gives the hosts of all ranks.
 */
static void add_job_facts(struct info_list *list, const struct placement *place, int universe, const char *job_id,
                          const char *map)
{
    info_add(list, PMIX_JOBID, job_id, PMIX_STRING);
    info_add_u32(list, PMIX_UNIV_SIZE, universe);
    info_add_u32(list, PMIX_JOB_SIZE, place->ranks);
    info_add_u32(list, PMIX_MAX_PROCS, place->ranks);
    info_add_u32(list, PMIX_APP_SIZE, place->ranks);
    info_add_u32(list, PMIX_JOB_NUM_APPS, place->num_parts);
    info_add_u32(list, PMIX_NUM_NODES, place->num_hosts);
    info_add(list, PMIX_ANL_MAP, map, PMIX_STRING);
}

/*
 * The parts of the command line, PMIx' applications, by their first ranks: that is how a rank knows its own. There are
 * fewer of them than ranks.
 */
static void add_parts(struct info_list *list, const struct placement *place)
{
    for (int i = 0; i < place->num_parts && place->num_parts > 1; i++) {
        struct info_list part = {0};
        pmix_rank_t first = place->part_first[i];

        info_add_u32(&part, PMIX_APPNUM, i);
        info_add_u32(&part, PMIX_APP_SIZE, place->part_first[i + 1] - place->part_first[i]);
        info_add(&part, PMIX_APPLDR, &first, PMIX_PROC_RANK);
        info_add_array(list, PMIX_APP_INFO_ARRAY, &part);
    }
}

/*
 * libpmix's server (4.2, gds_hash.c, register_info) takes the answer to its last question, for facts of the last rank,
 * as the result for all. So the last rank has one fact.
 */
static void add_last_rank(struct info_list *list, const struct placement *place)
{
    struct info_list proc = {0};
    pmix_rank_t rank = place->ranks - 1;

    info_add(&proc, PMIX_RANK, &rank, PMIX_PROC_RANK); /* first: libpmix files the others under the rank */
    info_add_u32(&proc, PMIX_APPNUM, place->num_parts - 1);
    info_add_array(list, PMIX_PROC_INFO_ARRAY, &proc);
}

static pmix_status_t register_job(const struct placement *place, int universe, const char *job_id)
{
    struct info_list list = {0};
    char *map = placement_map(place);

    if (!map)
        return PMIX_ERR_NOMEM;
    struct completion *c = completion_new();
    add_job_facts(&list, place, universe, job_id, map);
    free(map);
    add_parts(&list, place);
    add_last_rank(&list, place);
    /* libpmix may read the list as long as it has not answered */
    pmix_status_t rc =
        await(c, PMIx_server_register_nspace(server.nspace, place->ranks, list.info, list.count, complete, c));
    if (rc != PMIX_ERR_TIMEOUT)
        info_clear(&list);
    return rc;
}

/* ---- life ---- */

/* Sets or, with NULL, unsets a variable; returns its old value, which the caller frees. */
static char *exchange_variable(const char *name, const char *value)
{
    const char *now = getenv(name);
    char *old = now ? strdup(now) : NULL;

    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    return old;
}

/*
 * libpmix's server reads the topology of the machine at its start: hwloc loads plugins, with the libraries of displays
 * and graphics cards, and reads the configuration of all PCI devices. This took half of a short job, and mrrun does not
 * use the topology: the server gets the topology of a single processor. Ranks and their libpmix see the variables
 * unchanged.
 */
static pmix_status_t init_without_topology(struct info_list *list)
{
    static const char *const settings[][2] = {{"HWLOC_SYNTHETIC", "pu:1"}, {"HWLOC_PLUGINS_PATH", "/dev/null"}};
    enum { COUNT = sizeof(settings) / sizeof(settings[0]) };
    char *old[COUNT];

    for (int i = 0; i < COUNT; i++)
        old[i] = exchange_variable(settings[i][0], settings[i][1]);
    pmix_status_t rc = PMIx_server_init(&callbacks, list->info, list->count);
    for (int i = 0; i < COUNT; i++) {
        free(exchange_variable(settings[i][0], old[i]));
        free(old[i]);
    }
    return rc;
}

static pmix_status_t init_library(const char *scratch_dir)
{
    struct info_list list = {0};
    bool no = false;

    info_add(&list, PMIX_SERVER_TMPDIR, scratch_dir, PMIX_STRING);
    info_add(&list, PMIX_SYSTEM_TMPDIR, scratch_dir, PMIX_STRING);
    info_add(&list, PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
    info_add(&list, PMIX_SERVER_REMOTE_CONNECTIONS, &no, PMIX_BOOL);
    pmix_status_t rc = init_without_topology(&list);
    info_clear(&list);
    return rc;
}

/* libpmix refuses clients of unknown namespaces: a process that cannot guess the name cannot join. */
static int name_namespace(void)
{
    unsigned char secret[16];
    int n = snprintf(server.nspace, sizeof(server.nspace), "mrrun-%d-", (int)getpid());

    if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
        return -1;
    for (size_t i = 0; i < sizeof(secret); i++)
        n += snprintf(server.nspace + n, sizeof(server.nspace) - (size_t)n, "%02x", secret[i]);
    return 0;
}

int server_start(const struct placement *place, int universe, const char *job_id, const char *scratch_dir, char *why,
                 size_t cap)
{
    /* Job data go to ranks over their connection: no files, nothing to leave behind. */
    setenv("PMIX_MCA_gds", "hash", 1);
    server.ranks = place->ranks;
    server.pid = calloc(place->ranks, sizeof(*server.pid));
    server.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server.event_fd < 0 || !server.pid) {
        snprintf(why, cap, "cannot make an eventfd: %s", strerror(errno));
        return -1;
    }
    pmix_status_t rc = init_library(scratch_dir);
    if (rc != PMIX_SUCCESS) {
        snprintf(why, cap, "the PMIx server did not start: %s", PMIx_Error_string(rc));
        return -1;
    }
    if (name_namespace()) {
        snprintf(why, cap, "the system gives no random numbers: %s", strerror(errno));
        return -1;
    }
    rc = register_job(place, universe, job_id);
    if (rc != PMIX_SUCCESS) {
        snprintf(why, cap, "the PMIx server did not take the job: %s", PMIx_Error_string(rc));
        return -1;
    }
    return 0;
}

void server_hold_aborts(void)
{
    server.hold_aborts = true;
}

void server_answer(struct server_event *event)
{
    if (event->answer)
        event->answer(PMIX_SUCCESS, event->answer_arg);
    event->answer = NULL;
}

const char *server_namespace(void)
{
    return server.nspace;
}

int server_event_fd(void)
{
    return server.event_fd;
}

static struct queued_event *take_queued_event(void)
{
    eventfd_t count;

    eventfd_read(server.event_fd, &count);
    pthread_mutex_lock(&server.lock);
    struct queued_event *q = server.head;
    if (q)
        server.head = q->next;
    if (!server.head)
        server.tail = &server.head;
    pthread_mutex_unlock(&server.lock);
    return q;
}

/* The caller takes events until none is left, so reading the eventfd first loses no wake-up. */
bool server_next_event(struct server_event *event)
{
    struct queued_event *q;
    bool valid = false;

    while (!valid && (q = take_queued_event())) {
        *event = q->event;
        valid = event->rank >= 0 && event->rank < server.ranks;
        if (!valid)
            free(event->ending);
        free(q);
    }
    return valid;
}

int server_add_rank(int rank, const char *host, char ***env)
{
    struct completion *c = completion_new();
    pmix_proc_t proc;

    PMIX_LOAD_PROCID(&proc, server.nspace, (pmix_rank_t)rank);
    if (await(c, PMIx_server_register_client(&proc, getuid(), getgid(), NULL, complete, c)) != PMIX_SUCCESS)
        return -1;
    if (PMIx_server_setup_fork(&proc, env) != PMIX_SUCCESS)
        return -1;
    /* libpmix wrote this machine's name; a rank's node is the host of its placement. */
    return environment_set(env, "PMIX_HOSTNAME", host);
}

void server_watch_process(int rank, pid_t pid)
{
    server.pid[rank] = pid;
}

void server_forget_process(int rank)
{
    server.pid[rank] = 0;
}

static void told(pmix_status_t status, void *cbdata)
{
    free(cbdata);
}

/* libpmix keeps the event for ranks that register for such events later, and may read the source until told(). */
void server_tell_end(int rank)
{
    pmix_proc_t *source = malloc(sizeof(*source));

    if (!source)
        abort();
    PMIX_LOAD_PROCID(source, server.nspace, (pmix_rank_t)rank);
    if (PMIx_Notify_event(PMIX_ERR_PROC_ABORTED, source, PMIX_RANGE_NAMESPACE, NULL, 0, told, source) != PMIX_SUCCESS)
        free(source);
}
