/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of a launcher's client; detect.c picks a client at init. Private to the folder. Every function returns 0 or
 * a negative errno; the function that finds a fault describes it with mr_launch_fail().
 */
#ifndef MRMPI_LAUNCH_BACKEND_H
#define MRMPI_LAUNCH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/launch/nodemap.h"

/* Filled by a backend's init; launch.c frees it after finalize. */
struct mr_launch_world {
    int rank, size;
    int appnum; /* number of the part of the launcher's command line; negative: not known */
    struct mr_nodemap map;
    char *job_id;    /* never NULL */
    char *space;     /* never NULL */
    char *node_name; /* never NULL */
};

struct mr_launch_order;
struct mr_launch_part;

struct mr_launch_backend {
    const char *name; /* as in MRMPI_LAUNCHER */
    int (*init)(struct mr_launch_world *world);
    int (*put)(const char *key, const void *data, size_t len);
    int (*fence_begin)(void);       /* publishes staged values, and reports this rank's arrival */
    int (*fence_end)(bool patient); /* patient: wait for the others; else -EAGAIN while some are missing */
    int (*get)(int rank, const char *key, void *buf, size_t cap, size_t *len);
    /* as mr_launch_publish_name and so on; NULL: not supported */
    int (*publish_name)(const char *name, const char *value);
    int (*look_up_name)(const char *name, char *value, size_t cap);
    int (*unpublish_name)(const char *name);
    int (*universe)(void);     /* as mr_launch_universe; NULL: not known */
    int (*parts)(int **ranks); /* as mr_launch_parts; NULL: not known */
    /* Of a checked order; 0: the launcher starts the job. NULL, -EOPNOTSUPP: the launcher cannot, so mrrun starts jobs
     */
    int (*start)(const struct mr_launch_order *order);
    int (*parent)(char *port, size_t cap); /* as mr_launch_parent; NULL: the launcher does not say */
    int (*failed)(void);
    __attribute__((noreturn)) void (*abort)(int code, const char *why); /* the status is mr_launch_status(code) */
    int (*finalize)(void);
};

/* The status of a process whose job ends with this code. A status has 8 bits: a code other than 0 does not become 0. */
static inline int mr_launch_status(int code)
{
    return code && !(code & 0xff) ? 1 : code & 0xff;
}

/*
 * Adds to *sum_ms the real time since the last call, which is kept in *clock_ms (0: none), but a second at most: the
 * process may have been stopped.
 */
void mr_launch_count_ms(int64_t *clock_ms, int64_t *sum_ms);

/* Keeps the text for mr_launch_why() of this thread; returns err. */
int mr_launch_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *mr_launch_fault(void); /* of this thread since the last clear; NULL: none */
void mr_launch_clear_fault(void);

/* ---- started.c ---- */
int mr_launch_check(const struct mr_launch_order *order); /* 0, or what is wrong with the order */
/* Hydra and Open MPI's mpirun end the whole job where a program cannot be run: looks for them, unless hosts are named.
 */
int mr_launch_check_programs(const struct mr_launch_order *order);
/*
 * At the end of this process. Waits for mrruns, unless they go on alone: other launchers than mrrun end what a rank
 * leaves behind, or lose the output. alone: there is no launcher.
 */
void mr_launch_started_leave(bool alone);
int mr_launch_start_mrrun(const struct mr_launch_order *order);
int mr_launch_processors(void); /* that this process may run on */
/* The program of a part: in the first of its directories that has the program, else as it is. */
const char *mr_launch_program(const struct mr_launch_part *p, char *path, size_t cap);
/* ---- ends.c ---- */
void mr_launch_forget_ends(void);
/* ---- guests.c ---- */
struct mr_launch;
void mr_guests_begin(const struct mr_launch *launch);
void mr_guests_end(void);

extern const struct mr_launch_backend mr_launch_pmix;
extern const struct mr_launch_backend mr_launch_pmi1;
extern const struct mr_launch_backend mr_launch_pmi2;
extern const struct mr_launch_backend mr_launch_singleton;

#endif
