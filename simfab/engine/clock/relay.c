/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The relay of a host (struct sf_relay, proto.h): waiting actors pass the turn on among themselves, and the engine is
 * woken once for all of them. Virtual time is the same as without the relay. While an order is open, the engine counts
 * the first actor as running. When the order closes, the engine repeats for each passed turn the steps of that time, in
 * the same sequence.
 *
 * An actor has a place only if its turn concerns nothing but its own arena: the actor is the only actor of its process,
 * is IDLE, and waits for nothing else. The engine runs all other actors.
 */
#include "simfab/engine/clock/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/proto.h"

/* ---- seats ----------------------------------------------------------------------------------------------------- */

/* Sealed: no process can shrink the memory under the engine. */
static bool make_relay_page(struct relay *r)
{
    r->fd = memfd_create("simfab-relay", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (r->fd < 0)
        return false;
    if (!ftruncate(r->fd, sizeof *r->page) && !fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        r->page = mmap(NULL, sizeof *r->page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
        if (r->page != MAP_FAILED)
            return true;
    }
    close(r->fd);
    return false;
}

static struct relay *new_relay(void)
{
    struct relay *r = xcalloc(1, sizeof *r);

    if (make_relay_page(r))
        return r;
    engine_log("no page for passing turns on: %s; the engine does it", strerror(errno));
    free(r);
    return NULL;
}

uint32_t relay_sit(struct host_time *h, int *fd)
{
    if (h->sim->no_relay || h->sim->model->cpu_factor_milli)
        return 0;
    if (!h->relay)
        h->relay = new_relay();
    for (uint32_t seat = 1; h->relay && seat < SF_SEATS; seat++)
        if (!h->relay->taken[seat]) {
            h->relay->taken[seat] = true;
            *fd = h->relay->fd;
            return seat;
        }
    return 0;
}

void relay_leave(struct host_time *h, uint32_t seat)
{
    if (seat)
        h->relay->taken[seat] = false;
}

void relay_free(struct host_time *h)
{
    if (!h->relay)
        return;
    munmap(h->relay->page, sizeof *h->relay->page);
    close(h->relay->fd);
    free(h->relay);
    h->relay = NULL;
}

void relay_call(const struct actor *a)
{
    uint32_t *word = &actor_host(a)->relay->page->call[a->proc->seat];

    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- an order -------------------------------------------------------------------------------------------------- */

/* True if the actor may pass a turn on. */
static bool may_pass(const struct actor *a)
{
    return a->proc->seat && !a->index && a->proc->num_actors == 1 && !a->proc->dead;
}

/* True if a turn may be passed on to the actor. */
static bool may_take(const struct actor *a)
{
    return may_pass(a) && a->seen == SF_ACTOR_IDLE && !a->paused;
}

static void add_member(struct host_time *h, struct actor *a, uint32_t place)
{
    struct sf_actor *sh = actor_shared(a);

    h->relay->member[place] = a;
    h->relay->page->seat[place] = (uint8_t)a->proc->seat;
    a->relay.turn = h->relay->number << 8 | place;
    a->relay.calls = __atomic_load_n(&sh->calls, __ATOMIC_RELAXED);
    a->relay.head = __atomic_load_n(&a->proc->arena->cmd_head, __ATOMIC_RELAXED);
    sh->relay_reason = a->turn_reason;
    sh->relay_clock_ps = a->turn_clock_ps;
    __atomic_store_n(&sh->relay_turn, a->relay.turn, __ATOMIC_RELEASE);
}

void relay_offer(struct host_time *h, struct actor *first)
{
    struct relay *r = h->relay;
    uint32_t length = 1;

    if (!h->waiting || !r || !may_pass(first) || !may_take(h->waiting))
        return;
    if (++r->number > UINT32_MAX >> 8)
        r->number = 1;
    add_member(h, first, 0);
    for (struct actor *a = h->waiting; a && length < SF_RELAY_MOST && may_take(a); a = a->next_waiting)
        add_member(h, a, length++);
    r->page->seat[length] = 0;
    h->relay_length = length;
    __atomic_store_n(&r->page->turn, r->number << 8, __ATOMIC_SEQ_CST);
}
