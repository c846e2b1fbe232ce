/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI client: rank, node map and addresses from Hydra (MPICH, Intel MPI), Slurm's pmi2 plugin, Flux and others.
 *
 * A value put under a key is stored as KEY.RANK, its length and its text encoded; the part beyond the launcher's limit
 * goes under KEY.RANK.1 and so forth. A launcher takes a process once: after finalize there is no second init.
 */
#include <errno.h>
#include <pthread.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/detect.h"
#include "libmrmpi/launch/mapping.h"
#include "libmrmpi/launch/pmi.h"

enum {
    PART_MAX = 800,            /* some launchers count the whole line */
    VALUE_BYTES_MAX = 1 << 20, /* more than this is no address of ours */
    HEADER_MAX = 24,           /* digits and a dot */
};

static struct mr_pmi pmi = {.fd = -1};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a question and its answer belong together */
static _Atomic int broken;                               /* 0 or the first error: then no more questions */
static bool parted;                                      /* the launcher knows that this process is done */
/* The fence under way; with the lock. */
static struct {
    bool begun, over; /* over: the launcher has said so */
    bool warned;
    int64_t waited_ms, clock_ms, heard_ms, asked_ms;
} fence;

/* ---- values ---- */

static size_t part_max(void)
{
    return pmi.value_max - 1 < PART_MAX ? pmi.value_max - 1 : PART_MAX;
}

static int name_part(const char *key, int rank, unsigned part, char name[MR_PMI_KEY_MAX])
{
    int len = part ? snprintf(name, MR_PMI_KEY_MAX, "%s.%d.%u", key, rank, part)
                   : snprintf(name, MR_PMI_KEY_MAX, "%s.%d", key, rank);

    return len < MR_PMI_KEY_MAX && (size_t)len < pmi.key_max
               ? 0
               : mr_launch_fail(-EINVAL, "the key %s is too long for %s", key, pmi.launcher);
}

static int put_parts(const char *key, const char *text)
{
    char name[MR_PMI_KEY_MAX], part[PART_MAX + 1];
    int err = 0;

    for (unsigned i = 0; *text && !err; i++) {
        size_t n = strnlen(text, part_max());
        memcpy(part, text, n);
        part[n] = '\0';
        err = name_part(key, pmi.rank, i, name);
        if (!err)
            err = pmi.protocol->put(&pmi, name, part);
        text += n;
    }
    return err;
}

static int put_value(const char *key, const void *data, size_t len)
{
    if (len > VALUE_BYTES_MAX)
        return -EINVAL;
    char *text = malloc(HEADER_MAX + mr_pmi_encoded_length(len) + 1);
    if (!text)
        return -ENOMEM;
    int n = snprintf(text, HEADER_MAX, "%zu.", len);
    mr_pmi_encode(data, len, text + n);
    int err = put_parts(key, text);
    free(text);
    return err;
}

static int bad_value(int rank, const char *key, const char *text)
{
    char shown[60];

    mr_pmi_quote(text, shown, sizeof(shown));
    return mr_launch_fail(-EPROTO, "%s (%s) has for %s of rank %d what that rank did not put there: '%s'", pmi.launcher,
                          pmi.protocol->name, key, rank, shown);
}

/* The rest of a value whose first characters are already known. */
static int get_rest(int rank, const char *key, char *text, size_t have, size_t want)
{
    char name[MR_PMI_KEY_MAX], part[MR_PMI_VALUE_MAX];

    for (unsigned i = 1; have < want; i++) {
        int err = name_part(key, rank, i, name);
        if (!err)
            err = pmi.protocol->get(&pmi, name, part, sizeof(part));
        if (err && err != -ENOENT)
            return err;
        size_t n = err ? 0 : strlen(part);
        if (!n || n > want - have)
            return bad_value(rank, key, n ? part : "a part is missing");
        memcpy(text + have, part, n);
        have += n;
    }
    return 0;
}

static int get_value(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    char name[MR_PMI_KEY_MAX], first[MR_PMI_VALUE_MAX];
    long long bytes;
    int err = name_part(key, rank, 0, name);

    if (!err)
        err = pmi.protocol->get(&pmi, name, first, sizeof(first));
    if (err)
        return err;
    char *dot = strchr(first, '.');
    if (dot)
        *dot = '\0';
    if (!dot || !mr_pmi_number(first, 0, VALUE_BYTES_MAX, &bytes))
        return bad_value(rank, key, first);
    size_t want = mr_pmi_encoded_length((size_t)bytes), have = strlen(dot + 1);
    if (have > want)
        return bad_value(rank, key, dot + 1);
    *len = (size_t)bytes;
    if (*len > cap)
        return -EMSGSIZE;
    char *text = malloc(want + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, dot + 1, have);
    err = get_rest(rank, key, text, have, want);
    if (!err && mr_pmi_decode(text, want, buf, *len))
        err = bad_value(rank, key, dot + 1);
    free(text);
    return err;
}

/* ---- fences ---- */

static int begin_fence(void)
{
    memset(&fence, 0, sizeof(fence));
    pmi.questioned = false;
    int err = pmi.protocol->fence_ask(&pmi);
    fence.begun = !err;
    return err;
}

/* 0: the fence is over. An answer to a question is read before the next message is due. */
static int read_fence(enum mr_pmi_wait wait)
{
    while (!fence.over || pmi.questioned) {
        int got = pmi.protocol->fence_answer(&pmi, wait);

        if (got < 0)
            return got;
        if (got == MR_PMI_FENCE_OVER && fence.over)
            return mr_pmi_nonsense(&pmi, "a question during a fence");
        if (got == MR_PMI_FENCE_OVER)
            fence.over = true;
        else
            pmi.questioned = false;
        fence.heard_ms = fence.waited_ms;
    }
    return 0;
}

/* A launcher that answers no question during a fence gives no sign that tells a late rank from a silent launcher. */
static int warn_of_wait(void)
{
    if (fence.waited_ms >= mr_config.launcher_timeout_s * INT64_C(1000) && !fence.warned) {
        fence.warned = true;
        mr_log(MR_LOG_WARN,
               "rank %d has waited %d s (MRMPI_LAUNCHER_TIMEOUT_S) for %s (%s) to end a fence: a rank is late, or the "
               "launcher is silent, and this launcher does not say which; the rank waits on",
               pmi.rank, mr_config.launcher_timeout_s, pmi.launcher, pmi.protocol->name);
    }
    return 0;
}

/* Other ranks may be late, but the launcher must live: a question at every pause, and its answer within the limit. */
static int look_at_launcher(void)
{
    if (!pmi.pause_ms)
        return 0;
    if (!mr_detect_pmi_answers_at_fences(pmi.protocol->version))
        return warn_of_wait();
    if (pmi.questioned)
        return fence.waited_ms - fence.asked_ms < mr_config.launcher_timeout_s * INT64_C(1000) ? 0
                                                                                               : mr_pmi_silent(&pmi);
    if (fence.waited_ms - fence.heard_ms < pmi.pause_ms)
        return 0;
    fence.asked_ms = fence.waited_ms;
    int err = pmi.protocol->fence_question(&pmi);
    pmi.questioned = !err;
    return err;
}

static int test_pmi_fence(void)
{
    int err = read_fence(MR_PMI_NOW);

    if (err != -EAGAIN)
        return err;
    mr_launch_count_ms(&fence.clock_ms, &fence.waited_ms);
    err = look_at_launcher();
    return err ? err : -EAGAIN;
}

static int wait_for_pmi_fence(void)
{
    int err;

    while ((err = read_fence(MR_PMI_PAUSE)) == -EAGAIN) {
        fence.waited_ms += pmi.pause_ms;
        if ((err = look_at_launcher()))
            return err;
    }
    return err;
}

/* ---- the client's functions: one conversation at a time, none after a fault ---- */

static int enter(void)
{
    pthread_mutex_lock(&lock);
    int err = atomic_load_explicit(&broken, memory_order_relaxed);
    if (!err && pmi.fd < 0)
        err = -ENOTCONN;
    if (!err && fence.begun)
        err = -EBUSY;
    if (err)
        pthread_mutex_unlock(&lock);
    return err;
}

/* A key that is not there or does not fit is an answer; anything else leaves the connection in an unknown state. */
static int leave(int err)
{
    if (err && err != -ENOENT && err != -EMSGSIZE && err != -EINVAL && err != -ENOMEM && err != -EAGAIN)
        atomic_store_explicit(&broken, err, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return err;
}

static int pmi_put(const char *key, const void *data, size_t len)
{
    int err = enter();

    return err ? err : leave(put_value(key, data, len));
}

static int pmi_fence_begin(void)
{
    int err = enter();

    return err ? err : leave(begin_fence());
}

static int pmi_fence_end(bool patient)
{
    pthread_mutex_lock(&lock);
    int err = !fence.begun ? -EINVAL : patient ? wait_for_pmi_fence() : test_pmi_fence();
    if (err != -EAGAIN)
        fence.begun = false;
    return leave(err);
}

static int pmi_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    int err = enter();

    return err ? err : leave(get_value(rank, key, buf, cap, len));
}

static int pmi_universe(void)
{
    int err = enter();

    if (err)
        return err;
    err = pmi.protocol->universe(&pmi);
    leave(err < 0 ? err : 0);
    return err;
}

/* Hydra's mpiexec only: others either refuse, or have not been tried. */
static int pmi_start(const struct mr_launch_order *order)
{
    if (!pmi.protocol->start || !mr_detect_pmi_starts_jobs())
        return -EOPNOTSUPP;
    int err = enter();

    return err ? err : leave(pmi.protocol->start(&pmi, order));
}

/* The job's ranks find there what the order to start the job had with it. */
static int pmi_parent(char *port, size_t cap)
{
    if (!mr_config_foreign("PMI_SPAWNED") || !pmi.protocol->start)
        return -ENOENT;
    int err = enter();

    return err ? err : leave(pmi.protocol->get(&pmi, MR_PMI_PARENT_KEY, port, cap));
}

/* The connection is not read between two questions, so its end is found by polling. */
static int pmi_failed(void)
{
    int err = atomic_load_explicit(&broken, memory_order_relaxed);
    struct pollfd p = {.fd = pmi.fd, .events = POLLRDHUP};

    if (!err && pmi.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
        err = -ECONNRESET;
    return err;
}

/* ---- node map ---- */

static int map_by_exchange(uint32_t *node_of, struct mr_launch_world *world)
{
    static const char key[] = "mrmpi.node";
    char mine[MR_DETECT_NODE_MAX], *names = calloc((size_t)pmi.size, sizeof(mine));
    const char **list = calloc((size_t)pmi.size, sizeof(*list));
    size_t len;
    int err = names && list ? mr_detect_node(mine) : -ENOMEM;

    if (!err)
        err = put_value(key, mine, strlen(mine));
    if (!err)
        err = begin_fence();
    if (!err)
        err = wait_for_pmi_fence();
    fence.begun = false;
    for (int r = 0; r < pmi.size && !err; r++) {
        list[r] = names + (size_t)r * sizeof(mine);
        err = get_value(r, key, names + (size_t)r * sizeof(mine), sizeof(mine) - 1, &len);
    }
    if (!err)
        err = mr_nodemap_from_names(&world->map, pmi.rank, pmi.size, list);
    free(list);
    free(names);
    return err;
}

/* No known launcher cuts long mappings: an unreadable mapping is a fault. */
static int learn_map(struct mr_launch_world *world)
{
    char *mapping = malloc(MR_PMI_MESSAGE_MAX);
    uint32_t *node_of = calloc((size_t)pmi.size, sizeof(*node_of));
    char shown[80];
    int err = mapping && node_of ? pmi.protocol->mapping(&pmi, mapping, MR_PMI_MESSAGE_MAX) : -ENOMEM;

    if (err == -ENOENT || (!err && !*mapping)) {
        err = map_by_exchange(node_of, world);
    } else if (!err) {
        mr_pmi_quote(mapping, shown, sizeof(shown));
        err = mr_mapping_parse(mapping, pmi.size, node_of);
        if (err)
            mr_launch_fail(err, "%s (%s) gave a PMI_process_mapping that cannot be read: '%s'", pmi.launcher,
                           pmi.protocol->name, shown);
        else
            err = mr_nodemap_from_ids(&world->map, pmi.rank, pmi.size, node_of);
    }
    free(node_of);
    free(mapping);
    return err;
}

static int learn_pmi_world(struct mr_launch_world *world)
{
    if (pmi.size < 1 || pmi.rank < 0 || pmi.rank >= pmi.size)
        return mr_launch_fail(-EPROTO, "%s (%s) says that this is rank %d of %d", pmi.launcher, pmi.protocol->name,
                              pmi.rank, pmi.size);
    world->rank = pmi.rank;
    world->size = pmi.size;
    world->appnum = pmi.appnum;
    world->job_id = strdup(pmi.job);
    world->space = strdup(pmi.job);
    world->node_name = strdup(mr_detect_node_name());
    return world->job_id && world->space && world->node_name ? learn_map(world) : -ENOMEM;
}

static int pmi_init(const struct mr_pmi_protocol *protocol, struct mr_launch_world *world)
{
    pmi.launcher = mr_detect_pmi_launcher();
    if (!mr_config_foreign("PMI_FD") && !mr_config_foreign("PMI_PORT"))
        return mr_launch_fail(-EINVAL,
                              "MRMPI_LAUNCHER asks for %s, and neither PMI_FD nor PMI_PORT is set: "
                              "no PMI launcher started this process",
                              protocol->name);
    if (parted)
        return mr_launch_fail(-EALREADY,
                              "%s (%s) takes a process into its job once: MPI cannot start again after "
                              "it has ended; mrrun and srun --mpi=pmix can",
                              pmi.launcher, protocol->name);
    pmi.protocol = protocol;
    int err = mr_pmi_open(&pmi);
    if (!err)
        err = protocol->begin(&pmi);
    if (!err)
        err = learn_pmi_world(world);
    if (err)
        mr_pmi_close(&pmi);
    return err;
}

static int pmi1_init(struct mr_launch_world *world)
{
    return pmi_init(&mr_pmi_protocol1, world);
}

static int pmi2_init(struct mr_launch_world *world)
{
    return pmi_init(&mr_pmi_protocol2, world);
}

/* ---- the end ---- */

/* After an abort, a launcher may kill this process and drop unread output. */
static void let_stderr_be_read(void)
{
    int unread;

    for (int ms = 0; ms < 500 && !ioctl(STDERR_FILENO, FIONREAD, &unread) && unread > 0; ms += 5)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Not every launcher says why a job was aborted. Another thread may be waiting in a fence, and keeps the lock. */
static __attribute__((noreturn)) void pmi_abort(int code, const char *why)
{
    code = mr_launch_status(code);
    fprintf(stderr, "mrmpi: rank %d aborted the job with code %d: %s\n", pmi.rank, code, why ? why : "");
    fflush(NULL);
    let_stderr_be_read();
    if (pmi.fd >= 0)
        pmi.protocol->abort(&pmi, code, why ? why : "");
    _exit(code);
}

static int pmi_finalize(void)
{
    int err = enter();

    if (!err)
        err = leave(pmi.protocol->finish(&pmi));
    mr_pmi_close(&pmi);
    parted = true;
    return err;
}

#define CLIENT(init_)                                                                                                  \
    .init = init_, .put = pmi_put, .fence_begin = pmi_fence_begin, .fence_end = pmi_fence_end, .get = pmi_get,         \
    .universe = pmi_universe, .start = pmi_start, .parent = pmi_parent, .failed = pmi_failed, .abort = pmi_abort,      \
    .finalize = pmi_finalize

const struct mr_launch_backend mr_launch_pmi1 = {.name = "pmi1", CLIENT(pmi1_init)};
const struct mr_launch_backend mr_launch_pmi2 = {.name = "pmi2", CLIENT(pmi2_init)};
