/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for data that mrrun and its agents receive over a connection: frames and bodies (mrrun/wire), and
 * lists of hosts (mrrun/allocation). Besides not crashing: an accepted body is encoded the same again.
 */
#include <stdlib.h>
#include <string.h>

#include "mrrun/allocation.h"
#include "mrrun/wire.h"

static __attribute__((noinline)) void need(bool ok)
{
    if (!ok)
        abort();
}

static void same(const struct wire_frame *f, struct wire_text *t)
{
    need(t->len == f->len && !memcmp(t->bytes, f->body, f->len));
    free(t->bytes);
    *t = (struct wire_text){0};
}

static void try_bodies(const struct wire_frame *f)
{
    struct wire_text t = {0};
    struct wire_start start;
    struct wire_part part;
    struct wire_rank rank;
    struct wire_run run;

    if (wire_get_start(f, &start)) {
        if (start.version == WIRE_VERSION) {
            wire_put_start(&t, &start);
            same(f, &t);
        }
        wire_clear_start(&start);
    }
    if (wire_get_part(f, &part)) {
        wire_put_part(&t, &part);
        same(f, &t);
        wire_clear_part(&part);
    }
    if (wire_get_rank(f, &rank)) {
        wire_put_rank(&t, &rank);
        same(f, &t);
        wire_clear_rank(&rank);
    }
    if (wire_get_run(f, &run)) {
        wire_put_run(&t, &run);
        same(f, &t);
    }
}

static int count(void *arg, const char *host, int slots)
{
    need(*host && slots > 0);
    return 0;
}

static void try_lists(const char *bytes, size_t len)
{
    char *text = malloc(len + 1), *second, why[256];

    need(text);
    memcpy(text, bytes, len);
    text[len] = '\0';
    second = strchr(text, '\n');
    if (second)
        *second++ = '\0';
    need(allocation_of_slurm(text, second, count, NULL, why, sizeof(why)) != 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* an exact copy, so that reading past the end is detected */
    struct wire_frame f;
    size_t wanted;

    need(copy);
    memcpy(copy, data, size);
    ssize_t n = wire_decode(copy, size, &f, &wanted);
    need(n <= (ssize_t)size && (n != 0 || wanted > size));
    if (n > 0)
        try_bodies(&f);
    try_bodies(&(struct wire_frame){.kind = WIRE_START, .body = copy, .len = size});
    if (size < 2000)
        try_lists(copy, size);
    free(copy);
    return 0;
}
