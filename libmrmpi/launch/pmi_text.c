/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading and writing the text of PMI's messages. */
#include "libmrmpi/launch/pmi_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int copy_value(const char *text, size_t len, char *value, size_t cap)
{
    if (len >= cap)
        return -EMSGSIZE;
    memcpy(value, text, len);
    value[len] = '\0';
    return 0;
}

static bool starts_with_name(const char *text, const char *name)
{
    size_t len = strlen(name);

    return !strncmp(text, name, len) && text[len] == '=';
}

int mr_pmi1_value(const char *message, const char *name, char *value, size_t cap)
{
    static const char blanks[] = " \t\r\n";

    for (const char *p = message + strspn(message, blanks); *p; p += strspn(p, blanks)) {
        size_t len = strcspn(p, blanks);

        if (starts_with_name(p, name)) {
            size_t skip = strlen(name) + 1;
            return copy_value(p + skip, len - skip, value, cap);
        }
        p += len;
    }
    return -ENOENT;
}

/* The end of a field: a semicolon that is not doubled, or the end of the text. */
static const char *field_end(const char *p)
{
    for (; *p; p++) {
        if (*p != ';')
            continue;
        if (p[1] != ';')
            return p;
        p++;
    }
    return p;
}

static int copy_unescaped(const char *p, const char *end, char *value, size_t cap)
{
    size_t n = 0;

    for (; p < end; p++) {
        if (n + 1 >= cap)
            return -EMSGSIZE;
        value[n++] = *p;
        if (*p == ';')
            p++;
    }
    if (!cap)
        return -EMSGSIZE;
    value[n] = '\0';
    return 0;
}

int mr_pmi2_value(const char *message, const char *name, char *value, size_t cap)
{
    for (const char *p = message, *end; *p; p = *end ? end + 1 : end) {
        end = field_end(p);
        if (starts_with_name(p, name))
            return copy_unescaped(p + strlen(name) + 1, end, value, cap);
    }
    return -ENOENT;
}

bool mr_pmi_number(const char *text, long long min, long long max, long long *out)
{
    char *end;

    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (isspace((unsigned char)*text) || end == text || *end || errno || n < min || n > max)
        return false;
    *out = n;
    return true;
}

int mr_pmi2_escape(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    for (; *text; text++) {
        if (n + 2 >= cap)
            return -EMSGSIZE;
        out[n++] = *text;
        if (*text == ';')
            out[n++] = ';';
    }
    out[n] = '\0';
    return (int)n;
}

/* Launchers fill the six characters up on either side. */
int mr_pmi2_frame_length(const char header[MR_PMI_FRAME_HEADER])
{
    int i = 0, n = 0, digits = 0;

    while (i < MR_PMI_FRAME_HEADER && header[i] == ' ')
        i++;
    for (; i < MR_PMI_FRAME_HEADER && isdigit((unsigned char)header[i]); i++, digits++)
        n = n * 10 + (header[i] - '0');
    while (i < MR_PMI_FRAME_HEADER && header[i] == ' ')
        i++;
    return digits && i == MR_PMI_FRAME_HEADER && n > 0 && n <= MR_PMI_MESSAGE_MAX ? n : -EPROTO;
}

/* ---- values ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t mr_pmi_encoded_length(size_t len)
{
    return len / 3 * 4 + (len % 3 ? len % 3 + 1 : 0);
}

void mr_pmi_encode(const void *data, size_t len, char *out)
{
    const uint8_t *in = data;

    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t v = in[i] << 16 | (left > 1 ? in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);

        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        if (left > 1)
            *out++ = alphabet[v >> 6 & 63];
        if (left > 2)
            *out++ = alphabet[v & 63];
    }
    *out = '\0';
}

static int digit_value(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

int mr_pmi_decode(const char *text, size_t n, void *data, size_t len)
{
    uint8_t *out = data;

    if (n != mr_pmi_encoded_length(len))
        return -EPROTO;
    for (size_t i = 0, done = 0; i < n; i += 4) {
        uint32_t v = 0;

        for (size_t k = 0; k < 4; k++) {
            int d = i + k < n ? digit_value(text[i + k]) : 0;
            if (d < 0)
                return -EPROTO;
            v = v << 6 | (uint32_t)d;
        }
        for (int shift = 16; shift >= 0 && done < len; shift -= 8)
            out[done++] = (uint8_t)(v >> shift);
    }
    return 0;
}

void mr_pmi_quote(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    while (*text && n + 1 < cap) {
        char c = *text++;
        if (c == '\n' && !*text)
            break;
        out[n++] = isprint((unsigned char)c) ? c : '?';
    }
    if (cap)
        out[n] = '\0';
}
