/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of links: header and payload in one piece of registered memory, kept until no repetition is needed. They come
 * from pools of two sizes, short packets and all others, that grow as needed and stay until the end.
 */
#ifndef MRMPI_PACKET_H
#define MRMPI_PACKET_H

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/packet.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "libmrmpi/base/kept.h"
#include "libmrmpi/verbs/post.h"

struct mr_packet_slab;

/* Memory of a packet's payload elsewhere than behind its header. */
struct mr_zsend_from {
    const struct mr_memory *memory; /* NULL: there is no loan */
    const void *from;               /* NULL: adapters may still read it, but the payload is behind the header now */
    void *zsender;
};
/* Adapters read no more of the memory, and nothing will. Set by the maker of such packets. */
extern MR_OWN void (*mr_zsend_done)(const struct mr_zsend_from *zsend);

struct mr_packet {
    struct mr_kept kept; /* the first member: net/'s window of sent packets */
    struct mr_tx tx;     /* of the request that sends the packet, if signaled */
    struct mr_packet_slab *slab;
    struct mr_link *link; /* datagrams: its last link */
    struct mr_zsend_from zsend;
    unsigned char *data;
    uint32_t size;    /* of header and payload */
    uint32_t payload; /* bytes of it */
    uint8_t tail;     /* bytes of the peer's ACK behind it (net/rely.c) */
    bool posted;      /* tx is with the adapter */
    bool dropped;     /* to be freed when tx has come back */
};

/* Behind each packet there is room for so many bytes: an ACK, and the head of each of its parts (assembly.h). */
#define MR_PACKET_SPARE 32

/* packet_max: header and payload of the longest. So many rails are in use. 0 or negative errno. */
int mr_packets_open(size_t packet_max, unsigned rails);
void mr_packets_close(void);
/* A device was opened anew: all packets have to be registered there. 0 or negative errno. */
int mr_packets_renew(void);

/* Free packets of one size, through kept.next. */
struct mr_packet_pool {
    size_t stride;
    struct mr_packet *free;
    unsigned first, num; /* in the first slab; in all, free or not */
};
extern MR_OWN struct mr_packet_pool mr_packets_short; /* of MR_PACKET_SHORT bytes and MR_PACKET_SPARE behind them */
#define MR_PACKET_SHORT 256

/* There is memory for the next so many packets, however long: 0, or -ENOMEM. */
int mr_packets_reserve(unsigned num);
/* A packet with this header and payload (NULL: it is not filled in); NULL: no memory. */
struct mr_packet *mr_packet_make(const struct mr_hdr *hdr, const void *payload, size_t len);
/* The next free short packet, to be filled; NULL: none is at hand. */
static inline struct mr_packet *mr_packet_take_short(void)
{
    struct mr_packet *p = mr_packets_short.free;

    if (likely(p != NULL))
        mr_packets_short.free = (struct mr_packet *)p->kept.next;
    return p;
}
/* Fills the packet, whose first head bytes are its header, with MR_PACKET_SHORT - MR_WIRE_MAX bytes at most. */
static inline void mr_packet_fill_short(struct mr_packet *p, size_t head, const void *payload, size_t len)
{
    p->size = p->kept.len = (uint32_t)(head + len);
    p->payload = (uint32_t)len;
    p->tail = 0;
    if (len)
        memcpy(p->data + head, payload, len);
}
/* The packet was not posted. */
static inline void mr_packet_unmake_short(struct mr_packet *p)
{
    p->kept.next = (struct mr_kept *)mr_packets_short.free;
    mr_packets_short.free = p;
}
/* A packet without content, for its tx. */
struct mr_packet *mr_packet_blank(void);
/* The same bytes once more, for callers that cannot wait until the first packet is back. */
struct mr_packet *mr_packet_copy(struct mr_packet *p);
/* Moves its payload behind its header. */
void mr_packet_settle(struct mr_packet *p);
/* At once, or when the adapter is done with it. */
void mr_packet_free(struct mr_packet *p);
/*
 * The adapter has given the packet back. kept: a repetition may be needed. Returns its memory elsewhere, for the call
 * of its end.
 */
struct mr_zsend_from mr_packet_take_zsend(struct mr_packet *p, bool kept);
/* Its 16 bytes for the heads of parts. */
void *mr_packet_part_head(const struct mr_packet *p);
/*
 * The device of this queue pair is gone: requests posted there never come back, and count as returned. link: only
 * packets of this link (ud.c); NULL: all.
 */
void mr_packets_gone(const struct mr_qp *qp, const struct mr_link *link);
/* All of a chain through kept.next, as conn/reliable/window.h gives them back. */
void mr_packets_free(struct mr_kept *chain);
uint32_t mr_packet_lkey(const struct mr_packet *p, const struct mr_rail *rail);

#endif
