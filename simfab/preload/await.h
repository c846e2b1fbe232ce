/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for a call by another thread of this process. */
#ifndef SIMFAB_PRELOAD_AWAIT_H
#define SIMFAB_PRELOAD_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * An actor leaves RUNNING until called for WHAT (any
 * address known to both threads), and continues in its turn, not before the caller's time. Between begin and end, check
 * before each sfp_await whether the wait is over. False from begin: wait in the kernel.
 */
bool sfp_await_begin(const void *what);
/* LATE: the time is until_ps; ALONE: there is no thread left to wait for. */
enum sfp_awaited { SFP_CALLED, SFP_NOT_CALLED, SFP_INTERRUPTED, SFP_LATE, SFP_ALONE };
/* helpers: threads that are no actors may call. until_ps: in virtual time, 0 without limit. */
enum sfp_awaited sfp_await(bool helpers, uint64_t until_ps);
void sfp_await_end(bool pass_on);                /* pass_on: a call of this thread goes to the next waiter */
bool sfp_await_call(const void *what, bool all); /* false: no thread waits for `what` */
/* In calls that are cancellation points, before asking whether the wait is over; not while holding anything. */
void sfp_await_lets_cancel(void);
uint32_t sfp_await_cancels(void); /* threads of this process cancelled so far */
void sfp_await_after_fork(void);
/* True if a thread was called for WHAT but has not arrived yet. That thread comes first. */
bool sfp_await_is_due(const void *what);
/*
 * Call before taking a lock, even a free lock. A thread that takes locks again and again, without a call of verbs or a
 * wait, may be checking for the work of others: the others get their turns.
 */
void sfp_await_ask(void);

#endif
