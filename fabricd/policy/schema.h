/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A format's tables (keys.h) as a JSON schema, draft 7, for the YAML language servers of editors. A file that the
 * format's reader accepts is valid by the schema if its values are written as the manual writes them; the reverse does
 * not hold: sums, orders and references only the reader checks.
 */
#ifndef FABRICD_SCHEMA_H
#define FABRICD_SCHEMA_H

#include "fabricd/base/keys.h"

/* Append the schema of a file whose root is such a mapping. */
void schema_text(struct text *out, const struct keys *keys, const char *title);

#endif
