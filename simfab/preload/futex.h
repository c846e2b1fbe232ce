/* SPDX-License-Identifier: BSD-3-Clause */
/* The futexes of OpenMP's runtime. */
#ifndef SIMFAB_PRELOAD_FUTEX_H
#define SIMFAB_PRELOAD_FUTEX_H

/*
 * If the program has OpenMP's runtime, its futexes are seen in this thread from now on; look whether it has.
 */
void sfp_futex_trap(void);
void sfp_futex_look(void);

#endif
