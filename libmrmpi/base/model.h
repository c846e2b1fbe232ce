/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The costs of moving bytes between processes, in one place, and the thresholds that follow from the costs. Inputs have
 * defaults, calibrated with adapters of 200 Gbit/s; measurements replace defaults (verbs/costs.c); MRMPI_MODEL sets
 * inputs, which no measurement replaces then. Thresholds are derived when an input changes: by mr_model_init, when the
 * first rail opens, and behind the first keepalive. Messages only read thresholds, and no two ranks need the same. The
 * rates of rails belong to the rails and are parameters here.
 *
 * A measurement may be wrong, because a processor may be interrupted. A result beyond the plausible is refused, and the
 * input stays as before. A result within a quarter of the default confirms the default: ranks of alike machines then
 * have the same thresholds, and repeated runs, too.
 *
 * A cost is linear in bytes. A threshold in bytes is a number of whole pages, at least one: costs are known to some
 * percent, and the lengths of messages are often powers of two.
 *
 * mr_model_parse is pure, and so is code that takes the model as a parameter.
 */
#ifndef MRMPI_BASE_MODEL_H
#define MRMPI_BASE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

#define MR_MODEL_PAGE         4096u
#define MR_MODEL_REGISTER_MIN (128u << 10) /* bytes whose registration takes register_ns, or fewer */
#define MR_MODEL_LATE_NS      20000u       /* a peer that moves no data for this time, though asked to, computes */

/* The inputs, in the order of mr_model_inputs. */
enum mr_model_cost {
    MR_MODEL_COPY_MBPS,
    MR_MODEL_REGISTER_NS,
    MR_MODEL_REGISTER_BYTE_PS,
    MR_MODEL_TRIP_NS,
    MR_MODEL_POST_NS,
    MR_MODEL_PAGE_NS,
    MR_MODEL_INPUTS
};

enum mr_model_origin { MR_MODEL_DEFAULT, MR_MODEL_MEASURED, MR_MODEL_SET };

struct mr_model {
    /* inputs */
    uint32_t copy_mbps;        /* MB/s that a processor copies */
    uint32_t register_ns;      /* registration of short memory with one device */
    uint32_t register_byte_ps; /* for each byte beyond MR_MODEL_REGISTER_MIN */
    uint32_t trip_ns;          /* from posting a short packet to its confirmation */
    uint32_t post_ns;          /* posting a request, and taking its completion */
    uint32_t page_ns;          /* making a page of memory that the ranks of a node share */

    /* thresholds */
    uint32_t busy_copy_mbps; /* MB/s that a processor copies while adapters move data */
    uint32_t outrun_mbps;    /* Mbit/s of a rail that carries as much as a processor copies */
    uint32_t gap_ns;         /* an offer, and a read until its first byte; or from a FIN to the next offer */
    uint32_t offer_at;       /* bytes copied in the time of posting an offer */
    uint32_t rtr_prefix;     /* bytes copied until an announcement (RTR) of the peer arrives */
    uint32_t prefix;         /* bytes copied, beside other transfers, in a round trip */
    uint32_t zsend_at;       /* bytes copied until a zero-copy send is confirmed */
    uint32_t shallow;        /* bytes of the same, if both sides copy: fewer hide no round trip */
    uint32_t burst_at;       /* bytes copied in three round trips: more are worth reading */
    uint32_t register_at;    /* bytes copied in the time of a registration with one device */
    uint32_t read_at;        /* bytes copied in the time of a registration, an offer and a read */

    uint8_t origin[MR_MODEL_INPUTS]; /* enum mr_model_origin */
};

extern MR_OWN struct mr_model mr_model; /* zero before mr_model_init */

/* An input, as a user sets and sees the input. */
struct mr_model_input {
    const char *name, *unit, *help;
    uint32_t standard, min, max; /* min, max: of a setting */
    uint32_t least, most;        /* of a plausible measurement */
    size_t offset;               /* in struct mr_model */
};
extern MR_OWN const struct mr_model_input mr_model_inputs[MR_MODEL_INPUTS];

static inline uint32_t mr_model_input(const struct mr_model *m, unsigned i)
{
    return *(const uint32_t *)((const char *)m + mr_model_inputs[i].offset);
}

/*
 * Fills in all of *m: defaults, and inputs by text: NAME=NUMBER, separated by commas, spaces or lines; # begins a
 * comment. False: text is wrong; why says where, in a sentence without a full stop.
 */
bool mr_model_parse(struct mr_model *m, const char *text, char *why, size_t size);
/*
 * An input has been measured, in its unit. False: the input is set, or the measurement is not plausible; nothing
 * changes. Otherwise the input and the thresholds of *m follow the measurement.
 */
bool mr_model_take(struct mr_model *m, enum mr_model_cost cost, uint64_t measured);
/* "default", "measured" or "set". */
const char *mr_model_origin(const struct mr_model *m, enum mr_model_cost cost);
/* mr_model by the setting MRMPI_MODEL, a text or @FILE. 0 or negative errno, with a sentence. */
int mr_model_init(char *why, size_t size);
/* mr_model takes a measurement; the counters tell the measurement and the result. */
void mr_model_measured(enum mr_model_cost cost, uint64_t measured);

/* ---- costs of bytes ---------------------------------------------------------------------------------------------- */

static inline uint64_t mr_model_copy_ns(const struct mr_model *m, uint64_t bytes)
{
    return bytes * 1000 / m->copy_mbps;
}

/* Registration with each of the devices, one after the other. */
static inline uint64_t mr_model_register_ns(const struct mr_model *m, uint64_t bytes, unsigned devices)
{
    uint64_t more = bytes > MR_MODEL_REGISTER_MIN ? bytes - MR_MODEL_REGISTER_MIN : 0;

    return devices * (m->register_ns + more * m->register_byte_ps / 1000);
}

#endif
