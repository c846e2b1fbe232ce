/* SPDX-License-Identifier: BSD-3-Clause */
/* A stub gives way to a definition of the test or of a source that the test links. */
#ifndef TESTS_STUBS_STUB_H
#define TESTS_STUBS_STUB_H

#define STUB __attribute__((weak))

#endif
