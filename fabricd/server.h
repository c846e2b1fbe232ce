/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UNIX socket: connections, their credentials, and sending. The server does not interpret messages: it hands them
 * to functions given at the start, and calls nothing above.
 *
 * The server owns its clients. A client that does not read, or breaks the protocol, is marked (drop) and freed by the
 * next server_free_dropped, which only functions may call that hold no client and walk no list of clients. Nothing here
 * blocks. The main thread owns everything.
 */
#ifndef FABRICD_SERVER_H
#define FABRICD_SERVER_H

#include "fabricd/base/conf.h"
#include "fabricd/readers.h"
#include "fabricd/fabric/sa.h"
#include "fabricd/subscribers.h"

#include <sys/socket.h>

struct server;

/* A connection. Each file has its part: the first is the server's. */
struct client {
    struct client *next;
    struct server *server;
    int fd;
    sd_event_source *source;
    uint64_t id; /* never used twice */
    struct ucred cred;
    bool drop;             /* to be freed by server_free_dropped */
    uint32_t task_seq;     /* of the request waiting for a task */
    unsigned asking;       /* unanswered questions for places and paths */
    bool depends_on_paths; /* has asked for paths (disjoint.c) */
    struct held *held;     /* the oldest waiting message, and all after it */

    struct subscriber subscriber;
    struct reader reader;
};

struct server_events {
    void (*message)(void *arg, struct client *c, const void *msg, size_t len); /* unchecked */
    void (*left)(void *arg, const struct client *c); /* c is no longer in the list, and freed afterwards */
};

/*
 * Listens on the socket passed by systemd, or on path. conf must live as long; its clients_max is lowered if the limit
 * of open files requires it. NULL with errno set (and logged).
 */
struct server *server_start(sd_event *event, struct conf *conf, const char *path, const struct server_events *events,
                            void *arg);
void server_stop(struct server *s);

/* The list of clients, by next. */
struct client *server_clients(const struct server *s);
unsigned server_num_clients(const struct server *s);
void server_free_dropped(struct server *s);

/*
 * From within the message's event: keep the message, and read no other of this client, until server_go_on or for a
 * bounded time. Then it is handed over again, and cannot be held any more: false.
 */
bool server_hold(struct client *c, const void *msg, size_t len);
/* Hands waiting messages over again, for clients that ready accepts. May free clients. */
void server_go_on(struct server *s, bool (*ready)(void *arg, struct client *c, const void *msg), void *arg);

/* True if the client may give orders. */
bool server_is_privileged(const struct client *c);

/* A client that does not read its messages is marked to be dropped. */
void server_send(struct client *c, const void *msg, size_t len);
void server_send_done(struct client *c, uint32_t seq, int status);
void server_send_text(struct client *c, uint32_t seq, const char *text, size_t len);
void server_send_place(struct client *c, uint32_t seq, const struct sa_place *place);

/* NULL: the client has left. */
struct client *server_client(const struct server *s, uint64_t id);

/* To the client that asked for a task, if it still exists. */
void server_progress(struct server *s, uint64_t client, const char *text, size_t len);
/* Only if the client has read all messages so far. */
void server_count(struct server *s, uint64_t client, enum fd_counted what, unsigned done, unsigned of);
void server_found(struct server *s, uint64_t client, const char *text, size_t len);
void server_done(struct server *s, uint64_t client, int status);

/* To the client that asked for the place, if it still exists. A client that does not read is dropped later. */
void server_place(struct server *s, struct sa_asker who, const struct sa_place *place);

#endif
