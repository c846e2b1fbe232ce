/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads end waits. */
#ifndef SIMFAB_PRELOAD_CALLERS_H
#define SIMFAB_PRELOAD_CALLERS_H

#include <stdbool.h>

/*
 * Kinds of threads that have posted or signalled an object so far, by its address. While only actors do so,
 * the engine need not ask the kernel about the helper threads during a wait for the object.
 */
enum sfp_callers { SFP_CALLERS_UNKNOWN = 0, SFP_CALLERS_ACTORS = 1, SFP_CALLERS_HELPERS = 2 };
void sfp_callers_note(const void *what);           /* this thread posts or signals */
enum sfp_callers sfp_callers_of(const void *what); /* HELPERS: a helper has called at least once */
void sfp_callers_doubt(bool begins);               /* a guest may become a helper that works with actors; no more */
void sfp_callers_after_fork(void);
void sfp_callers_mix(void);                /* an actor becomes a helper that works with other actors */
bool sfp_helpers_call(const void *what);   /* true: a helper may call, as not only actors have called so far */
void sfp_callers_forget(const void *what); /* a new object begins there */

#endif
