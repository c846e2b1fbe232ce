/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's answers, which are YAML for people, as JSON for programs. */
#ifndef FABRICD_JSON_H
#define FABRICD_JSON_H

#include "fabricd/base/text.h"

/*
 * Append the document as JSON, on one line. Plain numbers, true and false are such, all other scalars strings; nothing
 * at all is an empty list. False, and nothing appended, if it is no YAML, or has what JSON has not.
 */
bool json_of_yaml(struct text *out, const char *yaml, size_t len);

#endif
