/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing model: the cost of each step, in picoseconds, and the properties of links. Read from a small YAML file
 * (etc/models/NAME.yaml). Every key has a default; unknown keys are errors with file, line and column. Units are in the
 * names: _ps, _bps (bits per second), _bytes.
 */
#ifndef SIMFAB_MODEL_H
#define SIMFAB_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

/* The part of a switch's receive buffer visible to the outputs: the first packet of each lane, or all packets. */
enum switch_queues { QUEUES_LANE, QUEUES_OUTPUT };

/* Where in the file an item of a list stands. */
struct model_place {
    unsigned line, column;
};

/* faults: kind and time; one of link, node and host is not empty. */
struct model_fault {
    struct model_place at;
    char link[65], node[65], host[65]; /* names or patterns */
    uint32_t port;                     /* of link; 0: all */
    char set[128];                     /* words as `simfab fault` takes them, separated by spaces */
    uint64_t at_ps, for_ps;            /* for: 0: permanent */
};

/* flows: traffic without a process. */
struct model_flow {
    struct model_place at;
    char from[65], to[65]; /* adapters */
    uint32_t from_port, to_port;
    uint32_t sl, path;
    uint8_t mtu;      /* PortInfo code; 0: as the path allows */
    uint64_t size;    /* bytes of a message; 0: not said */
    double rate_mbps; /* 0: as much as goes */
    uint64_t at_ps, for_ps;
};

/* ports: capabilities of single ports; 0: not given. The port's own, independent of the cable and the other end. */
struct model_port {
    struct model_place at;
    char node[65]; /* name or description of a node, or a pattern of shell wildcards that several match */
    uint32_t port; /* 0: all of its ports */
    uint8_t width, speed, ext_speed, fdr10, mtu, vl_cap;
    uint32_t vlarb_cap, vl_buffer_bytes;
};

struct model {
    char path[256]; /* for messages; "": no file */
    char name[64];
    char description[256];

    /* links: defaults for cables without width and speed in the netlist */
    uint8_t width, speed, ext_speed, fdr10; /* PortInfo codes, one bit each; fdr10: QDR in PortInfo means FDR10 */
    uint8_t mtu, vl_cap;                    /* PortInfo codes */
    uint32_t vlarb_cap;                     /* entries per table */
    uint64_t propagation_ps;                /* per cable */
    uint64_t switch_delay_ps; /* from the last (store and forward) or first (cut through) bit in, to out */
    bool cut_through;
    uint8_t switch_queues;          /* enum switch_queues */
    uint32_t vl_buffer_bytes;       /* receive buffer per VL and port; credits count blocks of 64 bytes */
    uint32_t packet_overhead_bytes; /* LRH+BTH+ICRC+VCRC and framing, besides extended headers */

    /* HCA */
    uint64_t post_ps, doorbell_ps;       /* caller's cost of a post; from the doorbell to the HCA starting on it */
    uint64_t wqe_ps;                     /* fetching and decoding of a request */
    uint64_t wqe_inline_saves_ps;        /* part of it saved by an inline request */
    uint64_t wqe_overlap_ps;             /* part of the rest that overlaps with the next request */
    uint64_t tx_packet_ps, rx_packet_ps; /* engine occupancy per packet */
    uint64_t dma_latency_ps;             /* reading memory: from request to the first byte */
    uint64_t dma_write_ps;               /* from the last byte in to memory being written */
    uint64_t ack_ps;                     /* making or handling an acknowledge */
    uint64_t ack_engine_ps;              /* handling of one acknowledge: time of the requester's send engine */
    uint64_t cqe_ps;                     /* from the completion to the entry being visible */
    uint64_t bus_bps;            /* the I/O bus, shared by both directions and hcas_per_bus adapters; 0: no limit */
    uint64_t dma_read_bps;       /* limit for reading memory across the bus; 0: no limit of its own */
    uint64_t dma_write_bps;      /* the same for writing */
    uint32_t bus_overhead_bytes; /* per packet on the bus */
    uint32_t hcas_per_bus;
    uint64_t memory_bps;       /* the memory of a host, for all of its buses; 0: no limit */
    uint32_t qp_cache_entries; /* contexts of queue pairs held by an adapter; 0: all */
    uint64_t qp_cache_miss_ps; /* fetching of a context not held */
    uint64_t event_ps;         /* completion event: interrupt to wake-up */
    uint64_t reg_mr_ps, reg_mr_page_ps, dereg_mr_ps, dereg_mr_page_ps;
    uint32_t max_inline_bytes, max_sge, max_qp, max_cq, max_mr, max_qp_wr, max_cqe, max_srq_wr, max_rd_atomic;
    bool uc_srq;        /* queue pairs of UC may use a shared receive queue */
    bool answers_first; /* a queue pair sends no requests while it has reads to answer */
    bool odp;           /* regions on demand: their pages are not pinned */
    bool uc_recovers;   /* messages after a write that lost a packet are accepted again */
    uint32_t vendor_part_id;
    char fw_ver[32];

    /* the program's own costs */
    uint64_t clock_read_ps, poll_ps, poll_empty_ps;
    uint32_t copy_mbytes_per_s; /* of a copy by the program; 0: it takes no time */
    uint32_t cpu_factor_milli;  /* measured CPU time times this / 1000 */

    /* faults */
    double loss; /* probability that a data packet is lost on a cable */
    uint64_t seed;

    /* lists, in the order of the file: later items have the last word */
    struct model_port *ports;
    uint32_t num_ports;
    struct model_fault *faults;
    uint32_t num_faults;
    struct model_flow *flows;
    uint32_t num_flows;
};

/* A model with every default; path NULL gives the defaults themselves. NULL with err filled when the file is wrong. */
struct model *model_load(const char *path, struct parse_error *err);
void model_free(struct model *m);

/* "FILE:LINE:COLUMN: text" about an item of a list, for errors found with the fabric; returns -1. */
int model_error(const struct model *m, const struct model_place *at, struct parse_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The i-th key of a model file ("" is the section of top-level keys); false: no more keys. */
bool model_key(size_t i, const char **section, const char **name, const char **def);

#endif
