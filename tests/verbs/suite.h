/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations shared by the cases of the verbs suite.
 *
 * A case is run by two processes at once, the first side and the second, on one host or on two. They agree by sync()
 * and exchange(); a case about one device is run by the first side alone. Every case begins in a fresh process with a
 * device just opened, and need not clean up: its end does. CHECK and SKIP_UNLESS end the case on both sides.
 *
 * The cases know no particular device: missing features are known from capabilities or EOPNOTSUPP.
 */
#ifndef TESTS_VERBS_SUITE_H
#define TESTS_VERBS_SUITE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum side_index { FIRST, SECOND };

struct side {
    enum side_index index;
    int peer; /* the socket to the other side */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    union ibv_gid gid;
    uint8_t port_num;
    int gid_index; /* -1: addressed by LID */
};

struct test_case {
    const char *name;
    void (*run)(struct side *s);
    bool paired; /* run by both sides */
};

struct theme {
    const char *name;
    const struct test_case *cases;
    size_t n;
};

extern const struct theme theme_states, theme_rc, theme_errors, theme_srq, theme_cq, theme_events, theme_ud, theme_uc,
    theme_wr, theme_memory, theme_process, theme_refusals, theme_loss;

/* ---- verdicts */

void case_fail(const char *file, int line, const char *cond, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));
void case_note(const char *format, ...) __attribute__((format(printf, 1, 2))); /* with -v */
void case_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define CHECK(cond, ...)                                                                                               \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            case_fail(__FILE__, __LINE__, #cond, __VA_ARGS__);                                                         \
    } while (0)
/* for values: says both */
#define CHECK_IS(got, wanted, what)                                                                                    \
    do {                                                                                                               \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                                              \
        if (got_ != wanted_)                                                                                           \
            case_fail(__FILE__, __LINE__, NULL, "%s: %lld, not %lld (%s)", what, got_, wanted_, #wanted);              \
    } while (0)
#define SKIP_UNLESS(cond, ...)                                                                                         \
    do {                                                                                                               \
        if (!(cond))                                                                                                   \
            case_skip(__VA_ARGS__);                                                                                    \
    } while (0)
/* a call that may report a missing feature */
#define SKIP_IF_UNSUPPORTED(err, what)                                                                                 \
    SKIP_UNLESS((err) != EOPNOTSUPP && (err) != ENOSYS && (err) != ENOTSUP, "no %s on this device", what)

/* ---- between the sides */

void sync_sides(struct side *s);
void exchange(struct side *s, const void *mine, void *theirs, size_t len); /* at most 1 KiB */

/* ---- an end of a connection */

enum { BUFFER = 64 * 1024, QKEY = 0x11223344, FIRST_PSN = 0xfffff0 /* wraps early */ };

/* Options of an end; 0 stands for a usual value, if any. */
struct end_options {
    enum ibv_qp_type type;       /* IBV_QPT_RC */
    uint32_t send_wr, recv_wr;   /* 16 */
    uint32_t cqe;                /* 64 */
    uint32_t inline_data;        /* 0 */
    bool unsignalled;            /* sq_sig_all is on otherwise */
    int qp_access;               /* all remote rights; NO_ACCESS: none */
    int mr_access;               /* everything the device can; NO_ACCESS: none */
    uint8_t timeout, retry_cnt;  /* 14, 7; NO_RETRY: 0 */
    uint8_t rnr_retry, rnr_time; /* 7, 12; NO_RETRY: 0 */
    uint8_t rd_atomic;           /* 1, of both kinds */
    struct ibv_srq *srq;
    struct ibv_cq *cq; /* the end's own, for both queues */
    struct ibv_comp_channel *channel;
    uint32_t wrong_qpn; /* if set: connect to a queue pair that does not exist */
    uint64_t wr_ops;    /* if set: made with ibv_create_qp_ex and these operations */
};
enum { NO_ACCESS = 1 << 30, NO_RETRY = 0xff };

/* Data that the sides exchange. */
struct end_address {
    uint32_t qpn, rkey, lid, mtu;
    uint64_t addr;
    union ibv_gid gid;
};

struct end {
    struct side *side;
    struct end_options options;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf;
    struct end_address local, remote;
    uint32_t max_inline;
};

void end_make(struct end *e, struct side *s, const struct end_options *o);
void end_exchange(struct end *e);                                          /* fills remote */
void end_loop(struct end *a, struct end *b);                               /* the same for two ends of one process */
void end_connect(struct end *e);                                           /* RESET to RTS, towards remote */
void end_open(struct end *e, struct side *s, const struct end_options *o); /* make, exchange, connect, sync */

/* A transition of the path; the mask is that of the table, the attributes the best possible. */
int end_attributes(const struct end *e, enum ibv_qp_state to, struct ibv_qp_attr *attr);
int end_modify(const struct end *e, enum ibv_qp_state to);
enum ibv_qp_state end_state(const struct end *e);
struct ibv_ah_attr end_ah(const struct side *s, const struct end_address *to);
int side_mr_access(const struct side *s);
struct ibv_mr *side_region(struct side *s, struct ibv_pd *pd, size_t len, int access);

/* ---- requests and completions */

struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/* A request with one element at an offset of the end's buffer; remote operations address the same offset there. */
void request_make(struct request *r, const struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t offset,
                  uint32_t len);
int request_post(const struct end *e, struct request *r);
void send_post(const struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t offset, uint32_t len); /* must succeed */
int recv_try(const struct end *e, uint64_t id, size_t offset, uint32_t len, uint32_t lkey);
void recv_post(const struct end *e, uint64_t id, size_t offset, uint32_t len);
int srq_try(const struct end *e, struct ibv_srq *srq, uint64_t id, size_t offset, uint32_t len);

struct ibv_wc wc_wait(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status, const char *what);
#define EXPECT(cq, id, status) wc_wait(cq, id, status, #id)
void wc_none(struct ibv_cq *cq, unsigned ms);
void sleep_ms(unsigned ms);
void fill(uint8_t *p, size_t len, unsigned seed);
bool filled(const uint8_t *p, size_t len, unsigned seed);

/* The next asynchronous event of that type, others passed over; fails after a while. Not acknowledged. */
struct ibv_async_event event_wait(struct side *s, enum ibv_event_type type);
bool event_comes(struct side *s, enum ibv_event_type type, unsigned ms, struct ibv_async_event *ev);

#endif
