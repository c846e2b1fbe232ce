/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: a rank publishes its own by the launcher, and asks the launcher for a peer's before connecting. The
 * launcher may take its time. If threads share the library, a separate thread asks, so the others go on meanwhile:
 * without its address a peer cannot be connected, and only the shortest messages are sent eagerly.
 */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

/* Unchanged since the first version, so that ranks of different versions detect the difference. */
#define ADDRESS_KEY "mrmpi.card"

/* ---- ours -------------------------------------------------------------------------------------------------------- */

static bool wants_all_pairs(void)
{
    bool all = !strcmp(mr_config.pairs, "all");

    if (!all && strcmp(mr_config.pairs, "matched") && !mr_peers.launch->rank)
        mr_log(MR_LOG_WARN, "MRMPI_PAIRS=%s: must be matched or all; matched it is", mr_config.pairs);
    return all;
}

static void list_partitions(struct mr_address *a, unsigned rail)
{
    struct mr_partition *out = mr_address_partitions(a) + a->num_partitions;

    for (unsigned i = 0; i < mr_verbs.rail[rail].num_partitions; i++) {
        const struct mr_rail_partition *p = &mr_verbs.rail[rail].partition[i];

        *out++ = (struct mr_partition){
            .key = p->now.key ? p->now.key : p->number, .rail = (uint8_t)rail, .ud_qpn = p->ud_qpn};
        a->num_partitions++;
    }
}

size_t mr_address_describe(struct mr_address_long *out)
{
    struct mr_address *address = &out->address;

    *out = (struct mr_address_long){.address = {.magic = MR_ADDRESS_MAGIC,
                                                .version = MR_ADDRESS_VERSION,
                                                .num_rails = (uint16_t)mr_verbs.num_rails,
                                                .paths = (uint8_t)mr_config.paths,
                                                .all_pairs = wants_all_pairs(),
                                                .kinds = mr_peers.our_kinds = (uint8_t)mr_kinds_set(&mr_peers.kinds),
                                                .eager_max = (uint32_t)mr_config.eager_max}};

    if (*mr_peers.launch->node_name) /* the launcher's name: parts of one machine may be hosts of their own */
        memcpy(address->host, mr_peers.launch->node_name,
               strnlen(mr_peers.launch->node_name, sizeof address->host - 1));
    else
        gethostname(address->host, sizeof address->host - 1);
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        address->rail[i] = mr_verbs.rail[i].addr;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        list_partitions(address, i);
    return mr_address_length(address->num_rails, address->num_partitions);
}

int mr_address_publish(void)
{
    struct mr_address_long ours;
    size_t len = mr_address_describe(&ours);

    return mr_launch_put(ADDRESS_KEY, &ours.address, len);
}

/* ---- a peer's ---------------------------------------------------------------------------------------------------- */

struct fetch {
    struct fetch *next;
    int rank, err;
    size_t len;
    union {
        struct mr_address address;
        unsigned char room[4096]; /* an address of another version may be longer */
    } got;
};

static void ask_launcher(struct fetch *f)
{
    memset(&f->got, 0, sizeof f->got);
    f->err = mr_launch_get(f->rank, ADDRESS_KEY, &f->got, sizeof f->got, &f->len);
}

int mr_peer_keep_address(struct mr_peer *p, const struct mr_address *address)
{
    size_t len = mr_address_length(address->num_rails, address->num_partitions);
    struct mr_address *kept = malloc(len);

    if (!kept)
        return -ENOMEM;
    memcpy(kept, address, len);
    p->address = kept;
    return 0;
}

void mr_address_drop(struct mr_peer *p)
{
    if (p->address != &mr_address_none)
        free(p->address);
    p->address = &mr_address_none;
}

static int take_address(struct mr_peer *p, struct fetch *f)
{
    if (f->err == -EBUSY)
        return f->err; /* the ranks meet; the question may be repeated later */
    p->own->address_error = f->err ? f->err : mr_address_check(&f->got.address, f->len);
    if (!p->own->address_error)
        p->own->address_error = mr_peer_keep_address(p, &f->got.address);
    if (p->own->address_error == -EPROTONOSUPPORT)
        mr_log(MR_LOG_ERROR,
               "rank %d runs another version of mrmpi: version %u of its address, %u of ours; a job needs one version",
               p->rank, f->got.address.version, MR_ADDRESS_VERSION);
    else if (p->own->address_error)
        mr_log(MR_LOG_ERROR, "rank %d has not published how it can be reached (%s)", p->rank,
               strerror(-p->own->address_error));
    return p->own->address_error;
}

/* ---- the asking thread ------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex; /* of the next members */
    pthread_cond_t news;
    struct fetch *wanted, **wanted_end, *done;
    bool stop;

    bool runs; /* the library's lock guards the next members */
    pthread_t thread;
    struct fetch *taken; /* connecting may wait for these */
} asker = {.mutex = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static void *ask_all(void *arg)
{
    pthread_mutex_lock(&asker.mutex);
    while (!asker.stop) {
        struct fetch *f = asker.wanted;

        if (!f) {
            pthread_cond_wait(&asker.news, &asker.mutex);
            continue;
        }
        asker.wanted = f->next;
        if (!asker.wanted)
            asker.wanted_end = &asker.wanted;
        pthread_mutex_unlock(&asker.mutex);
        ask_launcher(f);
        pthread_mutex_lock(&asker.mutex);
        f->next = asker.done;
        asker.done = f;
    }
    pthread_mutex_unlock(&asker.mutex);
    return NULL;
}

/* The program's signals are for its own threads. */
static bool start_asker(void)
{
    sigset_t all, before;

    if (asker.runs)
        return true;
    asker.stop = false;
    asker.wanted_end = &asker.wanted;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    asker.runs = !pthread_create(&asker.thread, NULL, ask_all, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return asker.runs;
}

static bool ask_meanwhile(struct mr_peer *p)
{
    struct fetch *f = start_asker() ? calloc(1, sizeof *f) : NULL;

    if (!f)
        return false;
    f->rank = p->rank;
    p->own->fetching = true;
    mr_peers_own.num_fetching++;
    pthread_mutex_lock(&asker.mutex);
    *asker.wanted_end = f;
    asker.wanted_end = &f->next;
    pthread_cond_signal(&asker.news);
    pthread_mutex_unlock(&asker.mutex);
    return true;
}

/* Takes the addresses that have come. Connecting does not go on here, because it asks for addresses itself. */
static void take_all(void)
{
    struct fetch *f, *next;

    pthread_mutex_lock(&asker.mutex);
    f = asker.done;
    asker.done = NULL;
    pthread_mutex_unlock(&asker.mutex);
    for (; f; f = next) {
        struct mr_peer *p = mr_peers.peer[f->rank];

        next = f->next;
        take_address(p, f);
        p->own->fetching = false;
        f->next = asker.taken;
        asker.taken = f;
    }
}

void mr_addresses_poll(void)
{
    struct fetch *f;

    if (!mr_peers_own.num_fetching)
        return;
    take_all();
    while ((f = asker.taken)) {
        asker.taken = f->next;
        mr_peers_own.num_fetching--;
        mr_cm_resume(&mr_peers.peer[f->rank]->cm, mr_clock_ns());
        free(f);
    }
}

static void free_fetches(struct fetch *f)
{
    for (struct fetch *next; f; f = next) {
        next = f->next;
        free(f);
    }
}

void mr_addresses_close(void)
{
    if (!asker.runs)
        return;
    pthread_mutex_lock(&asker.mutex);
    asker.stop = true;
    pthread_cond_signal(&asker.news);
    pthread_mutex_unlock(&asker.mutex);
    pthread_join(asker.thread, NULL);
    asker.runs = false;
    free_fetches(asker.wanted);
    free_fetches(asker.done);
    free_fetches(asker.taken);
    asker.wanted = asker.done = asker.taken = NULL;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int mr_peer_fetch_address(struct mr_peer *p)
{
    struct fetch f = {.rank = p->rank};

    if (p->own->fetching)
        take_all();
    if (p->address->magic || p->own->address_error)
        return p->own->address_error;
    if (p->own->fetching || (mr_threaded && ask_meanwhile(p)))
        return -EAGAIN;
    ask_launcher(&f);
    return take_address(p, &f);
}
