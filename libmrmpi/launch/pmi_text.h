/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi_text: the syntax of PMI's messages. Pure functions; input from a launcher is read within its bounds.
 *
 * PMI-1 is lines of "name=value" separated by blanks; PMI-2 is frames (six characters of length, then the text) of
 * "name=value;", in which a semicolon inside a value is doubled. Both begin with cmd=. Values of keys are text, so ours
 * are encoded (base64 for URLs: letters, digits, - and _) and cut into parts within the launcher's limit.
 */
#ifndef MRMPI_LAUNCH_PMI_TEXT_H
#define MRMPI_LAUNCH_PMI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { MR_PMI_FRAME_HEADER = 6, MR_PMI_MESSAGE_MAX = 65536 };

/* The value of a name in a message of PMI-1 or PMI-2. 0, -ENOENT, or -EMSGSIZE: longer than cap, with its end. */
int mr_pmi1_value(const char *message, const char *name, char *value, size_t cap);
int mr_pmi2_value(const char *message, const char *name, char *value, size_t cap);

/* A whole number and nothing else, within bounds. */
bool mr_pmi_number(const char *text, long long min, long long max, long long *out);

/* Doubles the semicolons. The length, or -EMSGSIZE. */
int mr_pmi2_escape(const char *text, char *out, size_t cap);

/* The length that a frame's header tells, or -EPROTO; 1 to MR_PMI_MESSAGE_MAX. */
int mr_pmi2_frame_length(const char header[MR_PMI_FRAME_HEADER]);

/* How many characters len bytes take. */
size_t mr_pmi_encoded_length(size_t len);
/* Writes them and an end; out has room for one more than mr_pmi_encoded_length(len). */
void mr_pmi_encode(const void *data, size_t len, char *out);
/* len bytes out of n characters; -EPROTO if these are not an encoding of len bytes. */
int mr_pmi_decode(const char *text, size_t n, void *data, size_t len);

/* A launcher's words for a message of ours: one line, printable, short. */
void mr_pmi_quote(const char *text, char *out, size_t cap);

#endif
