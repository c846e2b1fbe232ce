/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An answer of libpmix: libpmix's thread gives the answer, and a thread of the library waits for a bounded time.
 * Private to the folder.
 *
 * Both threads hold a reference. The waiter frees an answer that has come. If either thread could free the answer, the
 * layout of the program's heap, and with it the pages of its buffers, would differ from run to run. libpmix's thread
 * frees an answer that comes after the waiter has given up.
 *
 * The wait itself has no limit, because a limit would end by the clock of simulated hosts, without the launcher's time.
 * A thread of this file, the watchdog, counts the time of all waiters in ticks of a timer and wakes each waiter at its
 * limit. Without waiters no timer is set. Only time in which this process runs counts: a stopped job has time left when
 * the job continues.
 */
#ifndef MRMPI_LAUNCH_PMIX_ANSWER_H
#define MRMPI_LAUNCH_PMIX_ANSWER_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pmix.h>

struct mr_answer {
    _Atomic int holders;
    _Atomic bool given;
    pmix_status_t status;
    pmix_value_t value;  /* a copy; PMIX_UNDEF: none */
    pmix_info_t info[2]; /* of the question: libpmix may read them as long as the answer is due */
    size_t num_info;
    sem_t news;
    struct mr_answer *next; /* among those that are waited for */
    int64_t left_ms;
};

/* Before the process opens adapters, so that simulated hosts do not take the watchdog for one of its actors. */
void mr_answer_start_watchdog(void);

/* NULL: no memory. */
struct mr_answer *mr_answer_new(void);
void mr_answer_release(struct mr_answer *a); /* NULL: does nothing */
/* On libpmix's thread, once: lets go of its reference. value: copied; may be NULL. */
void mr_answer_give(struct mr_answer *a, pmix_status_t status, const pmix_value_t *value);
/* True: the answer is there. False: so much time is over, or mr_answer_wake_all(). INT64_MAX: no limit. */
bool mr_answer_wait(struct mr_answer *a, int64_t ms);
void mr_answer_wake_all(void);

/*
 * Has a thread of its own make a call of libpmix that has no other form, and hands over what the call returns. The
 * thread blocks all signals.
 */
int mr_answer_from_call(struct mr_answer *a, pmix_status_t (*call)(void));

#endif
