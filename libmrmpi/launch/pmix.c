/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx client: rank, node map and addresses from mrrun, Slurm or any other PMIx server.
 *
 * libpmix runs a thread of its own, started with all signals blocked, so that the program's handlers run on the
 * program's threads. The thread calls on_event(), which touches one atomic, and on_fence_over(), which posts a
 * semaphore.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
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
#include "libmrmpi/launch/mapping.h"

static pmix_proc_t me;
static pmix_proc_t job; /* me with the wildcard rank: the whole job */
static pmix_status_t event_ref = -1;
static _Atomic int job_failure;             /* 0 or a negative errno */
static unsigned lives;                      /* how often this process has joined the job */
static const struct mr_launch_world *known; /* the caller's, from init to finalize */

/* The fence begun. libpmix reads how until the fence is over, and then reports the end from its own thread. */
static struct {
    pmix_info_t how;
    pmix_status_t status;
    sem_t over;
    bool begun;
} fence;

static int errno_of(pmix_status_t rc)
{
    switch (rc) {
    case PMIX_SUCCESS:
        return 0;
    case PMIX_ERR_NOT_FOUND:
        return -ENOENT;
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

static void on_event(size_t ref, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t ninfo,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *cbdata)
{
    int expected = 0;

    atomic_compare_exchange_strong(&job_failure, &expected,
                                   status == PMIX_ERR_LOST_CONNECTION ? -ECONNRESET : -ECONNABORTED);
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cbdata);
}

static void on_fence_over(pmix_status_t status, void *cbdata)
{
    fence.status = status;
    sem_post(&fence.over);
}

static void watch_events(void)
{
    pmix_status_t codes[] = {PMIX_ERR_LOST_CONNECTION, PMIX_ERR_PROC_ABORTED, PMIX_ERR_JOB_TERMINATED};

    event_ref = PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(codes[0]), NULL, 0, on_event, NULL, NULL);
}

static int start_client(void)
{
    sigset_t all, saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    pmix_status_t rc = PMIx_Init(&me, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (rc != PMIX_SUCCESS)
        return mr_launch_fail(
            errno_of(rc),
            "%s started this process (PMIX_NAMESPACE is set), but its PMIx server cannot be reached: "
            "%s. If the launcher is gone, or this is a child of a rank, MRMPI_LAUNCHER=none runs it as "
            "a single process; else try srun --mpi=pmi2, mpiexec.hydra or mrrun",
            mr_detect_pmix_launcher(), PMIx_Error_string(rc));
    PMIX_PROC_CONSTRUCT(&job);
    PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
    return 0;
}

/* A launcher's value of the wanted type about one rank (or the whole job), in caller's memory. */
static int get_uint32(pmix_rank_t rank, const char *key, uint32_t *out)
{
    pmix_proc_t who;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&who, me.nspace, rank);
    pmix_status_t rc = PMIx_Get(&who, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS)
        return errno_of(rc);
    int err = 0;
    if (value->type == PMIX_UINT32)
        *out = value->data.uint32;
    else if (value->type == PMIX_UINT16)
        *out = value->data.uint16;
    else if (value->type == PMIX_INT && value->data.integer >= 0)
        *out = value->data.integer;
    else
        err = -EPROTO;
    PMIX_VALUE_RELEASE(value);
    return err;
}

static char *get_string(pmix_rank_t rank, const char *key)
{
    pmix_proc_t who;
    pmix_value_t *value = NULL;
    char *text = NULL;

    PMIX_LOAD_PROCID(&who, me.nspace, rank);
    if (PMIx_Get(&who, key, NULL, 0, &value) != PMIX_SUCCESS)
        return NULL;
    if (value->type == PMIX_STRING && value->data.string)
        text = strdup(value->data.string);
    PMIX_VALUE_RELEASE(value);
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

/* The first rank of a part; a launcher without an answer has one part. */
static int get_first_rank(uint32_t part, pmix_rank_t *out)
{
    pmix_info_t which[2];
    pmix_value_t *value = NULL;
    bool of_part = true;

    PMIX_INFO_LOAD(&which[0], PMIX_APP_INFO, &of_part, PMIX_BOOL);
    PMIX_INFO_LOAD(&which[1], PMIX_APPNUM, &part, PMIX_UINT32);
    pmix_status_t rc = PMIx_Get(&job, PMIX_APPLDR, which, 2, &value);
    PMIX_INFO_DESTRUCT(&which[0]);
    PMIX_INFO_DESTRUCT(&which[1]);
    if (rc != PMIX_SUCCESS)
        return errno_of(rc);
    int err = value->type == PMIX_PROC_RANK ? 0 : -EPROTO;
    if (!err)
        *out = value->data.rank;
    PMIX_VALUE_RELEASE(value);
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
    world->node_name = get_string(me.rank, PMIX_HOSTNAME);
    if (!world->node_name)
        world->node_name = strdup(host ? host : "");
    return world->job_id && world->node_name ? 0 : -ENOMEM;
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
    pmix_info_t info = {.value = *value};

    if (key_of_rank(key, me.rank, info.key))
        return -EINVAL;
    return errno_of(PMIx_Publish(&info, 1));
}

static int look_up_published(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    pmix_pdata_t answer;
    pmix_status_t rc;
    int err;

    PMIX_PDATA_CONSTRUCT(&answer);
    if (key_of_rank(key, rank, answer.key))
        return -EINVAL;
    rc = PMIx_Lookup(&answer, 1, NULL, 0);
    err = rc == PMIX_SUCCESS ? take_value(&answer.value, buf, cap, len) : errno_of(rc);
    PMIX_PDATA_DESTRUCT(&answer);
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
    pmix_proc_t who;
    pmix_value_t *value = NULL;
    pmix_key_t name;
    pmix_info_t now;

    if (key_of_life(key, name))
        return -EINVAL;
    PMIX_LOAD_PROCID(&who, me.nspace, (pmix_rank_t)rank);
    PMIX_INFO_LOAD(&now, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&who, name, &now, 1, &value);
    PMIX_INFO_DESTRUCT(&now);
    if (rc != PMIX_SUCCESS)
        return errno_of(rc);
    int err = take_value(value, buf, cap, len);
    PMIX_VALUE_RELEASE(value);
    return err;
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

    if (fence.begun)
        return -EBUSY;
    pmix_status_t rc = one ? PMIX_SUCCESS : PMIx_Commit();
    PMIX_INFO_LOAD(&fence.how, PMIX_COLLECT_DATA, &gather, PMIX_BOOL);
    sem_init(&fence.over, 0, 0);
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Fence_nb(&job, 1, &fence.how, 1, on_fence_over, NULL);
    if (rc == PMIX_OPERATION_SUCCEEDED)
        on_fence_over(PMIX_SUCCESS, NULL);
    else if (rc != PMIX_SUCCESS)
        return errno_of(rc);
    fence.begun = true;
    return 0;
}

static int pmix_fence_end(bool patient)
{
    if (!fence.begun)
        return -EINVAL;
    while (patient ? sem_wait(&fence.over) : sem_trywait(&fence.over))
        if (errno == EAGAIN)
            return -EAGAIN;
    fence.begun = false;
    return errno_of(fence.status);
}

/*
 * To a server, a client that goes away does not come to fences that others have already begun: they fail, or end
 * without the client. So a restarted client begins no fence before all have gone and come back.
 */
static int meet_again(int size)
{
    const char *key = "mrmpi.here";
    uint8_t here = 1;
    size_t len;
    int err = pmix_put(key, &here, sizeof(here));

    if (!err && !mr_detect_one_server())
        err = errno_of(PMIx_Commit());
    for (int r = 0; r < size && !err; r++)
        while ((err = pmix_get(r, key, &here, sizeof(here), &len)) == -ENOENT)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
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
        return mr_launch_fail(err, "%s (PMIx) does not tell rank, size and nodes of the job: %s%s",
                              mr_detect_pmix_launcher(), strerror(-err),
                              lives > 1 ? "; libpmix can start again with PMIX_MCA_gds=hash in the environment" : "");
    }
    watch_events();
    return 0;
}

static int pmix_failed(void)
{
    return atomic_load_explicit(&job_failure, memory_order_relaxed);
}

static __attribute__((noreturn)) void pmix_abort(int code, const char *why)
{
    PMIx_Abort(code, why ? why : "", NULL, 0);
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
        PMIx_Deregister_event_handler(event_ref, NULL, NULL);
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
    .failed = pmix_failed,
    .abort = pmix_abort,
    .finalize = pmix_finalize,
};
