/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions that read the time stamp counter, in machine code. Pure: from bytes to places. */
#ifndef SIMFAB_TSC_CODE_H
#define SIMFAB_TSC_CODE_H

#include <stdint.h>

/*
 * The first place in [FROM, TO) with the bytes of rdtsc or rdtscp; TO: none. The bytes may be part of another
 * instruction.
 */
const uint8_t *code_candidate(const uint8_t *from, const uint8_t *to);

/*
 * *AT is the beginning of an instruction, not after CANDIDATE. Returns the beginning of the instruction that reads the
 * counter and has CANDIDATE's bytes, including its prefixes; NULL: the bytes are part of another instruction. *AT
 * becomes the last beginning found, the start for the function's next candidate.
 */
const uint8_t *code_instruction(const uint8_t **at, const uint8_t *to, const uint8_t *candidate);

#endif
