/* SPDX-License-Identifier: BSD-3-Clause */
/* What is other launchers', and not mrrun's: their options, for messages to users who are used to them. Pure. */
#ifndef MRRUN_OTHERS_H
#define MRRUN_OTHERS_H

#include <stdbool.h>
#include <stddef.h>

/* What to do instead of this option, whose name has len characters and no dashes; NULL: no other launcher's. */
const char *others_options(const char *name, size_t len);

/* Whose library of MPI has this name (libmpi.so.40); NULL: it is none, or one of MPICH's interface, as ours is. */
const char *others_library(const char *name);
/* A library of this name is ours, or another one of MPICH's interface. */
bool others_has_our_name(const char *name);

#endif
