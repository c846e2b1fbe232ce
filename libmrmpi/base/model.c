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

/*
 * Bounds of settings: no threshold exceeds 32 bits. Bounds of measurements: memory of an old machine, and of the
 * fastest known; adapters of 2004, soft-RoCE, and a wire without a switch.
 */
const struct mr_model_input mr_model_inputs[MR_MODEL_INPUTS] = {
    {"copy_mbps", "MB/s", "that a processor copies", 12500, 100, 100000, 1000, 60000, AT(copy_mbps)},
    {"register_ns", "ns", "registering up to 128 KiB of memory with one adapter", 10500, 0, 10000000, 1000, 250000,
     AT(register_ns)},
    {"register_byte_ps", "ps", "registering each further byte", 15, 0, 100000, 1, 500, AT(register_byte_ps)},
    {"trip_ns", "ns", "from posting a short packet to its confirmation", 1750, 0, 10000000, 400, 100000, AT(trip_ns)},
    {"post_ns", "ns", "posting a request, and taking its completion", 375, 0, 1000000, 20, 10000, AT(post_ns)},
    {"page_ns", "ns", "making a page of memory shared inside a host, at its first use", 2000, 0, 1000000, 100, 100000,
     AT(page_ns)},
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

static uint32_t *input_of(struct mr_model *m, const struct mr_model_input *in)
{
    return (uint32_t *)((char *)m + in->offset);
}

/* ---- measurements ------------------------------------------------------------------------------------------------ */

static bool confirms_default(const struct mr_model_input *in, uint64_t measured)
{
    return 4 * measured >= 3ull * in->standard && 4 * measured <= 5ull * in->standard;
}

bool mr_model_take(struct mr_model *m, enum mr_model_cost cost, uint64_t measured)
{
    const struct mr_model_input *in = &mr_model_inputs[cost];

    if (m->origin[cost] == MR_MODEL_SET || measured < in->least || measured > in->most)
        return false;
    *input_of(m, in) = confirms_default(in, measured) ? in->standard : (uint32_t)measured;
    m->origin[cost] = MR_MODEL_MEASURED;
    derive(m);
    return true;
}

const char *mr_model_origin(const struct mr_model *m, enum mr_model_cost cost)
{
    static const char *const words[] = {"default", "measured", "set"};

    return words[m->origin[cost]];
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
    *input_of(m, in) = (uint32_t)value;
    m->origin[in - mr_model_inputs] = MR_MODEL_SET;
    return true;
}

bool mr_model_parse(struct mr_model *m, const char *text, char *why, size_t size)
{
    static const char between[] = ", \t\r\n";

    *m = (struct mr_model){0};
    for (int i = 0; i < MR_MODEL_INPUTS; i++)
        *input_of(m, &mr_model_inputs[i]) = mr_model_inputs[i].standard;
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

static void count_inputs(void)
{
    mr_stat_set(MR_STAT_MODEL_COPY_MBPS, mr_model.copy_mbps);
    mr_stat_set(MR_STAT_MODEL_REGISTER_NS, mr_model.register_ns);
    mr_stat_set(MR_STAT_MODEL_REGISTER_BYTE_PS, mr_model.register_byte_ps);
    mr_stat_set(MR_STAT_MODEL_TRIP_NS, mr_model.trip_ns);
    mr_stat_set(MR_STAT_MODEL_POST_NS, mr_model.post_ns);
    mr_stat_set(MR_STAT_MODEL_PAGE_NS, mr_model.page_ns);
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
    count_inputs();
    return 0;
}

void mr_model_measured(enum mr_model_cost cost, uint64_t measured)
{
    static const enum mr_stat seen[MR_MODEL_INPUTS] = {MR_STAT_SEEN_MEMORY_MBPS,      MR_STAT_SEEN_REGISTER_NS,
                                                       MR_STAT_SEEN_REGISTER_BYTE_PS, MR_STAT_SEEN_TRIP_NS,
                                                       MR_STAT_SEEN_POST_NS,          MR_STAT_SEEN_PAGE_NS};

    mr_stat_set(seen[cost], measured);
    if (mr_model_take(&mr_model, cost, measured))
        count_inputs();
    else if (mr_model.origin[cost] != MR_MODEL_SET)
        mr_log(MR_LOG_DEBUG, "%s=%llu is not plausible: %s=%u stays", mr_model_inputs[cost].name,
               (unsigned long long)measured, mr_model_inputs[cost].name, mr_model_input(&mr_model, cost));
}
