/* SPDX-License-Identifier: BSD-3-Clause */
/* The inputs of the cost model, and the thresholds by arithmetic: see model.h. */
#include "libmrmpi/base/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

#define TEXT_MAX 4096 /* of a file */

struct mr_model mr_model;

#define AT(field) offsetof(struct mr_model, field)

/* Bounds: no threshold exceeds 32 bits. */
const struct mr_model_input mr_model_inputs[MR_MODEL_INPUTS] = {
    {"copy_mbps", "MB/s", "that a processor copies", 12500, 100, 100000, AT(copy_mbps)},
    {"register_ns", "ns", "registering up to 128 KiB of memory with one adapter", 10500, 0, 10000000, AT(register_ns)},
    {"register_byte_ps", "ps", "registering each further byte", 15, 0, 100000, AT(register_byte_ps)},
    {"trip_ns", "ns", "from posting a short packet to its confirmation", 1750, 0, 10000000, AT(trip_ns)},
    {"post_ns", "ns", "posting a request, and taking its completion", 375, 0, 1000000, AT(post_ns)},
    {"page_ns", "ns", "making a page of memory shared inside a host, at its first use", 2000, 0, 1000000, AT(page_ns)},
};

/* ---- thresholds -------------------------------------------------------------------------------------------------- */

static uint32_t pages_copied(uint32_t mbps, uint64_t ns)
{
    uint64_t bytes = mbps * ns / 1000 / MR_MODEL_PAGE * MR_MODEL_PAGE;

    return bytes > MR_MODEL_PAGE ? (uint32_t)bytes : MR_MODEL_PAGE;
}

static void derive(struct mr_model *m)
{
    uint64_t trip = m->trip_ns, fetch = trip / 2 + trip; /* an offer's way, and a read's round trip */

    m->busy_copy_mbps = m->copy_mbps * 4 / 5;
    m->outrun_mbps = m->copy_mbps * 8;
    m->gap_ns = (uint32_t)(m->post_ns + fetch);
    m->offer_at = pages_copied(m->copy_mbps, m->post_ns);
    m->rtr_prefix = pages_copied(m->copy_mbps, trip / 2);
    m->prefix = pages_copied(m->busy_copy_mbps, trip);
    m->zsend_at = pages_copied(m->copy_mbps, m->post_ns + trip);
    m->shallow = 2 * m->zsend_at;
    m->burst_at = pages_copied(m->copy_mbps, 3 * trip);
    m->register_at = pages_copied(m->copy_mbps, m->register_ns);
    m->read_at = pages_copied(m->copy_mbps, m->register_ns + fetch);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const struct mr_model_input *find_input(const char *name, size_t len)
{
    for (int i = 0; i < MR_MODEL_INPUTS; i++)
        if (strlen(mr_model_inputs[i].name) == len && !memcmp(mr_model_inputs[i].name, name, len))
            return &mr_model_inputs[i];
    return NULL;
}

static void list_inputs(char *why, size_t size)
{
    for (int i = 0; i < MR_MODEL_INPUTS; i++) {
        size_t used = strlen(why);

        snprintf(why + used, size - used, "%s%s", i ? ", " : "", mr_model_inputs[i].name);
    }
}

/* One NAME=NUMBER of len bytes. */
static bool take_input(struct mr_model *m, const char *text, size_t len, char *why, size_t size)
{
    const char *eq = memchr(text, '=', len);
    size_t name_len = eq ? (size_t)(eq - text) : len;
    const struct mr_model_input *in = find_input(text, name_len);
    char number[16] = "", *end = number;
    unsigned long value = 0;

    if (!in) {
        snprintf(why, size, "\"%.*s\" is not a cost; costs are ", (int)name_len, text);
        list_inputs(why, size);
        return false;
    }
    if (eq && len - name_len - 1 < sizeof number) {
        memcpy(number, eq + 1, len - name_len - 1);
        value = strtoul(number, &end, 10);
    }
    if (*number < '0' || *number > '9' || *end || value < in->min || value > in->max) {
        snprintf(why, size, "%.*s: %s must be a whole number of %s from %u to %u", (int)len, text, in->name, in->unit,
                 in->min, in->max);
        return false;
    }
    *(uint32_t *)((char *)m + in->offset) = (uint32_t)value;
    return true;
}

bool mr_model_parse(struct mr_model *m, const char *text, char *why, size_t size)
{
    static const char between[] = ", \t\r\n";

    *m = (struct mr_model){0};
    for (int i = 0; i < MR_MODEL_INPUTS; i++)
        *(uint32_t *)((char *)m + mr_model_inputs[i].offset) = mr_model_inputs[i].standard;
    for (text += strspn(text, between); *text; text += strspn(text, between)) {
        size_t len = *text == '#' ? strcspn(text, "\n") : strcspn(text, ", \t\r\n#");

        if (*text != '#' && !take_input(m, text, len, why, size))
            return false;
        text += len;
    }
    derive(m);
    return true;
}

/* text: size bytes. */
static int read_file(const char *name, char *text, size_t size)
{
    FILE *f = fopen(name, "re");
    size_t len;
    int err;

    if (!f)
        return -errno;
    len = fread(text, 1, size, f);
    err = ferror(f) ? -EIO : len == size ? -EFBIG : 0;
    fclose(f);
    text[err ? 0 : len] = '\0';
    return err;
}

int mr_model_init(char *why, size_t size)
{
    char text[TEXT_MAX];
    const char *setting = mr_config.model;
    int err = *setting == '@' ? read_file(setting + 1, text, sizeof text) : 0;

    if (err) {
        snprintf(why, size, "%s cannot be read: %s", setting + 1, strerror(-err));
        return err;
    }
    if (!mr_model_parse(&mr_model, *setting == '@' ? text : setting, why, size))
        return -EINVAL;
    mr_stat_set(MR_STAT_MODEL_COPY_MBPS, mr_model.copy_mbps);
    mr_stat_set(MR_STAT_MODEL_REGISTER_NS, mr_model.register_ns);
    mr_stat_set(MR_STAT_MODEL_TRIP_NS, mr_model.trip_ns);
    mr_stat_set(MR_STAT_MODEL_POST_NS, mr_model.post_ns);
    mr_stat_set(MR_STAT_MODEL_PAGE_NS, mr_model.page_ns);
    return 0;
}
