/* SPDX-License-Identifier: BSD-3-Clause */
/* Where we are, and talking to the engine. */
#ifndef SIMFAB_PRELOAD_CONNECT_H
#define SIMFAB_PRELOAD_CONNECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/proto.h"

/*
 * True while this thread reads the library's settings: an allocator or a sanitizer that reads the clock meanwhile must
 * not start again, and gets the real clock.
 */
extern __thread bool sfp_starting;

/* True inside a simulated host. */
bool sfp_enabled(void);
const char *sfp_host(void); /* SIM_HOST, "" outside */
const char *sfp_dir(void);  /* SIMFAB_DIR, "" outside */

/*
 * Opens a connection of the given kind (enum sf_conn_kind) and exchanges hello and welcome. Returns a close-on-exec
 * descriptor owned by the caller, or -1 with errno (ECONNREFUSED, ENOENT: no engine; else the engine's answer). welcome
 * and fds (the descriptors of the welcome, -1 where none) may be NULL.
 */
#define SFP_FDS 3
int sfp_connect(enum sf_conn_kind kind, uint32_t arg, struct sf_welcome *welcome, int fds[SFP_FDS]);

/*
 * Ask a stateless question (SF_OP_SYSFS, ...) on a connection of its own. Returns 0 and the answer's body in memory
 * that the caller frees (never NULL, a zero byte follows the body), or an errno.
 */
int sfp_query(enum sf_op op, const void *req, size_t req_len, void **rep, size_t *rep_len);

/* One request and its answer on a connection; see sfp_call. rep_len or fd may be NULL. 0 or an errno. */
int sfp_converse(int fd, struct sf_req *req, const void *body, void *rep, size_t rep_size, size_t *rep_len,
                 int *out_fd);

/* Lock a mutex of libsimfab's own, held for a moment: not asleep, as an actor that sleeps without a word loses its
 * turn. */
void sfp_lock_awake(pthread_mutex_t *mutex);

#endif
