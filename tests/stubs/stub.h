/* SPDX-License-Identifier: BSD-3-Clause */
/* A stub gives way to a definition of the test or of a source that the test links. */
#ifndef TESTS_STUBS_STUB_H
#define TESTS_STUBS_STUB_H

#include <stdint.h>

#define STUB __attribute__((weak))

extern uint64_t stub_clock_ns; /* the time by the stub of mr_clock_ns(); at first 1, as 0 often means "never" */

#endif
