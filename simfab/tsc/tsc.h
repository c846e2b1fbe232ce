/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsimfab-tsc.so: makes the instructions that read the time stamp counter trap, where the kernel's own setting
 * (PR_SET_TSC) does not. libsimfab.so loads it only then, so that the disassembler costs nobody else anything; it calls
 * these two by name, one caller at a time.
 *
 * An instruction that was patched begins with SFT_TRAP, hlt: a privileged instruction of one byte, which faults as a
 * counter that may not be read does (SIGSEGV, SI_KERNEL, at the instruction's address). The other bytes stay, and tell
 * what it was. One byte is all that changes: a thread that is just there sees the old instruction or the new one.
 */
#ifndef SIMFAB_TSC_H
#define SIMFAB_TSC_H

#include <stdbool.h>
#include <stdint.h>

#define SFT_TRAP 0xf4

struct sft_report {
    uint32_t patched; /* instructions that trap now */
    uint32_t refused; /* the kernel let nobody write there: they read the real counter */
};

/* Patch what was loaded since the last call, but the kernel's own object and the one with the code LEAVE. Adds to the
 * report. */
void sft_patch_loaded(const void *leave, struct sft_report *report);
typedef void sft_patch_loaded_fn(const void *leave, struct sft_report *report);

/* Replace a byte of code, whatever its page's protection, which stays. False: the kernel refuses (errno). */
bool sft_write(void *at, uint8_t byte);
typedef bool sft_write_fn(void *at, uint8_t byte);

#endif
