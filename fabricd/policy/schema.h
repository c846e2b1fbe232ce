/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A format's tables (keys.h) as a JSON schema, draft 7, for the YAML language servers of editors. A file accepted by
 * the format's reader is valid by the schema if its values have the manual's notation. The reverse does not hold: only
 * the reader checks sums, orders and references.
 */
#ifndef FABRICD_SCHEMA_H
#define FABRICD_SCHEMA_H

#include "fabricd/base/keys.h"

/* Appends the schema of a file with such a mapping as its root. */
void schema_text(struct text *out, const struct keys *keys, const char *title);

#endif
