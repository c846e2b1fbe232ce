/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages on an SF_CONN_UMAD connection after the hello. The socket is the program's descriptor of
 * /dev/infiniband/umadN, so poll, epoll, fcntl, dup and fork work without help. libsimfab.so interposes write, read and
 * ioctl on the socket and sends these messages. The engine has all state (agents, requests under way): holders of the
 * descriptor, in any process, share the open file.
 *
 * Program to engine: struct umad_req, its payload, and by SCM_RIGHTS
 *     [0] a socket on which the engine answers this one request with a struct umad_rep (so that an answer never
 *         mixes with the datagrams that other threads wait for), and
 *     [1] when UMAD_REQ_MEMFD is set, a memfd that holds the payload.
 * A WRITE without descriptors has no answer. A program sends a datagram so if the page says that the engine will
 * take the datagram: each error of write that a kernel reports at once is still reported at once.
 * Engine to program: struct umad_rx and what read() is to return (the umad header and the datagram); when
 * UMAD_RX_MEMFD is set a memfd holds that instead, and only its first bytes (header and first segment) are inline.
 *
 * The page (struct umad_page) is shared memory from the welcome. The engine writes there the state that decides whether
 * a write is right, and trusts nothing read from the page. A process with an inherited or received socket has no page,
 * and waits for the answer to each write.
 *
 * A umad socket is bound to an abstract name that begins with UMAD_NAME, by which the library recognizes the socket. An
 * SF_CONN_ISSM connection carries no messages, and holds the port's IsSM bit while open.
 */
#ifndef SIMFAB_UMAD_PROTO_H
#define SIMFAB_UMAD_PROTO_H

#include <stdint.h>
#include <string.h>

#define SF_UMAD_NONBLOCK 0x80000000u /* in sf_hello.arg: an issm that is taken answers EAGAIN instead of waiting */

#define UMAD_NAME "simfab-umad/" /* after the leading zero byte of the abstract address */

#define UMAD_HDR      64u /* struct ib_user_mad with the pkey fields; 56 without */
#define UMAD_HDR_OLD  56u
#define UMAD_INLINE   16384u      /* larger payloads travel in a memfd */
#define UMAD_DATA_MAX (64u << 20) /* largest multi-segment message */

enum umad_op {
    UMAD_OP_WRITE = 1, /* payload: the written data */
    UMAD_OP_ENABLE_PKEY,
    UMAD_OP_REGISTER,   /* payload: struct ib_user_mad_reg_req (28 bytes); rep: id */
    UMAD_OP_REGISTER2,  /* payload: struct ib_user_mad_reg_req2 (40 bytes); rep: id, flags */
    UMAD_OP_UNREGISTER, /* payload: u32 id */
};

#define UMAD_REQ_MEMFD   1u
#define UMAD_REQ_COUNTED 2u /* the program has counted this datagram in under_way */
#define UMAD_RX_MEMFD    1u

struct umad_req {
    uint32_t op;
    uint32_t flags;
    uint64_t bytes; /* of the payload */
};

struct umad_rep {
    int32_t error; /* 0 or a positive errno */
    uint32_t id;
    uint32_t flags; /* REGISTER2 refused for its flags: the supported flags */
    uint32_t pad;
};

struct umad_rx {
    uint64_t bytes;     /* umad header and datagram */
    uint32_t hdr_bytes; /* UMAD_HDR or UMAD_HDR_OLD, as this open file has it */
    uint32_t flags;
};

#define UMAD_AGENTS    32 /* of an open file */
#define UMAD_UNDER_WAY 1024

enum umad_agent { UMAD_AGENT_NONE, UMAD_AGENT_PLAIN, UMAD_AGENT_RMPP };

/*
 * Of one open file. under_way counts the requests that wait for a response, by transaction id, class and agent: zero
 * means that the request is unique. A program counts a request before sending the request; the engine counts a request
 * while the request waits, and takes back the program's count.
 */
struct umad_page {
    uint32_t closed;
    uint8_t port; /* its number, where directed routes begin */
    uint8_t hdr_bytes;
    uint8_t agent[UMAD_AGENTS]; /* enum umad_agent */
    uint32_t under_way[UMAD_UNDER_WAY];
};

/* The place of a datagram in under_way; mad has at least 16 bytes. */
static inline uint32_t umad_under_way(uint32_t agent, const uint8_t *mad)
{
    uint32_t tid;

    memcpy(&tid, mad + 12, sizeof tid); /* the lower half, the program's */
    return (__builtin_bswap32(tid) + 131 * agent + 37 * mad[1]) % UMAD_UNDER_WAY;
}

#endif
