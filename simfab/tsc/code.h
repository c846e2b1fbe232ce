/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions that read the time stamp counter, in machine code. Pure: from bytes to places. */
#ifndef SIMFAB_TSC_CODE_H
#define SIMFAB_TSC_CODE_H

#include <stdint.h>

/* The first place at or after FROM, before TO, whose bytes are rdtsc's or rdtscp's; TO if there is none. They may be
   part of something else. */
const uint8_t *code_candidate(const uint8_t *from, const uint8_t *to);

/*
 * *AT is where an instruction begins, not after CANDIDATE. Where the instruction begins that reads the counter and has
 * CANDIDATE's bytes (its prefixes come before those); NULL: they are something else's. *AT becomes the last beginning
 * found on the way, from which the next candidate of the function is sought.
 */
const uint8_t *code_instruction(const uint8_t **at, const uint8_t *to, const uint8_t *candidate);

#endif
