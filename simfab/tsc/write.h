/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two methods to write a byte of code; sft_write (tsc.h) takes the first that the kernel allows. False: refused
 * (errno).
 */
#ifndef SIMFAB_TSC_WRITE_H
#define SIMFAB_TSC_WRITE_H

#include <stdbool.h>
#include <stdint.h>

bool write_forced(void *at, uint8_t byte);
bool write_unprotected(void *at, uint8_t byte);

#endif
