/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subnet management packets over libibumad: questions in order, several of them under way at a time.
 *
 * A reader with known next questions asks them ahead (smp_ahead), in the order of reading, and then reads each with
 * smp_get or smp_set. Nothing else changes for the reader: a question that was not asked ahead is asked when it is
 * read, and unread answers are dropped. The number of packets under way follows from answers and time-outs: management
 * packets have no flow control, and adapters and switches drop packets that come too fast. A node that left a question
 * unanswered gets no further questions asked ahead.
 *
 * A path is the list of exit ports from this host's port on; LIDs and forwarding tables are not involved. Or a path is
 * a LID; the answer then proves that the forwarding tables lead there and back. One struct smp belongs to one thread.
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
    uint64_t guid;   /* 0: not known */
    uint64_t prefix; /* of the subnet, as smp_active_ports found it; so is sm_lid */
    uint16_t sm_lid;
};

#define SMP_PORTS_MAX 64

/* Active InfiniBand ports, with or without a LID. Returns their number; ports beyond SMP_PORTS_MAX are left out. */
unsigned smp_active_ports(struct smp_port port[SMP_PORTS_MAX]);

/* Of a port that is known by its GUID alone: device and number, if it is active. */
void smp_name_port(struct smp_port *p);

/*
 * The M_Key of a subnet, known by a port of this host: nodes drop SMPs without their key, if not all, then those that
 * write. Questions of a later smp_open from this port have the key; so do those from a port with the same subnet prefix
 * and subnet manager, if the keys of all such ports agree. Any thread.
 */
struct smp_key {
    uint64_t guid, key;
};
#define SMP_KEYS_MAX 32
void smp_know_keys(const struct smp_key *key, unsigned n);

struct smp;

/* device NULL or port 0: libibumad's choice (the first active port). NULL and errno on failure. */
struct smp *smp_open(const char *device, int port);
void smp_close(struct smp *s);
/* The reason why no port of this host could ask (a negative errno of smp_open), and the remedy: for people. */
const char *smp_open_error(int rc);

/* 0; a negative errno (-ETIMEDOUT: no answer); or the positive status of the answer. */
int smp_get(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64]);
int smp_set(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier, uint8_t data[64]);

/* Asks ahead: data NULL for smp_get, else the data of the later smp_set. */
void smp_ahead(struct smp *s, const struct smp_path *path, uint16_t attribute, uint32_t modifier,
               const uint8_t data[64]);

#endif
