/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsimfab-tsc.so: makes the instructions that read the time stamp counter trap, where the kernel's own setting
 * (PR_SET_TSC) does not. libsimfab.so loads this library only then, so the disassembler costs other programs nothing,
 * and calls these two functions by name, one caller at a time.
 *
 * A patched instruction begins with SFT_TRAP, hlt: a privileged instruction of one byte, which faults like a forbidden
 * reading of the counter (SIGSEGV, SI_KERNEL, at the instruction's address). The other bytes stay, and identify the
 * instruction. Only one byte changes, so a thread at this place sees the old instruction or the new.
 */
#ifndef SIMFAB_TSC_H
#define SIMFAB_TSC_H

#include <stdbool.h>
#include <stdint.h>

#define SFT_TRAP 0xf4

struct sft_report {
    uint32_t patched; /* instructions patched */
    uint32_t refused; /* the kernel refused to write there: they read the real counter */
};

/*
 * Patches objects loaded since the last call, except the kernel's own object and the object with the code LEAVE. Adds
 * to the report.
 */
void sft_patch_loaded(const void *leave, struct sft_report *report);
typedef void sft_patch_loaded_fn(const void *leave, struct sft_report *report);

/* Replaces a byte of code under any page protection, which stays. False: the kernel refuses (errno). */
bool sft_write(void *at, uint8_t byte);
typedef bool sft_write_fn(void *at, uint8_t byte);

#endif
