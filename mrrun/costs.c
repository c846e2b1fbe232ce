/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own model and estimates, in microseconds. */
#include "mrrun/costs.h"

#include <stdio.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "mrrun/values.h"

#define PIECE (64u << 10) /* inside a host both sides copy large messages in such pieces, at the same time */

/* In the table of each kind of peer; the first is no copy worth a line. */
static const uint64_t sizes[] = {8, 1024, 8192, 16384, 65536, 262144, 1048576, 4194304};
enum { SIZES = sizeof sizes / sizeof *sizes };

static const char *us(uint64_t ns)
{
    static char text[4][24];
    static unsigned next;
    char *out = text[next++ % 4];

    snprintf(out, sizeof text[0], "%.2f", (double)ns / 1e3);
    return out;
}

static void print_inputs(const char *origin)
{
    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++) {
        const struct mr_model_input *in = &mr_model_inputs[i];
        uint32_t value = mr_model_input(&mr_model, i);

        printf("  %-18s%8u %-6s%s %s\n", in->name, value, in->unit, in->help,
               mr_model.origin[i] == MR_MODEL_SET ? origin
               : i == MR_MODEL_POST_NS            ? "(default)"
                                                  : "(default; ranks measure)");
    }
}

static void print_thresholds(void)
{
    const struct mr_model *m = &mr_model;

    puts("  from these follow");
    printf("    zero-copy sends with %s or more under way; reads of messages in bursts from %s on\n",
           value_bytes(m->zsend_at), value_bytes(m->burst_at));
    printf("    a buffer of shorter messages is registered after %s copied for each adapter\n",
           value_bytes(m->register_at));
    printf("    large messages in new memory are copied below %s for each adapter, or below %s if a rail carries %g\n"
           "    Gb/s or more\n",
           value_bytes(m->register_at), value_bytes(m->read_at), m->outrun_mbps / 1e3);
    printf("    eager prefix: %s\n", value_bytes(m->prefix));
}

static uint64_t both_copy_ns(uint64_t len)
{
    uint64_t piece = len < PIECE ? len : PIECE;

    return mr_model_copy_ns(&mr_model, len) + mr_model_copy_ns(&mr_model, piece);
}

static void print_inside(void)
{
    puts("  inside a host, copies only (us): by both ranks; by one; by both, each a half (MRMPI_SHM_COPY)");
    for (int i = 1; i < SIZES; i++) {
        uint64_t one = mr_model_copy_ns(&mr_model, sizes[i]);

        printf("    %6s %10s", value_bytes(sizes[i]), us(both_copy_ns(sizes[i])));
        if (sizes[i] > mr_config.shm_eager_max)
            printf(" %10s %10s", us(one), us(one / 2));
        puts("");
    }
}

bool costs_print(const char *origin)
{
    char why[256];

    puts("\nCosts (MRMPI_MODEL sets them)");
    if (mr_model_init(why, sizeof why)) {
        printf("  ERROR: MRMPI_MODEL: %s; MPI_Init will fail\n", why);
        return false;
    }
    print_inputs(origin);
    print_thresholds();
    print_inside();
    return true;
}

/* ---- between hosts ----------------------------------------------------------------------------------------------- */

static void print_eager(const struct mr_cost_way *w, uint64_t len)
{
    char what[32] = "one packet";

    if (len > w->packet)
        snprintf(what, sizeof what, "%u packets", (unsigned)((len + w->packet - 1) / w->packet));
    printf("%-22s %10s\n", what, us(mr_cost_eager_ns(&mr_model, w, len)));
}

static void print_rdma(const struct mr_cost_way *w, uint64_t len, const char *mover)
{
    bool copies = mr_cost_copies(&mr_model, w, len);
    uint64_t known = mr_cost_rdma_ns(&mr_model, w, len),
             new = copies ? mr_cost_asked_ns(&mr_model, w, len) : known + mr_cost_registers_ns(&mr_model, w, len);

    printf("%-22s %10s %10s (%s)\n", mover, us(known), us(new), copies ? "copied" : "registered first");
}

void costs_print_to(const struct mr_cost_way *w, const char *mover)
{
    printf("    estimated times of a message alone, its receive posted (us; a rail of %u MB/s, %u MB/s together)\n",
           w->packet_mbps, w->all_mbps);
    printf("      %6s  %-22s %10s %10s\n", "bytes", "", "", mover ? "new memory" : "");
    for (int i = 0; i < SIZES; i++) {
        printf("      %6s  ", value_bytes(sizes[i]));
        if (sizes[i] <= value_unasked())
            print_eager(w, sizes[i]);
        else if (mover)
            print_rdma(w, sizes[i], mover);
        else
            printf("%-22s %10s\n", "asked, then packets", us(mr_cost_asked_ns(&mr_model, w, sizes[i])));
    }
}
