/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subnet management packets over libibumad: questions in order, several of them under way at a time.
 *
 * A reader that knows its next questions asks them ahead (smp_ahead), in the order in which it will read the answers,
 * and then reads each with smp_get or smp_set. Nothing else changes for the reader: a question that was not asked ahead
 * is asked when it is read, and answers that are not read are dropped. The number of packets under way follows from
 * answers and time-outs: management packets have no flow control, and adapters and switches drop what comes too fast. A
 * node that has not answered one question is not asked those that were asked ahead.
 *
 * A path is the list of exit ports from this host's port on: then nothing is assumed of LIDs and forwarding tables. Or
 * it is a LID: then the answer shows that the forwarding tables lead there and back. One struct smp belongs to one
 * thread.
 */
#ifndef FABRICD_FABRIC_SMP_H
#define FABRICD_FABRIC_SMP_H

#include <stdint.h>

#define SMP_HOPS_MAX 63

enum {
    SMP_NODE_DESC = 0x10,
    SMP_NODE_INFO = 0x11,
    SMP_SWITCH_INFO = 0x12,
    SMP_PORT_INFO = 0x15,
    SMP_PKEYS = 0x16,
    SMP_SL2VL = 0x17,
    SMP_VLARB = 0x18,
    SMP_SM_INFO = 0x20,
};

struct smp_path {
    uint16_t lid; /* 0: by ports */
    uint8_t hops;
    uint8_t port[SMP_HOPS_MAX + 1]; /* port[1..hops] */
};

/* A port of this host. */
struct smp_port {
    char device[32];
    int num;
    uint64_t guid; /* 0: not known */
};

#define SMP_PORTS_MAX 64

/* InfiniBand ports that are up, with a LID or without. How many; what goes beyond SMP_PORTS_MAX is left out. */
unsigned smp_active_ports(struct smp_port port[SMP_PORTS_MAX]);

struct smp;

/* device NULL or port 0: libibumad's choice (the first active port). NULL and errno on failure. */
struct smp *smp_open(const char *device, int port);
void smp_close(struct smp *s);
/* Why no port of this host could ask (a negative errno of smp_open), and what to do: for people. */
const char *smp_open_error(int rc);

/* 0; a negative errno (-ETIMEDOUT: nobody answered); or the positive status of the answer. */
int smp_get(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64]);
int smp_set(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64]);

/* Ask ahead: data NULL for smp_get, else what smp_set will write. */
void smp_ahead(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier,
               const uint8_t data[64]);

#endif
