/* SPDX-License-Identifier: BSD-3-Clause */
/* Options and libraries of other launchers, for messages to their users. Pure. */
#ifndef MRRUN_OTHERS_H
#define MRRUN_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

/* The replacement of this option, whose name has len characters and no dashes; NULL: no other launcher's option. */
const char *others_options(const char *name, size_t len);

/* The MPI of a library with this name (libmpi.so.40); NULL: no MPI's, or with an interface of ours. */
const char *others_library(const char *name);
/* A library of this name (also libmpi.so.12.2.2) is ours, or another one with one of our interfaces. */
bool others_has_our_name(const char *name);

#endif
