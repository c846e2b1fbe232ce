/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests of actors, on the socket of the process: one at a time. */
#include "simfab/preload/call.h"

#include <errno.h>
#include <pthread.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"

static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t call_seq;

int sfp_call(enum sf_op op, const void *body, size_t body_len, void *rep, size_t rep_size, size_t *rep_len, int *fd)
{
    struct sf_actor *a = sfp_enter();
    struct sf_req req = {.op = op, .body_bytes = (uint32_t)body_len};
    int err;

    if (!a)
        return errno;
    if (body_len > SF_MSG_MAX - sizeof req)
        return EMSGSIZE;
    req.actor = (uint32_t)(a - sfp_proc.arena->actor);
    req.stamp_ps = sfp_now(a);
    pthread_mutex_lock(&call_lock);
    req.seq = ++call_seq;
    err = sfp_proc.dead ? EIO : sfp_converse(sfp_proc.sock, &req, body, rep, rep_size, rep_len, fd);
    pthread_mutex_unlock(&call_lock);
    if (err == EPIPE || err == ECONNRESET) {
        sfp_proc.dead = true;
        err = EIO;
    }
    return err;
}

void sfp_calls_hold(void)
{
    pthread_mutex_lock(&call_lock);
}

void sfp_calls_release(void)
{
    pthread_mutex_unlock(&call_lock);
}

void sfp_calls_renew(void)
{
    pthread_mutex_init(&call_lock, NULL);
}
