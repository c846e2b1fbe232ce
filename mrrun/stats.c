/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of rails, added up by host and port. */
#include "mrrun/stats.h"

#include <stdlib.h>
#include <string.h>

/* A port of a host, for all ranks that use the port. */
struct port {
    int host;
    char name[96];
    uint32_t rate_mbps;
    int ranks;
    uint64_t share_ppm; /* of this number of ranks, */
    int sharers;        /* with peers there */
    struct record_bytes bytes;
    uint64_t count[MR_RAIL_STAT_COUNT];
};

struct ports {
    struct port *port;
    size_t num;
    int missing; /* ranks */
};

static struct port *find_port(struct ports *p, int host, const char *name)
{
    struct port *grown;

    for (size_t i = 0; i < p->num; i++)
        if (p->port[i].host == host && !strcmp(p->port[i].name, name))
            return &p->port[i];
    grown = realloc(p->port, (p->num + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    p->port = grown;
    p->port[p->num] = (struct port){.host = host};
    snprintf(p->port[p->num].name, sizeof p->port[p->num].name, "%s", name);
    return &p->port[p->num++];
}

/* A port that is down is down for all its ranks at the same time. */
static void add_rail(struct port *p, const struct mr_record_rail *rail, const struct record_bytes *bytes)
{
    uint64_t down = rail->count[MR_RAIL_DOWN_NS] > p->count[MR_RAIL_DOWN_NS] ? rail->count[MR_RAIL_DOWN_NS]
                                                                             : p->count[MR_RAIL_DOWN_NS];
    uint64_t downs = rail->count[MR_RAIL_PORT_DOWNS] > p->count[MR_RAIL_PORT_DOWNS] ? rail->count[MR_RAIL_PORT_DOWNS]
                                                                                    : p->count[MR_RAIL_PORT_DOWNS];

    p->rate_mbps = rail->rate_mbps;
    p->ranks++;
    if (rail->share_ppm != ~0u) {
        p->share_ppm += rail->share_ppm;
        p->sharers++;
    }
    p->bytes.out += bytes->out;
    p->bytes.in += bytes->in;
    for (int s = 0; s < MR_RAIL_STAT_COUNT; s++)
        p->count[s] += rail->count[s];
    p->count[MR_RAIL_DOWN_NS] = down;
    p->count[MR_RAIL_PORT_DOWNS] = downs;
}

static int by_place(const void *a, const void *b)
{
    const struct port *x = a, *y = b;

    return x->host != y->host ? (x->host < y->host ? -1 : 1) : strverscmp(x->name, y->name);
}

/* NULL: no memory. */
static struct ports *gather(const struct records *r, struct ports *out)
{
    struct record_bytes *bytes = records_bytes(r);

    *out = (struct ports){.num = 0};
    for (int i = 0; bytes && i < r->ranks; i++) {
        const struct mr_record *m = r->of[i].at;

        out->missing += !m;
        for (unsigned k = 0; m && k < m->num_rails; k++) {
            struct port *p = find_port(out, r->host_of[i], records_rail(r, (unsigned)i, k));

            if (p)
                add_rail(p, &m->rail[k], &bytes[(size_t)i * MR_RECORD_RAILS + k]);
        }
    }
    if (out->num)
        qsort(out->port, out->num, sizeof *out->port, by_place);
    free(bytes);
    return bytes ? out : NULL;
}

static double share_of(const struct port *p)
{
    return p->sharers ? (double)p->share_ppm / p->sharers / 1e6 : 0;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void print_port(FILE *out, const struct records *r, const struct port *p, int host_width, int name_width)
{
    const uint64_t *c = p->count;

    fprintf(
        out, "  %-*s  %-*s %6.0f %11llu %11llu %11.2f %11.2f %9llu %6.1f %7llu %6llu %6llu %6llu %9.2f\n", host_width,
        r->host[p->host], name_width, p->name, p->rate_mbps / 1e3, (unsigned long long)c[MR_RAIL_PACKETS_SENT],
        (unsigned long long)c[MR_RAIL_PACKETS_RECEIVED], (double)p->bytes.out / 1e6, (double)p->bytes.in / 1e6,
        (unsigned long long)(c[MR_RAIL_STRIPES_WRITTEN] + c[MR_RAIL_STRIPES_READ]), 100 * share_of(p),
        (unsigned long long)c[MR_RAIL_RESENT], (unsigned long long)c[MR_RAIL_MOVED],
        (unsigned long long)c[MR_RAIL_OPENED], (unsigned long long)c[MR_RAIL_BROKEN], (double)c[MR_RAIL_DOWN_NS] / 1e6);
}

void stats_print_table(FILE *out, const struct records *r)
{
    int host_width = 4, name_width = 4;
    struct ports ports;

    if (!gather(r, &ports)) {
        fprintf(out, "mrrun: out of memory for the figures of rails\n");
        return;
    }
    for (size_t i = 0; i < ports.num; i++) {
        int h = (int)strlen(r->host[ports.port[i].host]), n = (int)strlen(ports.port[i].name);

        host_width = h > host_width ? h : host_width;
        name_width = n > name_width ? n : name_width;
    }
    if (!ports.num) {
        fprintf(out, "mrrun: no rails were in use%s\n",
                ports.missing == r->ranks ? ": no rank has left figures"
                                          : ": between ranks of one host messages go through shared memory");
    } else {
        fprintf(out, "mrrun: rails, all ranks of a host together%s\n", r->simulated ? " (simulated)" : "");
        fprintf(out, "  %-*s  %-*s %6s %11s %11s %11s %11s %9s %6s %7s %6s %6s %6s %9s\n", host_width, "host",
                name_width, "rail", "Gb/s", "packets out", "in", "MB out", "in", "stripes", "share%", "resent", "moved",
                "opened", "broken", "down ms");
    }
    for (size_t i = 0; i < ports.num; i++)
        print_port(out, r, &ports.port[i], host_width, name_width);
    if (ports.num && ports.missing)
        fprintf(out, "mrrun: %d of %d ranks have left no figures\n", ports.missing, r->ranks);
    free(ports.port);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Names without the common prefix. */
static void print_counts(FILE *out, const uint64_t count[MR_RAIL_STAT_COUNT])
{
    for (int s = 0; s < MR_RAIL_STAT_COUNT; s++)
        fprintf(out, ", \"%s\": %llu", mr_rail_stat_name((enum mr_rail_stat)s) + strlen("rail_"),
                (unsigned long long)count[s]);
}

static void print_share(FILE *out, bool known, double share)
{
    if (known)
        fprintf(out, ", \"share\": %.6f", share);
    else
        fputs(", \"share\": null", out);
}

static void print_hosts(FILE *out, const struct records *r, const struct ports *ports)
{
    fputs("  \"rails\": [", out);
    for (size_t i = 0; i < ports->num; i++) {
        const struct port *p = &ports->port[i];

        fprintf(out, "%s\n    {\"host\": ", i ? "," : "");
        json_string(out, r->host[p->host]);
        fputs(", \"rail\": ", out);
        json_string(out, p->name);
        fprintf(out, ", \"rate_mbps\": %u, \"ranks\": %d, \"bytes_out\": %llu, \"bytes_in\": %llu", p->rate_mbps,
                p->ranks, (unsigned long long)p->bytes.out, (unsigned long long)p->bytes.in);
        print_share(out, p->sharers, share_of(p));
        print_counts(out, p->count);
        fputc('}', out);
    }
    fputs(ports->num ? "\n  ],\n" : "],\n", out);
}

static void print_rank_rails(FILE *out, const struct records *r, int rank, const struct record_bytes *bytes)
{
    const struct mr_record *m = r->of[rank].at;

    for (unsigned i = 0; i < m->num_rails; i++) {
        const struct mr_record_rail *rail = &m->rail[i];

        fprintf(out, "%s\n       {\"rail\": ", i ? "," : "");
        json_string(out, records_rail(r, (unsigned)rank, i));
        fprintf(out, ", \"rate_mbps\": %u, \"down\": %s, \"bytes_out\": %llu, \"bytes_in\": %llu", rail->rate_mbps,
                rail->is_down ? "true" : "false", (unsigned long long)bytes[i].out, (unsigned long long)bytes[i].in);
        print_share(out, rail->share_ppm != ~0u, rail->share_ppm / 1e6);
        print_counts(out, rail->count);
        fputc('}', out);
    }
}

static void print_rank(FILE *out, const struct records *r, int rank, const struct record_bytes *bytes)
{
    const struct mr_record *m = r->of[rank].at;

    fprintf(out, "    {\"rank\": %d, \"host\": ", rank);
    json_string(out, r->host[r->host_of[rank]]);
    if (!m) {
        fputs(", \"recorded\": false}", out);
        return;
    }
    fprintf(out, ", \"recorded\": true, \"finalized\": %s, \"seconds\": %.9f,\n     \"counters\": {",
            m->ended ? "true" : "false", (double)(m->updated_ns - m->began_ns) / 1e9);
    for (int s = 0; s < MR_STAT_COUNT; s++)
        fprintf(out, "%s\"%s\": %llu", s ? ", " : "", mr_stat_name((enum mr_stat)s), (unsigned long long)m->stat[s]);
    fputs("},\n     \"rails\": [", out);
    print_rank_rails(out, r, rank, bytes);
    fputs("]}", out);
}

void stats_print_json(FILE *out, const struct records *r)
{
    struct record_bytes *bytes = records_bytes(r);
    struct ports ports;

    if (!bytes || !gather(r, &ports)) {
        fputs("{\"error\": \"out of memory\"}\n", out);
        free(bytes);
        return;
    }
    fputs("{\n  \"version\": 1,\n  \"job\": ", out);
    json_string(out, r->job_id);
    fprintf(out, ",\n  \"simulated\": %s,\n  \"num_ranks\": %d,\n", r->simulated ? "true" : "false", r->ranks);
    print_hosts(out, r, &ports);
    fputs("  \"ranks\": [\n", out);
    for (int i = 0; i < r->ranks; i++) {
        print_rank(out, r, i, bytes + (size_t)i * MR_RECORD_RAILS);
        fputs(i + 1 < r->ranks ? ",\n" : "\n", out);
    }
    fputs("  ]\n}\n", out);
    free(ports.port);
    free(bytes);
}
