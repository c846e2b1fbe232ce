/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's answers, YAML for people, as JSON for programs. */
#ifndef FABRICD_JSON_H
#define FABRICD_JSON_H

#include "fabricd/base/text.h"

/*
 * Appends the document as JSON, on one line. Plain numbers, true and false are such, all other scalars strings; an
 * empty document is an empty list. False, and nothing appended, if the text is no YAML, or has no JSON form.
 */
bool json_of_yaml(struct text *out, const char *yaml, size_t len);

#endif
