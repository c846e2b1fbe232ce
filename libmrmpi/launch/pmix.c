/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx client: rank, node map and addresses from mrrun, Slurm or any other PMIx server.
 *
 * libpmix runs a thread of its own, started with all signals blocked, so that the program's handlers run on the
 * program's threads. The thread calls on_event(), which touches one atomic, and gives answers (pmix_answer.h).
 *
 * An answer may take MRMPI_LAUNCHER_TIMEOUT_S. A fence may wait for late ranks as long as these need; meanwhile the
 * client asks the server for a key that nobody publishes, and the server must answer within that time.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pmix.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/detect.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/launch/mapping.h"
#include "libmrmpi/launch/pmix_answer.h"

static pmix_proc_t me;
static pmix_proc_t job; /* me with the wildcard rank: the whole job */
static _Atomic int64_t event_ref = -1;
static pmix_status_t init_status;
static _Atomic int job_failure;             /* 0 or a negative errno */
static unsigned lives;                      /* how often this process has joined the job */
static const struct mr_launch_world *known; /* the caller's, from init to finalize */

/* Time between signs of life; a fence that is only tested looks at the time once in so many tests. */
enum { PING_MS = 10000, TESTS_A_POLL = 4096, AGAIN_MAX_NS = 20000000 };

/* The fence begun. libpmix reads how until the fence is over. Times: how long this rank has waited, in ms. */
static struct {
    struct mr_answer *answer; /* NULL: none was begun */
    pmix_info_t how;
    int64_t waited_ms, tested_ms;
    unsigned tests;
    struct mr_answer *ping;                /* NULL: none is under way */
    int64_t pinged_ms, heard_ms, whole_ms; /* whole: the job was last known to be so */
} fence;

static int errno_of(pmix_status_t rc)
{
    switch (rc) {
    case PMIX_SUCCESS:
        return 0;
    case PMIX_ERR_NOT_FOUND:
        return -ENOENT;
    case PMIX_ERR_DUPLICATE_KEY:
        return -EEXIST;
    case PMIX_ERR_NOMEM:
        return -ENOMEM;
    case PMIX_ERR_TIMEOUT:
        return -ETIMEDOUT;
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_LOST_CONNECTION:
        return -ECONNRESET;
    case PMIX_ERR_NOT_SUPPORTED:
        return -EOPNOTSUPP;
    case PMIX_ERR_BAD_PARAM:
        return -EINVAL;
    default:
        return -EIO;
    }
}

/*
 * On a simulated host a poll in vain returns when something happens there, or when a signal is handled: simfab handles
 * SIGURG, by doing nothing. Without a handler the signal is ignored.
 */
static void wake_pollers(void)
{
    pid_t me_too = gettid(), tid;
    struct sigaction act;
    struct dirent *e;
    DIR *d;

    if (sigaction(SIGURG, NULL, &act) || act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN)
        return;
    d = opendir("/proc/self/task");
    while (d && (e = readdir(d)))
        if ((tid = atoi(e->d_name)) > 0 && tid != me_too)
            tgkill(getpid(), tid, SIGURG);
    if (d)
        closedir(d);
}

static void note_end(const pmix_proc_t *source)
{
    if (!PMIX_CHECK_NSPACE(source->nspace, me.nspace) || source->rank == me.rank || !known ||
        source->rank >= (pmix_rank_t)known->size)
        return;
    mr_launch_note_end((int)source->rank);
    wake_pollers();
}

static void on_event(size_t ref, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    int expected = 0;

    if (mr_config.recover && status == PMIX_ERR_PROC_ABORTED) {
        note_end(source);
        if (done)
            done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
        return;
    }
    atomic_compare_exchange_strong(&job_failure, &expected,
                                   status == PMIX_ERR_LOST_CONNECTION ? -ECONNRESET : -ECONNABORTED);
    if (status == PMIX_ERR_LOST_CONNECTION)
        mr_answer_wake_all();
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

/* ---- answers ---- */

static int server_gone(void)
{
    return mr_launch_fail(-ECONNRESET, "%s (PMIx) has closed its connection to rank %d: it is gone, or ends the job",
                          mr_detect_pmix_launcher(), (int)me.rank);
}

static int server_silent(void)
{
    return mr_launch_fail(-ETIMEDOUT, "%s (PMIx) gave no answer for %d s (MRMPI_LAUNCHER_TIMEOUT_S)",
                          mr_detect_pmix_launcher(), mr_config.launcher_timeout_s);
}

static int64_t limit_ms(void)
{
    return mr_config.launcher_timeout_s ? mr_config.launcher_timeout_s * INT64_C(1000) : INT64_MAX;
}

static int answer_error(const struct mr_answer *a)
{
    int err = errno_of(a->status);

    return err == -ECONNRESET ? server_gone() : err;
}

/* rc: what the call that asked has returned. Only with PMIX_SUCCESS libpmix gives the answer itself. */
static int await_answer(struct mr_answer *a, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS)
        mr_answer_give(a, rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc, NULL);
    if (mr_answer_wait(a, limit_ms()))
        return answer_error(a);
    return atomic_load(&job_failure) == -ECONNRESET ? server_gone() : server_silent();
}

/* The same for a call that has no other form than one that waits. */
static int await_call(pmix_status_t (*call)(void))
{
    struct mr_answer *a = mr_answer_new();

    if (!a)
        return -ENOMEM;
    int err = mr_answer_from_call(a, call);
    if (err)
        mr_answer_give(a, PMIX_ERROR, NULL); /* nobody else does */
    else
        err = await_answer(a, PMIX_SUCCESS);
    mr_answer_release(a);
    return err;
}

static void on_status(pmix_status_t status, void *cbdata)
{
    mr_answer_give(cbdata, status, NULL);
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *cbdata)
{
    mr_answer_give(cbdata, status, value);
}

static void on_found(pmix_status_t status, pmix_pdata_t data[], size_t ndata, void *cbdata)
{
    mr_answer_give(cbdata, status == PMIX_SUCCESS && !ndata ? PMIX_ERR_NOT_FOUND : status, ndata ? &data->value : NULL);
}

static void on_registered(pmix_status_t status, size_t ref, void *cbdata)
{
    if (status == PMIX_SUCCESS)
        event_ref = (int64_t)ref;
    mr_answer_give(cbdata, status, NULL);
}

/* Without the handler the end of a wait tells that the connection is lost, somewhat later. */
static void watch_events(void)
{
    static pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION, PMIX_ERR_PROC_ABORTED, PMIX_ERR_JOB_TERMINATED};
    struct mr_answer *a = mr_answer_new();

    if (!a)
        return;
    await_answer(
        a, PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(codes[0]), NULL, 0, on_event, on_registered, a));
    mr_answer_release(a);
}

static void ignore_events(void)
{
    struct mr_answer *a = mr_answer_new();

    if (a) {
        await_answer(a, PMIx_Deregister_event_handler((size_t)event_ref, on_status, a));
        mr_answer_release(a);
    }
    event_ref = -1;
}

/* ---- the job ---- */

static pmix_status_t init_library(void)
{
    return init_status = PMIx_Init(&me, NULL, 0);
}

static int start_client(void)
{
    mr_answer_start_watchdog();
    int err = await_call(init_library);

    if (err && init_status != PMIX_SUCCESS)
        return mr_launch_fail(
            err,
            "%s started this process (PMIX_NAMESPACE is set), but its PMIx server cannot be reached: "
            "%s. If the launcher is gone, or this is a child of a rank, MRMPI_LAUNCHER=none runs it as "
            "a single process; else try srun --mpi=pmi2, mpiexec.hydra or mrrun",
            mr_detect_pmix_launcher(), PMIx_Error_string(init_status));
    if (err)
        return err;
    PMIX_PROC_CONSTRUCT(&job);
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    return 0;
}

/* Asks for a value about one rank, or the whole job. a: NULL if there was no memory. */
static int ask_value(pmix_rank_t rank, const char *key, struct mr_answer *a)
{
    pmix_proc_t who;

    if (!a)
        return -ENOMEM;
    PMIX_LOAD_PROCID(&who, me.nspace, rank);
    return await_answer(a, PMIx_Get_nb(&who, key, a->num_info ? a->info : NULL, a->num_info, on_value, a));
}

static int number_of(const pmix_value_t *value, uint32_t *out)
{
    if (value->type == PMIX_UINT32)
        *out = value->data.uint32;
    else if (value->type == PMIX_UINT16)
        *out = value->data.uint16;
    else if (value->type == PMIX_INT && value->data.integer >= 0)
        *out = (uint32_t)value->data.integer;
    else
        return -EPROTO;
    return 0;
}

static int get_uint32(pmix_rank_t rank, const char *key, uint32_t *out)
{
    struct mr_answer *a = mr_answer_new();
    int err = ask_value(rank, key, a);

    if (!err)
        err = number_of(&a->value, out);
    mr_answer_release(a);
    return err;
}

static char *get_string(pmix_rank_t rank, const char *key)
{
    struct mr_answer *a = mr_answer_new();
    char *text = NULL;

    if (!ask_value(rank, key, a) && a->value.type == PMIX_STRING && a->value.data.string)
        text = strdup(a->value.data.string);
    mr_answer_release(a);
    return text;
}

/* Each question costs a switch to libpmix's thread and back: of a job on one node not every rank is asked for. */
static bool on_one_node(void)
{
    uint32_t nodes;

    return !get_uint32(PMIX_RANK_WILDCARD, PMIX_NUM_NODES, &nodes) && nodes == 1;
}

/*
 * mrrun, Slurm and others give the map of all ranks in one text. Some have another notation there. Started again,
 * libpmix may have lost the answers of other nodes' servers, but not the text: questions about each rank show this.
 */
static int get_mapping(int size, uint32_t *ids)
{
    bool whole = lives == 1 || mr_detect_one_server();
    char *text = whole ? get_string(PMIX_RANK_WILDCARD, PMIX_ANL_MAP) : NULL;
    int err = text ? mr_mapping_parse(text, size, ids) : -ENOENT;

    free(text);
    return err;
}

/* Most launchers number their nodes. */
static int map_by_ids(struct mr_launch_world *world)
{
    uint32_t *ids = calloc(world->size, sizeof(*ids));
    int err = ids ? 0 : -ENOMEM;

    if (!err && !on_one_node() && get_mapping(world->size, ids))
        for (int r = 0; r < world->size && !err; r++)
            err = get_uint32(r, PMIX_NODEID, &ids[r]);
    if (!err)
        err = mr_nodemap_from_ids(&world->map, world->rank, world->size, ids);
    free(ids);
    return err;
}

static int map_by_names(struct mr_launch_world *world)
{
    char **names = calloc(world->size, sizeof(*names));
    int err = names ? 0 : -ENOMEM;

    for (int r = 0; r < world->size && !err; r++) {
        names[r] = get_string(r, PMIX_HOSTNAME);
        if (!names[r])
            err = -ENOENT;
    }
    if (!err)
        err = mr_nodemap_from_names(&world->map, world->rank, world->size, (const char *const *)names);
    for (int r = 0; names && r < world->size; r++)
        free(names[r]);
    free(names);
    return err;
}

/* Asks for a value about a part of the job. a: NULL if there was no memory. */
static int ask_of_part(uint32_t part, const char *key, struct mr_answer *a)
{
    bool of_part = true;

    if (a) {
        PMIX_INFO_LOAD(&a->info[0], PMIX_APP_INFO, &of_part, PMIX_BOOL);
        PMIX_INFO_LOAD(&a->info[1], PMIX_APPNUM, &part, PMIX_UINT32);
        a->num_info = 2;
    }
    return ask_value(PMIX_RANK_WILDCARD, key, a);
}

/* The first rank of a part; a launcher without an answer has one part. */
static int get_first_rank(uint32_t part, pmix_rank_t *out)
{
    struct mr_answer *a = mr_answer_new();
    int err = ask_of_part(part, PMIX_APPLDR, a);

    if (!err && a->value.type != PMIX_PROC_RANK)
        err = -EPROTO;
    if (!err)
        *out = a->value.data.rank;
    mr_answer_release(a);
    return err;
}

/*
 * Launchers with a server on each node answer for each rank. mrrun answers for parts only, which are fewer than ranks:
 * the ranks of a part are consecutive.
 */
static int learn_pmix_appnum(uint32_t rank)
{
    uint32_t parts, part = 0;
    pmix_rank_t first;

    if (!mr_detect_one_server())
        return get_uint32(rank, PMIX_APPNUM, &part) || part > INT32_MAX ? -1 : (int)part;
    if (get_uint32(PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS, &parts))
        return -1;
    while (part + 1 < parts && !get_first_rank(part + 1, &first) && first <= rank)
        part++;
    return (int)part;
}

static int pmix_parts(int **ranks)
{
    uint32_t parts;
    pmix_rank_t first = 0, next;
    int *list;

    if (!mr_detect_one_server() || get_uint32(PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS, &parts) || parts > INT32_MAX)
        return 0;
    list = calloc((size_t)parts + 1, sizeof(*list));
    for (uint32_t part = 0; list && part < parts; part++, first = next) {
        next = (pmix_rank_t)known->size;
        if (part + 1 < parts && get_first_rank(part + 1, &next)) {
            free(list);
            return 0;
        }
        list[part] = (int)(next - first);
    }
    *ranks = list;
    return list ? (int)parts : 0;
}

static int pmix_universe(void)
{
    uint32_t n;

    return get_uint32(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &n) || n > INT32_MAX ? 0 : (int)n;
}

static int learn_pmix_world(struct mr_launch_world *world)
{
    const char *host = mr_config_foreign("PMIX_HOSTNAME");
    uint32_t size;
    int err = get_uint32(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &size);

    if (err)
        return err;
    if (size < 1 || size > INT32_MAX || me.rank >= size)
        return -EPROTO;
    world->rank = me.rank;
    world->size = size;
    world->appnum = learn_pmix_appnum(me.rank);

    err = map_by_ids(world);
    if (err && err != -ENOMEM)
        err = map_by_names(world);
    if (err)
        return err;

    world->job_id = get_string(PMIX_RANK_WILDCARD, PMIX_JOBID);
    if (!world->job_id)
        world->job_id = strdup(me.nspace);
    world->space = strdup(me.nspace);
    world->node_name = get_string(me.rank, PMIX_HOSTNAME);
    if (!world->node_name)
        world->node_name = strdup(host ? host : "");
    return world->job_id && world->space && world->node_name ? 0 : -ENOMEM;
}

/* A value put under a key in one life is not overwritten in the next: others may still have the old value. */
static int key_of_life(const char *key, pmix_key_t out)
{
    int len = lives == 1 ? snprintf(out, sizeof(pmix_key_t), "%s", key)
                         : snprintf(out, sizeof(pmix_key_t), "%s.%u", key, lives);
    return len < (int)sizeof(pmix_key_t) ? 0 : -EINVAL;
}

static int take_value(const pmix_value_t *value, void *buf, size_t cap, size_t *len)
{
    if (value->type != PMIX_BYTE_OBJECT)
        return -EPROTO;
    *len = value->data.bo.size;
    if (*len > cap)
        return -EMSGSIZE;
    if (*len)
        memcpy(buf, value->data.bo.bytes, *len);
    return 0;
}

/* ---- one server for all ranks: values are published, and looked up when needed ---- */

/* The owner's rank goes with the key. */
static int key_of_rank(const char *key, int rank, pmix_key_t out)
{
    pmix_key_t name;

    if (key_of_life(key, name))
        return -EINVAL;
    int len = snprintf(out, sizeof(pmix_key_t), "%s/%d", name, rank);
    return len < (int)sizeof(pmix_key_t) ? 0 : -EINVAL;
}

/* Waits for the answer: a later answer would wake libpmix's thread in the middle of the next steps. */
static int publish(const char *key, const pmix_value_t *value)
{
    struct mr_answer *a;
    pmix_key_t name;

    if (key_of_rank(key, (int)me.rank, name))
        return -EINVAL;
    a = mr_answer_new();
    if (!a)
        return -ENOMEM;
    PMIX_INFO_LOAD(&a->info[0], name, (pmix_byte_object_t *)&value->data.bo, PMIX_BYTE_OBJECT);
    a->num_info = 1;
    int err = await_answer(a, PMIx_Publish_nb(a->info, 1, on_status, a));
    mr_answer_release(a);
    return err;
}

static int look_up_published(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    struct mr_answer *a = mr_answer_new();
    pmix_key_t name;
    char *names[] = {name, NULL};

    if (!a)
        return -ENOMEM;
    pmix_status_t rc = key_of_rank(key, rank, name) ? PMIX_ERR_BAD_PARAM : PMIx_Lookup_nb(names, NULL, 0, on_found, a);
    int err = await_answer(a, rc);
    if (!err)
        err = take_value(&a->value, buf, cap, len);
    mr_answer_release(a);
    return err;
}

/* ---- names of services ---- */

static int key_of_name(const char *name, pmix_key_t out)
{
    int len = snprintf(out, sizeof(pmix_key_t), "mrmpi.name/%s", name);

    return len < (int)sizeof(pmix_key_t) ? 0 : -ENAMETOOLONG;
}

static int pmix_publish_name(const char *name, const char *value)
{
    struct mr_answer *a;
    pmix_byte_object_t bytes = {.bytes = (char *)value, .size = strlen(value) + 1};
    pmix_key_t key;

    if (key_of_name(name, key))
        return -ENAMETOOLONG;
    a = mr_answer_new();
    if (!a)
        return -ENOMEM;
    PMIX_INFO_LOAD(&a->info[0], key, &bytes, PMIX_BYTE_OBJECT);
    a->num_info = 1;
    int err = await_answer(a, PMIx_Publish_nb(a->info, 1, on_status, a));
    mr_answer_release(a);
    return err;
}

static int pmix_look_up_name(const char *name, char *value, size_t cap)
{
    struct mr_answer *a;
    pmix_key_t key;
    char *keys[] = {key, NULL};
    size_t len = 0;

    if (key_of_name(name, key))
        return -ENAMETOOLONG;
    a = mr_answer_new();
    if (!a)
        return -ENOMEM;
    int err = await_answer(a, PMIx_Lookup_nb(keys, NULL, 0, on_found, a));
    if (!err)
        err = take_value(&a->value, value, cap, &len);
    if (!err && (!len || value[len - 1]))
        err = -EPROTO;
    mr_answer_release(a);
    return err;
}

static int pmix_unpublish_name(const char *name)
{
    struct mr_answer *a;
    pmix_key_t key;
    char *keys[] = {key, NULL};

    if (key_of_name(name, key))
        return -ENAMETOOLONG;
    a = mr_answer_new();
    if (!a)
        return -ENOMEM;
    int err = await_answer(a, PMIx_Unpublish_nb(keys, NULL, 0, on_status, a));
    mr_answer_release(a);
    return err;
}

/* ---- a server on each node: values are put, and gathered by the fence ---- */

static int put_global(const char *key, const pmix_value_t *value)
{
    pmix_key_t name;

    return key_of_life(key, name) ? -EINVAL : errno_of(PMIx_Put(PMIX_GLOBAL, name, (pmix_value_t *)value));
}

/* After the fence a key is there or will never be: the server must not wait for it. */
static int get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    struct mr_answer *a;
    pmix_key_t name;

    if (key_of_life(key, name))
        return -EINVAL;
    a = mr_answer_new();
    if (a) {
        PMIX_INFO_LOAD(&a->info[0], PMIX_IMMEDIATE, NULL, PMIX_BOOL);
        a->num_info = 1;
    }
    int err = ask_value((pmix_rank_t)rank, name, a);
    if (!err)
        err = take_value(&a->value, buf, cap, len);
    mr_answer_release(a);
    return err;
}

static pmix_status_t commit_values(void)
{
    return PMIx_Commit();
}

/* ---- either ---- */

static int pmix_put(const char *key, const void *data, size_t len)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT, .data.bo = {.bytes = (char *)data, .size = len}};

    return mr_detect_one_server() ? publish(key, &value) : put_global(key, &value);
}

static int pmix_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    return mr_detect_one_server() ? look_up_published(rank, key, buf, cap, len) : get(rank, key, buf, cap, len);
}

/*
 * Servers of several nodes must have the addresses before they are asked: their requests to each other are not
 * dependable (Slurm 22.05 with libpmix 4.2 answers some with "not found").
 */
static int pmix_fence_begin(void)
{
    bool one = mr_detect_one_server(), gather = !one && known->map.num_nodes > 1;

    if (fence.answer)
        return -EBUSY;
    int err = one ? 0 : await_call(commit_values);
    struct mr_answer *a = err ? NULL : mr_answer_new();
    if (!a)
        return err ? err : -ENOMEM;
    PMIX_INFO_LOAD(&fence.how, PMIX_COLLECT_DATA, &gather, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(&job, 1, &fence.how, 1, on_status, a);
    if (rc != PMIX_SUCCESS)
        mr_answer_give(a, rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc, NULL);
    if (rc != PMIX_SUCCESS && rc != PMIX_OPERATION_SUCCEEDED) {
        err = answer_error(a);
        mr_answer_release(a);
        return err;
    }
    fence.answer = a;
    fence.tests = 0;
    fence.waited_ms = fence.tested_ms = fence.heard_ms = fence.whole_ms = 0;
    return 0;
}

/* Asks for a key that nobody publishes: any answer is a sign of life. */
static void ping_server(int64_t now_ms)
{
    char *keys[] = {"mrmpi.ping", NULL};

    fence.ping = mr_answer_new();
    if (!fence.ping)
        return;
    fence.pinged_ms = now_ms;
    pmix_status_t rc = PMIx_Lookup_nb(keys, NULL, 0, on_found, fence.ping);
    if (rc != PMIX_SUCCESS)
        mr_answer_give(fence.ping, rc, NULL);
}

static int64_t ping_ms(void)
{
    return limit_ms() / 4 < PING_MS ? limit_ms() / 4 : PING_MS;
}

/* Other ranks may be late, but the server must live, and the job be whole. */
static int check_server(void)
{
    int64_t now = fence.waited_ms, limit = limit_ms();
    int failure = atomic_load(&job_failure), err;

    if (failure == -ECONNRESET)
        return server_gone();
    if (!failure)
        fence.whole_ms = now;
    else if (now - fence.whole_ms >= limit)
        return mr_launch_fail(failure, "%s (PMIx) has told that a rank failed, and has not ended the job for %d s",
                              mr_detect_pmix_launcher(), mr_config.launcher_timeout_s);
    if (fence.ping && fence.ping->given) {
        err = answer_error(fence.ping);
        mr_answer_release(fence.ping);
        fence.ping = NULL;
        fence.heard_ms = now;
        if (err == -ECONNRESET)
            return err;
    }
    if (fence.ping)
        return now - fence.pinged_ms >= limit ? server_silent() : 0;
    if (now - fence.heard_ms >= ping_ms())
        ping_server(now);
    return 0;
}

static void end_fence(void)
{
    mr_answer_release(fence.answer);
    mr_answer_release(fence.ping);
    fence.answer = fence.ping = NULL;
}

static int test_fence(void)
{
    if (atomic_load(&fence.answer->given))
        return answer_error(fence.answer);
    if (++fence.tests % TESTS_A_POLL)
        return -EAGAIN;
    mr_launch_count_ms(&fence.tested_ms, &fence.waited_ms);
    int err = check_server();
    return err ? err : -EAGAIN;
}

static int wait_for_fence(void)
{
    int err = 0;

    while (!mr_answer_wait(fence.answer, ping_ms())) {
        fence.waited_ms += ping_ms();
        if ((err = check_server()))
            return err;
    }
    return answer_error(fence.answer);
}

static int pmix_fence_end(bool patient)
{
    int err;

    if (!fence.answer)
        return -EINVAL;
    err = patient ? wait_for_fence() : test_fence();
    if (err != -EAGAIN)
        end_fence();
    return err;
}

/*
 * To a server, a client that goes away does not come to fences that others have already begun: they fail, or end
 * without the client. So a restarted client begins no fence before all have gone and come back.
 */
static int meet_again(int size)
{
    const char *key = "mrmpi.here";
    struct timespec pause = {.tv_nsec = 1000000};
    uint8_t here = 1;
    size_t len;
    int err = pmix_put(key, &here, sizeof(here));

    if (!err && !mr_detect_one_server())
        err = await_call(commit_values);
    for (int r = 0; r < size && !err; r++)
        while ((err = pmix_get(r, key, &here, sizeof(here), &len)) == -ENOENT) {
            nanosleep(&pause, NULL);
            pause.tv_nsec += pause.tv_nsec < AGAIN_MAX_NS ? pause.tv_nsec / 8 : 0;
        }
    return err;
}

/* Without its variables libpmix would make this process a job of its own. */
static int check_named(void)
{
    if (mr_config_foreign("PMIX_NAMESPACE") && mr_config_foreign("PMIX_RANK"))
        return 0;
    return mr_launch_fail(-EINVAL,
                          "MRMPI_LAUNCHER asks for PMIx, and PMIX_NAMESPACE and PMIX_RANK are not set: no PMIx "
                          "launcher started this process");
}

static int pmix_init(struct mr_launch_world *world)
{
    int err = check_named();

    if (!err)
        err = start_client();

    if (err)
        return err;
    lives++;
    known = world;
    err = learn_pmix_world(world);
    if (!err && lives > 1)
        err = meet_again(world->size);
    if (err) {
        PMIx_Finalize(NULL, 0);
        if (mr_launch_fault()) /* the server is gone or silent */
            return err;
        return mr_launch_fail(err, "%s (PMIx) does not tell rank, size and nodes of the job: %s%s",
                              mr_detect_pmix_launcher(), strerror(-err),
                              lives > 1 ? "; libpmix can start again with PMIX_MCA_gds=hash in the environment" : "");
    }
    watch_events();
    return 0;
}

/* ---- starting a job ---- */

static void add_text_info(pmix_info_t *info, size_t *n, const char *key, const char *text)
{
    if (text)
        PMIX_INFO_LOAD(&info[(*n)++], key, text, PMIX_STRING);
}

static void add_line(char ***list, const char *line, size_t len)
{
    char *text = strndup(line, len);
    pmix_status_t rc = PMIX_SUCCESS;

    if (text)
        PMIX_ARGV_APPEND(rc, *list, text);
    if (rc != PMIX_SUCCESS)
        mr_log(MR_LOG_WARN, "no memory for a word of a command");
    free(text);
}

static void describe_app(pmix_app_t *app, const struct mr_launch_part *p, const char *parent)
{
    enum { INFOS = 5 };
    char path[4096], *variable = NULL;
    const char *program = mr_launch_program(p, path, sizeof(path));

    app->cmd = strdup(program);
    add_line(&app->argv, program, strlen(program));
    for (char *const *a = p->argv; a && *a; a++)
        add_line(&app->argv, *a, strlen(*a));
    if (asprintf(&variable, "%s=%s", MR_PARENT_VARIABLE, parent) > 0)
        add_line(&app->env, variable, strlen(variable));
    free(variable);
    for (const char *line = p->env; line && *(line += strspn(line, "\n")); line += strcspn(line, "\n"))
        add_line(&app->env, line, strcspn(line, "\n"));
    app->cwd = p->wdir ? strdup(p->wdir) : getcwd(NULL, 0);
    app->maxprocs = mr_launch_most(p);
    PMIX_INFO_CREATE(app->info, INFOS);
    if (!app->info)
        return;
    add_text_info(app->info, &app->ninfo, PMIX_WDIR, app->cwd);
    add_text_info(app->info, &app->ninfo, PMIX_HOST, p->host);
    add_text_info(app->info, &app->ninfo, PMIX_HOSTFILE, p->hostfile);
    add_text_info(app->info, &app->ninfo, PMIX_ADD_HOST, p->add_host);
    add_text_info(app->info, &app->ninfo, PMIX_ADD_HOSTFILE, p->add_hostfile);
}

static void on_spawned(pmix_status_t status, pmix_nspace_t nspace, void *cbdata)
{
    mr_answer_give(cbdata, status, NULL);
}

/* libpmix reads the order as long as it has not answered. */
static int pmix_start(const struct mr_launch_order *order)
{
    pmix_app_t *apps;
    struct mr_answer *a = NULL;
    int err;

    if (mr_detect_one_server()) /* mrrun, which serves one job */
        return -EOPNOTSUPP;
    if ((err = mr_launch_check_programs(order)))
        return err;
    PMIX_APP_CREATE(apps, order->parts);
    if (!apps || !(a = mr_answer_new())) {
        PMIX_APP_FREE(apps, (size_t)order->parts);
        return -ENOMEM;
    }
    for (int i = 0; i < order->parts; i++)
        describe_app(&apps[i], &order->part[i], order->parent);
    err = await_answer(a, PMIx_Spawn_nb(NULL, 0, apps, (size_t)order->parts, on_spawned, a));
    if (a->given)
        PMIX_APP_FREE(apps, (size_t)order->parts);
    if (err && a->given && err != -EOPNOTSUPP && err != -ECONNRESET)
        err = mr_launch_fail(-EINVAL, "%s (PMIx) refuses to start the processes: %s", mr_detect_pmix_launcher(),
                             PMIx_Error_string(a->status));
    mr_answer_release(a);
    return err;
}

static int pmix_failed(void)
{
    return atomic_load_explicit(&job_failure, memory_order_relaxed);
}

static struct {
    int code;
    const char *why;
} farewell;

static pmix_status_t abort_pmix_job(void)
{
    return PMIx_Abort(farewell.code, farewell.why, NULL, 0);
}

/* Without memory for a thread this one waits for as long as it takes. */
static __attribute__((noreturn)) void pmix_abort(int code, const char *why)
{
    struct mr_answer *a = mr_answer_new();

    farewell.code = code;
    farewell.why = why ? why : "";
    if (a && !mr_answer_from_call(a, abort_pmix_job))
        await_answer(a, PMIX_SUCCESS);
    else
        abort_pmix_job();
    _exit(mr_launch_status(code));
}

/*
 * The end of libpmix ends our handler, too. To remove the handler before would be a message without an answer, behind
 * which TCP holds the last message until the server's delayed acknowledgement, 40 ms. A program that has started
 * libpmix itself keeps it, without the handler. Events of the connection's end are not for a next life.
 */
static int pmix_finalize(void)
{
    int before = pmix_failed(), err = errno_of(PMIx_Finalize(NULL, 0));

    if (event_ref >= 0 && PMIx_Initialized())
        ignore_events();
    event_ref = -1;
    atomic_store_explicit(&job_failure, before, memory_order_relaxed);
    return err;
}

const struct mr_launch_backend mr_launch_pmix = {
    .name = "pmix",
    .init = pmix_init,
    .put = pmix_put,
    .fence_begin = pmix_fence_begin,
    .fence_end = pmix_fence_end,
    .get = pmix_get,
    .publish_name = pmix_publish_name,
    .look_up_name = pmix_look_up_name,
    .unpublish_name = pmix_unpublish_name,
    .universe = pmix_universe,
    .parts = pmix_parts,
    .start = pmix_start,
    .failed = pmix_failed,
    .abort = pmix_abort,
    .finalize = pmix_finalize,
};
