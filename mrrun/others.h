/* SPDX-License-Identifier: BSD-3-Clause */
/* What is other launchers', and not mrrun's: their options, for messages to users who are used to them. Pure. */
#ifndef MRRUN_OTHERS_H
#define MRRUN_OTHERS_H

#include <stddef.h>

/* What to do instead of this option, whose name has len characters and no dashes; NULL: no other launcher's. */
const char *others_options(const char *name, size_t len);

#endif
