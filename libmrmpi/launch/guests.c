/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of known processes of other jobs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"

struct guest {
    struct mr_card card; /* job is 0: forgotten */
    unsigned held;
    bool spent; /* forgotten, and its number is for no other */
};

static struct {
    const struct mr_launch *launch;
    uint64_t job;        /* of this process; 0: not asked for yet */
    struct guest *guest; /* [num], of the numbers from mr_guest_first() on */
    int num, room;
} guests;

static uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
    for (const unsigned char *p = data; len--; p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static uint64_t mix_bits(uint64_t h)
{
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

int mr_guest_random(void *out, size_t len)
{
    return getrandom(out, len, 0) == (ssize_t)len ? 0 : -EIO;
}

/* Namespaces have parts made by chance, or are numbered for a cluster. A process without launcher has its own name. */
static uint64_t own_job(void)
{
    const char *id = guests.launch->space;

    while (!guests.job) {
        if (id && *id)
            guests.job = mix_bits(hash_bytes(0xcbf29ce484222325u, id, strlen(id))) | 1;
        else if (mr_guest_random(&guests.job, sizeof guests.job))
            return 0;
    }
    return guests.job;
}

/* Processes with the same value reach each other by the loopback interface: the kernel, and its set of interfaces. */
static uint64_t own_host(void)
{
    char boot[64] = "";
    struct stat net = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, boot, sizeof boot);

    if (fd >= 0)
        close(fd);
    if (len <= 0 || stat("/proc/self/ns/net", &net))
        return 0;
    return mix_bits(hash_bytes(hash_bytes(0xcbf29ce484222325u, boot, (size_t)len), &net.st_ino, sizeof net.st_ino));
}

static uint64_t own_node(void)
{
    char name[256] = "";

    return gethostname(name, sizeof name - 1) ? 0 : hash_bytes(0xcbf29ce484222325u, name, strlen(name));
}

int mr_guest_identify(struct mr_card *card)
{
    memset(card, 0, sizeof *card);
    card->job = own_job();
    card->host = own_host();
    card->node = own_node();
    card->rank = (uint32_t)guests.launch->rank;
    return card->job ? 0 : -EIO;
}

/* With another secret it has left MPI meanwhile, and begun again. */
static bool is_same_process(const struct mr_card *a, const struct mr_card *b)
{
    return a->job == b->job && a->rank == b->rank && a->secret[0] == b->secret[0];
}

/* That of a forgotten guest, or another. -ENOMEM */
static int free_place(void)
{
    for (int i = 0; i < guests.num; i++)
        if (!guests.guest[i].card.job && !guests.guest[i].spent)
            return i;
    if (guests.num == guests.room) {
        int room = guests.room ? 2 * guests.room : 16;
        struct guest *more = realloc(guests.guest, (size_t)room * sizeof *more);

        if (!more)
            return -ENOMEM;
        guests.guest = more;
        guests.room = room;
    }
    return guests.num++;
}

int mr_guest_number(const struct mr_card *card)
{
    int size = guests.launch->size, i;

    if (!card->job || card->rank > INT32_MAX)
        return -EPROTO;
    if (card->job == own_job())
        return card->rank < (uint32_t)size ? (int)card->rank : -EPROTO;
    for (i = 0; i < guests.num; i++)
        if (is_same_process(&guests.guest[i].card, card))
            return mr_guest_first() + i;
    i = free_place();
    if (i < 0)
        return -ENOMEM;
    guests.guest[i] = (struct guest){.card = *card};
    return mr_guest_first() + i;
}

static struct guest *guest_record(int number)
{
    int i = number - mr_guest_first();

    return i >= 0 && i < guests.num && guests.guest[i].card.job ? &guests.guest[i] : NULL;
}

void mr_guest_hold(int number)
{
    struct guest *g = guest_record(number);

    if (g)
        g->held++;
}

void mr_guest_release(int number)
{
    struct guest *g = guest_record(number);

    if (g)
        g->held--;
}

bool mr_guest_is_held(int number)
{
    const struct guest *g = guest_record(number);

    return g && g->held;
}

void mr_guest_forget(int number, bool again)
{
    struct guest *g = guest_record(number);

    if (!g)
        return;
    *g = (struct guest){.spent = !again};
    while (guests.num && !guests.guest[guests.num - 1].card.job && !guests.guest[guests.num - 1].spent)
        guests.num--;
}

int mr_guest_first(void)
{
    return guests.launch->size + 1;
}

int mr_guest_end(void)
{
    return mr_guest_first() + guests.num;
}

const struct mr_card *mr_guest_card(int number)
{
    const struct guest *g = guest_record(number);

    return g ? &g->card : NULL;
}

int mr_guest_compare(int a, int b)
{
    const struct mr_card *x = mr_guest_card(a), *y = mr_guest_card(b);
    if (!x && !y)
        return a < b ? -1 : a > b;

    uint64_t job_x = x ? x->job : own_job(), job_y = y ? y->job : own_job();
    uint32_t rank_x = x ? x->rank : (uint32_t)a, rank_y = y ? y->rank : (uint32_t)b;

    if (job_x != job_y)
        return job_x < job_y ? -1 : 1;
    return rank_x < rank_y ? -1 : rank_x > rank_y;
}

uint64_t mr_guest_name(int number)
{
    const struct mr_card *c = mr_guest_card(number);

    return mix_bits((c ? c->job : own_job()) + (c ? c->rank : (uint64_t)number));
}

void mr_guests_begin(const struct mr_launch *launch)
{
    guests.launch = launch;
}

void mr_guests_end(void)
{
    free(guests.guest);
    memset(&guests, 0, sizeof guests);
}
