/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators between jobs. A port is a door of a process: its name has the card of the process and the number
 * of the door, so a program that has the name reaches the process without help of a launcher. The roots of the two
 * groups find each other by a question at the door, and go on as leaders of an intercommunicator (intercomm.c).
 * Processes that share a socket (MPI_Comm_join) have no door: they exchange their cards over the socket.
 *
 * A question waits at the door until the process accepts it, closes the door, or ends.
 *
 * No group names the other root at first: each record of it holds the guest (mr_guest_hold).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"
#include "libmrmpi/launch/launch.h"

#define PORT_BEGIN "mrmpi-port-1:"

struct door {
    struct door *next;
    uint64_t number;
};

/* A question at one of our doors, or ours at the door of another process. */
struct ask {
    struct ask *next;
    int process;
    uint64_t door, number;
    bool answered, opened;
};

static struct {
    struct door *doors;
    struct ask *asked; /* the oldest first */
    struct ask *ours;
} ports;

static struct door **place_of_door(uint64_t number)
{
    struct door **at = &ports.doors;

    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void note_question(int from, uint64_t door, uint64_t number)
{
    struct ask *a = *place_of_door(door) ? malloc(sizeof(*a)) : NULL, **last = &ports.asked;

    if (!a) {
        mr_door_send(from, MR_DOOR_CLOSED, door, number);
        return;
    }
    *a = (struct ask){.process = from, .door = door, .number = number};
    mr_guest_hold(from);
    while (*last)
        last = &(*last)->next;
    *last = a;
}

static void hear_at_door(int from, enum mr_door_word word, uint64_t door, uint64_t number)
{
    if (word == MR_DOOR_ASK) {
        note_question(from, door, number);
        return;
    }
    for (struct ask *a = ports.ours; a; a = a->next)
        if (a->process == from && a->number == number && a->door == door) {
            a->opened = word == MR_DOOR_OPEN;
            a->answered = true;
        }
}

/* ---- names of ports ---------------------------------------------------------------------------------------------- */

static void write_port_name(char *name, size_t cap, const struct mr_card *card, uint64_t door)
{
    const unsigned char *bytes = (const unsigned char *)card;
    int n = snprintf(name, cap, "%s", PORT_BEGIN);

    for (size_t i = 0; i < sizeof(*card); i++)
        n += snprintf(name + n, cap - (size_t)n, "%02x", bytes[i]);
    snprintf(name + n, cap - (size_t)n, ":%016" PRIx64, door);
}

static enum mr_err read_port_name(const char *name, struct mr_card *card, uint64_t *door)
{
    unsigned char *bytes = (unsigned char *)card;
    const char *at = name + sizeof(PORT_BEGIN) - 1;
    int len = 0;

    if (strncmp(name, PORT_BEGIN, sizeof(PORT_BEGIN) - 1))
        return mr_fail(MR_ERR_PORT, "\"%.60s\" is no name of a port", name);
    for (size_t i = 0; i < sizeof(*card); i++, at += 2)
        if (sscanf(at, "%2hhx%n", &bytes[i], &len) != 1 || len != 2)
            return mr_fail(MR_ERR_PORT, "the name of the port is damaged: \"%.60s\"", name);
    if (sscanf(at, ":%16" SCNx64 "%n", door, &len) != 1 || len != 17 || at[len])
        return mr_fail(MR_ERR_PORT, "the name of the port is damaged: \"%.60s\"", name);
    return MR_SUCCESS;
}

enum mr_err mr_port_open(char *name, size_t cap)
{
    struct mr_card card;
    struct door *d = malloc(sizeof(*d));
    int err = d ? mr_guest_open(&card) : -ENOMEM;

    if (!err)
        err = mr_guest_random(&d->number, sizeof(d->number));
    if (err) {
        free(d);
        return mr_fail(err == -ENOMEM ? MR_ERR_NO_MEM : MR_ERR_OTHER, "no port can be opened: %s", strerror(-err));
    }
    mr_p2p_up.door = hear_at_door;
    d->next = ports.doors;
    ports.doors = d;
    write_port_name(name, cap, &card, d->number);
    return MR_SUCCESS;
}

/* The door of that name, which must be ours. */
static enum mr_err find_door(const char *name, uint64_t *number)
{
    struct mr_card card;
    enum mr_err err = read_port_name(name, &card, number);

    if (!err && !*place_of_door(*number))
        err = mr_fail(MR_ERR_PORT, "this process has no such open port");
    return err;
}

enum mr_err mr_port_close(const char *name)
{
    uint64_t number;
    enum mr_err err = find_door(name, &number);

    if (err)
        return err;
    struct door **at = place_of_door(number), *d = *at;
    *at = d->next;
    free(d);
    for (struct ask **q = &ports.asked, *a; (a = *q);) {
        if (a->door != number) {
            q = &a->next;
            continue;
        }
        *q = a->next;
        mr_door_send(a->process, MR_DOOR_CLOSED, a->door, a->number);
        mr_guest_release(a->process);
        free(a);
    }
    return MR_SUCCESS;
}

void mr_ports_finalize(void)
{
    while (ports.doors) {
        struct door *d = ports.doors;

        ports.doors = d->next;
        free(d);
    }
    while (ports.asked) {
        struct ask *a = ports.asked;

        ports.asked = a->next;
        free(a);
    }
}

/* ---- the roots --------------------------------------------------------------------------------------------------- */

/* The roots' messages: both know the numbers of the question and of the door. */
static struct mr_bridge bridge_of_roots(struct mr_comm *c, int root, int process, uint64_t question)
{
    uint32_t context = MR_CONTEXT_LEADERS | MR_CONTEXT_NO_PARENT | ((uint32_t)(question >> 32) & MR_CONTEXT_NAME_BITS);

    return (struct mr_bridge){c, mr_comm_for(process), context, root, process, (int)(question & MR_TAG_UB)};
}

static enum mr_err connect_groups(struct mr_comm *c, int root, const struct ask *found, enum mr_err wrong,
                                  struct mr_comm **out)
{
    struct mr_bridge b = bridge_of_roots(c, root, found ? found->process : MR_PROC_NULL, found ? found->number : 0);

    if (!b.comm) {
        wrong = mr_fail(MR_ERR_NO_MEM, "no memory for the other group's root");
        b.comm = c;
        b.remote_leader = MR_PROC_NULL;
    }
    return mr_inter_connect(&b, wrong, out);
}

struct acceptance {
    uint64_t door;
    struct ask found;
    bool closed;
};

/* Takes the oldest question at the door, and its hold. */
static bool is_asked(void *arg)
{
    struct acceptance *w = arg;

    for (struct ask **at = &ports.asked, *a; (a = *at);) {
        if (a->door != w->door && !mr_process_lost(a->process)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        w->found = *a;
        free(a);
        if (!mr_process_lost(w->found.process))
            return true;
        mr_guest_release(w->found.process);
    }
    return w->closed = !*place_of_door(w->door); /* by another thread */
}

static enum mr_err await_question(const char *port, struct ask *found)
{
    struct acceptance w = {0};
    enum mr_err err = find_door(port, &w.door);

    if (err)
        return err;
    mr_progress_until(is_asked, &w);
    if (w.closed)
        return mr_fail(MR_ERR_PORT, "the port has been closed");
    *found = w.found;
    if (!mr_door_send(found->process, MR_DOOR_OPEN, found->door, found->number))
        return MR_SUCCESS;
    mr_guest_release(found->process);
    return mr_fail(MR_ERR_PORT, "the process at the port has ended");
}

enum mr_err mr_comm_accept(struct mr_comm *c, const char *port, int root, enum mr_err wrong, struct mr_comm **out)
{
    struct ask found;
    bool first = c->rank == root && !wrong;
    enum mr_err err;

    *out = NULL;
    mr_guests_forget();
    if (first && (wrong = await_question(port, &found)))
        first = false;
    err = connect_groups(c, root, first ? &found : NULL, wrong, out);
    if (first)
        mr_guest_release(found.process);
    return err;
}

static bool is_answered(void *arg)
{
    const struct ask *a = arg;

    return a->answered || mr_process_lost(a->process);
}

/* Without error, the process of the port is held. */
static enum mr_err put_question(const char *port, struct ask *ask)
{
    struct mr_card card, ours;
    enum mr_err err = read_port_name(port, &card, &ask->door);
    struct ask **at;

    if (err)
        return err;
    if (mr_guest_open(&ours) || mr_guest_random(&ask->number, sizeof(ask->number)))
        return mr_fail(MR_ERR_OTHER, "this process cannot be reached by other jobs");
    ask->process = mr_guest_meet(&card);
    if (ask->process == -ENOMEM)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the process at the port");
    if (ask->process < 0 || ask->process == mr_comm_world->rank)
        return mr_fail(MR_ERR_PORT, "the port is %s", ask->process < 0 ? "damaged" : "of this process itself");
    mr_guest_hold(ask->process);
    mr_p2p_up.door = hear_at_door;
    ask->next = ports.ours;
    ports.ours = ask;
    if (!mr_door_send(ask->process, MR_DOOR_ASK, ask->door, ask->number))
        mr_progress_until(is_answered, ask);
    for (at = &ports.ours; *at != ask; at = &(*at)->next)
        ;
    *at = ask->next;
    if (ask->opened)
        return MR_SUCCESS;
    mr_guest_release(ask->process);
    return mr_fail(MR_ERR_PORT, ask->answered ? "the port has been closed"
                                              : "the process of the port cannot be reached, or has ended");
}

enum mr_err mr_comm_connect(struct mr_comm *c, const char *port, int root, enum mr_err wrong, struct mr_comm **out)
{
    struct ask ask = {0};
    bool first = c->rank == root && !wrong;
    enum mr_err err;

    *out = NULL;
    mr_guests_forget();
    if (first && (wrong = put_question(port, &ask)))
        first = false;
    err = connect_groups(c, root, first ? &ask : NULL, wrong, out);
    if (first)
        mr_guest_release(ask.process);
    return err;
}

/* ---- a socket ---------------------------------------------------------------------------------------------------- */

struct joining {
    int fd;
    struct {
        uint64_t magic, number;
        struct mr_card card;
    } out, in;
    size_t written, read;
    bool failed;
};

#define JOIN_MAGIC 0x6d726d706a6f696eu

/* As much as goes without waiting. */
static bool exchange_cards(void *arg)
{
    struct joining *j = arg;
    struct pollfd p = {
        .fd = j->fd,
        .events = (short)((j->written < sizeof(j->out) ? POLLOUT : 0) | (j->read < sizeof(j->in) ? POLLIN : 0))};

    if (poll(&p, 1, 0) <= 0)
        return false;
    if (p.revents & (POLLOUT | POLLERR | POLLNVAL) && j->written < sizeof(j->out)) {
        ssize_t n = write(j->fd, (char *)&j->out + j->written, sizeof(j->out) - j->written);

        if (n > 0)
            j->written += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR)
            j->failed = true;
    } else if (p.revents) {
        ssize_t n = read(j->fd, (char *)&j->in + j->read, sizeof(j->in) - j->read);

        if (n > 0)
            j->read += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            j->failed = true;
    }
    return j->failed || (j->written == sizeof(j->out) && j->read == sizeof(j->in));
}

enum mr_err mr_comm_join(int fd, struct mr_comm **out)
{
    struct joining j = {.fd = fd, .out.magic = JOIN_MAGIC};
    struct ask found = {0};
    enum mr_err err;

    *out = NULL;
    mr_guests_forget();
    if (mr_guest_open(&j.out.card) || mr_guest_random(&j.out.number, sizeof(j.out.number)))
        return mr_fail(MR_ERR_OTHER, "this process cannot be reached by other jobs");
    mr_progress_until(exchange_cards, &j);
    if (j.failed)
        return mr_fail(MR_ERR_OTHER, "the socket does not lead to a process that calls MPI_Comm_join");
    if (j.in.magic != JOIN_MAGIC || (found.process = mr_guest_meet(&j.in.card)) < 0)
        return mr_fail(MR_ERR_OTHER, "the process at the other end of the socket runs another MPI library");
    if (found.process == mr_comm_world->rank)
        return mr_fail(MR_ERR_OTHER, "the socket leads to this process itself");
    found.number = j.in.number ^ j.out.number;
    mr_guest_hold(found.process);
    err = connect_groups(mr_comm_self, 0, &found, MR_SUCCESS, out);
    mr_guest_release(found.process);
    return err;
}

/* ---- processes started by a program ------------------------------------------------------------------------------ */

struct mr_comm *mr_comm_parent;

struct birth {
    struct acceptance at;
    int launcher, status; /* the process of mrrun, 0: another launcher; its exit status, once ended */
    struct mr_launch_wait wait;
    bool ended;
};

static bool is_born(void *arg)
{
    struct birth *b = arg;

    if (is_asked(&b->at))
        return true;
    b->ended = b->launcher ? mr_launch_started_ended(b->launcher, &b->status) : mr_launch_waited(&b->wait);
    return b->ended;
}

static enum mr_err spawn_error(const char *what, int err)
{
    return mr_fail(err == -ENOMEM ? MR_ERR_NO_MEM : MR_ERR_SPAWN, "%s%s", what, mr_launch_why(err));
}

/* As shells have it. Programs have other reasons for other statuses. */
static const char *reason_of_status(int status)
{
    return status == 126 ? ": a program cannot be run" : status == 127 ? ": a program was not found" : "";
}

/* Starts the job, and waits for the question of its first process, which is then held. */
static enum mr_err give_birth(const struct mr_spawn *job, struct ask *found)
{
    char port[MR_PORT_MAX];
    struct mr_launch_order order = {.part = job->part, .parts = job->parts, .parent = port};
    struct birth b = {0};
    enum mr_err err;

    if (job->cannot)
        return job->cannot;
    if ((err = mr_port_open(port, sizeof(port))) || (err = find_door(port, &b.at.door)))
        return err;
    b.launcher = mr_launch_start(&order);
    if (b.launcher < 0) {
        mr_port_close(port);
        return spawn_error("", b.launcher);
    }
    mr_progress_until(is_born, &b);
    if (b.ended && !b.launcher) {
        mr_port_close(port);
        return mr_fail(MR_ERR_SPAWN,
                       "the launcher has been asked for the processes, and for %d s none has called MPI_Init "
                       "(MRMPI_LAUNCHER_TIMEOUT_S), or the launcher is gone",
                       (int)(b.wait.waited_ms / 1000));
    }
    if (b.ended) {
        const char *replaced = mr_launch_replaced();

        mr_port_close(port);
        return mr_fail(MR_ERR_SPAWN, "the processes ended before they had called MPI_Init (%s %d%s)%s%s%s",
                       b.status > 128 ? "mrrun's status" : "exit status", b.status, reason_of_status(b.status),
                       replaced ? "; mrrun was to start them, since " : "", replaced ? replaced : "",
                       replaced ? " starts no further processes" : "");
    }
    *found = b.at.found;
    if (b.launcher)
        mr_launch_started_lives(b.launcher);
    if (mr_door_send(found->process, MR_DOOR_OPEN, found->door, found->number)) {
        mr_guest_release(found->process);
        err = mr_fail(MR_ERR_SPAWN, "the first process has ended");
    }
    mr_port_close(port);
    return err;
}

/* The first process of the new job tells the root how many processes each part has; "none": it does not know. */
static enum mr_err tell_part_sizes(const struct mr_bridge *b)
{
    int *ranks, parts = mr_launch_parts(&ranks);
    enum mr_err err = mr_send_to_leader(b, &parts, sizeof(parts));

    if (!err && parts)
        err = mr_send_to_leader(b, ranks, (size_t)parts * sizeof(*ranks));
    free(ranks);
    return err;
}

/* A launcher that tells nothing has started all that it was asked for. */
static enum mr_err hear_part_sizes(const struct mr_bridge *b, const struct mr_spawn *job, struct mr_spawned *s)
{
    int parts = 0, *ranks = NULL;
    enum mr_err err = mr_receive_from_leader(b, &parts, sizeof(parts));

    if (!err && parts && (parts != s->parts || !(ranks = calloc((size_t)parts, sizeof(*ranks)))))
        err = mr_fail(MR_ERR_OTHER, "the new processes have %d parts, not %d", parts, s->parts);
    if (!err && parts)
        err = mr_receive_from_leader(b, ranks, (size_t)parts * sizeof(*ranks));
    for (int i = 0; i < s->parts && !err; i++)
        s->part[i].started = ranks ? ranks[i] : mr_launch_most(&job->part[i]);
    free(ranks);
    return err;
}

/* Errors of the communicator are those of the call itself: then nobody knows more. */
static void tell_spawned(struct mr_comm *c, int root, struct mr_spawned *s)
{
    struct mr_schedule *schedule = NULL;
    enum mr_err err = mr_coll_bcast(&s->parts, sizeof(s->parts), mr_type_byte, root, c, &schedule);

    err = mr_coll_run(err, schedule);
    if (err || !s->parts) {
        s->parts = 0;
        return;
    }
    if (!s->part)
        s->part = calloc((size_t)s->parts, sizeof(*s->part));
    schedule = NULL;
    err = s->part ? mr_coll_bcast(s->part, (size_t)s->parts * sizeof(*s->part), mr_type_byte, root, c, &schedule)
                  : MR_ERR_NO_MEM;
    if (mr_coll_run(err, schedule))
        s->parts = 0;
}

static void note_wanted(struct mr_spawned *s, const struct mr_spawn *job)
{
    s->part = calloc((size_t)job->parts, sizeof(*s->part));
    s->parts = s->part ? job->parts : 0;
    for (int i = 0; i < s->parts; i++)
        s->part[i].wanted = job->part[i].ranks;
}

enum mr_err mr_comm_spawn(struct mr_comm *c, const struct mr_spawn *job, int root, enum mr_err wrong,
                          struct mr_spawned *spawned, struct mr_comm **out)
{
    enum mr_err cannot = MR_SUCCESS, err = mr_agree_in_group(c, wrong);
    struct ask found;

    *out = NULL;
    *spawned = (struct mr_spawned){0};
    if (err)
        return err;
    mr_guests_forget();
    if (c->rank == root) {
        note_wanted(spawned, job);
        cannot = give_birth(job, &found);
    }
    const bool first = c->rank == root && !cannot;
    err = connect_groups(c, root, first ? &found : NULL, cannot, out);
    if (!err && first) {
        struct mr_bridge b = bridge_of_roots(c, root, found.process, found.number);

        if (!b.comm || hear_part_sizes(&b, job, spawned))
            mr_log(MR_LOG_WARN, "the numbers of started processes did not arrive: array_of_errcodes is not exact");
    }
    if (first)
        mr_guest_release(found.process);
    tell_spawned(c, root, spawned);
    return err;
}

enum mr_err mr_comm_meet_parent(void)
{
    struct ask ask = {0};
    bool first = mr_comm_world->rank == 0;
    enum mr_err err = MR_SUCCESS;
    char port[MR_PORT_MAX];

    snprintf(port, sizeof(port), "%s", mr_config.parent);
    if (!*port && mr_launch_parent(port, sizeof(port)))
        return MR_SUCCESS;
    unsetenv(MR_PARENT_VARIABLE); /* programs that this one starts have another parent */
    if (first)
        err = put_question(port, &ask);
    first &= !err;
    err = connect_groups(mr_comm_world, 0, first ? &ask : NULL, err, &mr_comm_parent);
    if (!err)
        strcpy(mr_comm_parent->name, "MPI_COMM_PARENT");
    if (!err && first) {
        struct mr_bridge b = bridge_of_roots(mr_comm_world, 0, ask.process, ask.number);

        err = b.comm ? tell_part_sizes(&b) : mr_fail(MR_ERR_NO_MEM, "no memory for the parent");
    }
    if (first)
        mr_guest_release(ask.process);
    return err;
}

void mr_comm_forget_parent(void)
{
    if (mr_comm_parent)
        mr_comm_put(mr_comm_parent);
    mr_comm_parent = NULL;
}
