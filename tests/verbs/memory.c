/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and windows: the specification's 10.6. Both ends are in one process. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/verbs/suite.h"

static void pair(struct side *s, struct end *a, struct end *b)
{
    end_make(a, s, NULL);
    end_make(b, s, NULL);
    end_loop(a, b);
}

/* A write with this key to this address, with its expected end. */
static void try_write(struct end *a, struct end *b, uint32_t rkey, void *addr, enum ibv_wc_status status,
                      const char *what)
{
    struct request r;

    request_make(&r, a, IBV_WR_RDMA_WRITE, 1, 0, 8);
    r.wr.wr.rdma.rkey = rkey;
    r.wr.wr.rdma.remote_addr = (uintptr_t)addr;
    CHECK(!request_post(a, &r), "post");
    wc_wait(a->cq, 1, status, what);
    if (!status)
        return;
    CHECK(!end_modify(a, IBV_QPS_RESET) && !end_modify(b, IBV_QPS_RESET), "to RESET");
    end_connect(a);
    end_connect(b);
}

static void registering(struct side *s)
{
    uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    CHECK(!ibv_reg_mr(s->pd, p, 8192, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
          "others may write, the owner not: %d", errno);
    CHECK(!ibv_reg_mr(s->pd, p, 8192, IBV_ACCESS_REMOTE_ATOMIC) && errno == EINVAL, "others may add, the owner not: %d",
          errno);
    CHECK(!munmap(p + 4096, 4096), "munmap");
    CHECK(!ibv_reg_mr(s->pd, p, 8192, IBV_ACCESS_LOCAL_WRITE), "memory that is not there");
    CHECK((mr = ibv_reg_mr(s->pd, p + 3, 17, IBV_ACCESS_LOCAL_WRITE)), "17 bytes: %s", strerror(errno));
    CHECK(mr->addr == p + 3 && mr->length == 17 && mr->pd == s->pd && mr->context == s->ctx, "what the region says");
    CHECK(!ibv_dereg_mr(mr), "deregister");
}

/* Keys of destroyed regions open nothing. */
static void old_keys(struct side *s)
{
    struct ibv_mr *mr;
    struct end a, b;
    uint32_t rkey;
    void *addr;

    pair(s, &a, &b);
    mr = side_region(s, NULL, 4096, side_mr_access(s));
    rkey = mr->rkey;
    addr = mr->addr;
    try_write(&a, &b, rkey, addr, IBV_WC_SUCCESS, "a live key");
    CHECK(!ibv_dereg_mr(mr), "deregister");
    try_write(&a, &b, rkey, addr, IBV_WC_REM_ACCESS_ERR, "a dead key");
    for (int i = 0; i < 50; i++) { /* not for a long time, whatever else is registered */
        mr = side_region(s, NULL, 4096, side_mr_access(s));
        CHECK(mr->rkey != rkey, "key %#x is used again after %d regions", rkey, i);
        CHECK(!ibv_dereg_mr(mr), "deregister");
    }
}

/* Addresses of others begin where the owner said. */
static void other_addresses(struct side *s)
{
    uint64_t base = 0x1000;
    struct ibv_mr *mr;
    struct end a, b;
    uint8_t *p;

    pair(s, &a, &b);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mr = ibv_reg_mr_iova(s->pd, p, 8192, base, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(mr, "%s", strerror(errno));
    memset(a.buf, 6, 8);
    try_write(&a, &b, mr->rkey, (void *)(uintptr_t)(base + 4096), IBV_WC_SUCCESS, "its base plus a page");
    CHECK_IS(p[4096], 6, "the byte there");
    try_write(&a, &b, mr->rkey, p, IBV_WC_REM_ACCESS_ERR, "the owner's address");
}

static void zero_based(struct side *s)
{
    struct ibv_mr *mr;
    struct end a, b;
    uint8_t *p;

    pair(s, &a, &b);
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mr = ibv_reg_mr(s->pd, p, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    SKIP_UNLESS(mr, "no zero based regions on this device");
    memset(a.buf, 6, 8);
    try_write(&a, &b, mr->rkey, (void *)8, IBV_WC_SUCCESS, "eight bytes from its beginning");
    CHECK_IS(p[8], 6, "the byte there");
}

static void changed(struct side *s)
{
    struct ibv_pd *other = ibv_alloc_pd(s->ctx);
    struct ibv_mr *mr;
    struct end a, b;
    int err;

    pair(s, &a, &b);
    mr = side_region(s, NULL, 4096, IBV_ACCESS_LOCAL_WRITE);
    try_write(&a, &b, mr->rkey, mr->addr, IBV_WC_REM_ACCESS_ERR, "no right yet");
    err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    SKIP_UNLESS(!(err && (errno == EOPNOTSUPP || errno == ENOSYS)), "regions cannot be changed on this device");
    CHECK(!err, "rights: %d, %s", err, strerror(errno));
    try_write(&a, &b, mr->rkey, mr->addr, IBV_WC_SUCCESS, "the right");
    CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), "domain");
    CHECK(mr->pd == other, "the region's domain");
    try_write(&a, &b, mr->rkey, mr->addr, IBV_WC_REM_ACCESS_ERR, "another domain");
    CHECK(ibv_rereg_mr(mr, 0x100, NULL, NULL, 0, 0), "an unknown flag");
}

/* ---- on demand -------------------------------------------------------------------------------------------------- */

static struct ibv_odp_caps on_demand(struct side *s, uint64_t wanted)
{
    struct ibv_device_attr_ex ex = {0};

    CHECK(!ibv_query_device_ex(s->ctx, NULL, &ex), "ibv_query_device_ex");
    SKIP_UNLESS((ex.odp_caps.general_caps & wanted) == wanted, "no such on-demand paging on this device");
    SKIP_UNLESS(ex.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_WRITE,
                "no writes on demand on this device");
    return ex.odp_caps;
}

static uint8_t *map_at(void *addr, int prot)
{
    uint8_t *p = mmap(addr, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1, 0);

    CHECK(p != MAP_FAILED, "%s", strerror(errno));
    return p;
}

/* The key outlives mappings, and leads to the present mapping. */
static void use_unpinned(struct end *a, struct end *b, struct ibv_mr *mr, uint8_t *p)
{
    memset(a->buf, 6, 8);
    try_write(a, b, mr->rkey, p + 4096, IBV_WC_SUCCESS, "memory that was not touched yet");
    CHECK_IS(p[4096], 6, "the byte there");
    map_at(p, PROT_READ | PROT_WRITE);
    CHECK_IS(p[4096], 0, "the byte of the new mapping");
    memset(a->buf, 7, 8);
    try_write(a, b, mr->rkey, p + 4096, IBV_WC_SUCCESS, "memory that was mapped anew");
    CHECK_IS(p[4096], 7, "the byte there");
    map_at(p, PROT_READ);
    try_write(a, b, mr->rkey, p, IBV_WC_REM_ACCESS_ERR, "memory that cannot be written");
    CHECK(!munmap(p, 8192), "munmap");
    try_write(a, b, mr->rkey, p, IBV_WC_REM_ACCESS_ERR, "memory that is not there");
    map_at(p, PROT_READ | PROT_WRITE);
    try_write(a, b, mr->rkey, p, IBV_WC_SUCCESS, "memory that is there again");
    CHECK_IS(p[0], 7, "the byte there");
}

static void part_on_demand(struct side *s)
{
    uint8_t *p = map_at(NULL, PROT_READ | PROT_WRITE);
    struct ibv_mr *mr;
    struct end a, b;

    on_demand(s, IBV_ODP_SUPPORT);
    pair(s, &a, &b);
    mr = ibv_reg_mr(s->pd, p, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
    CHECK(mr, "%s", strerror(errno));
    use_unpinned(&a, &b, mr, p);
    try_write(&a, &b, mr->rkey, p + 8192, IBV_WC_REM_ACCESS_ERR, "beyond the region");
    CHECK(!ibv_dereg_mr(mr), "deregister");
}

static void all_on_demand(struct side *s)
{
    uint8_t *p = map_at(NULL, PROT_READ | PROT_WRITE);
    struct ibv_mr *mr, *source;
    struct request r;
    struct end a, b;

    on_demand(s, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
    pair(s, &a, &b);
    mr = ibv_reg_mr(s->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);
    source = ibv_reg_mr(s->pd, NULL, SIZE_MAX, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
    CHECK(mr && source, "%s", strerror(errno));
    use_unpinned(&a, &b, mr, p);
    try_write(&a, &b, source->rkey, p, IBV_WC_REM_ACCESS_ERR, "a region that cannot be written");
    request_make(&r, &a, IBV_WR_RDMA_WRITE, 1, 0, 8);
    r.wr.wr.rdma.rkey = mr->rkey;
    r.wr.wr.rdma.remote_addr = (uintptr_t)p;
    r.sge.lkey = source->lkey;
    CHECK(!munmap(p, 8192), "munmap");
    r.sge.addr = (uintptr_t)p;
    CHECK(!request_post(&a, &r), "post");
    wc_wait(a.cq, 1, IBV_WC_LOC_PROT_ERR, "from memory that is not there");
    CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(source), "deregister");
}

/* ---- windows --------------------------------------------------------------------------------------------------- */

static struct ibv_mw *make_window(struct side *s, enum ibv_mw_type type)
{
    int flag = type == IBV_MW_TYPE_1 ? IBV_DEVICE_MEM_WINDOW : IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    struct ibv_mw *mw;

    SKIP_UNLESS(s->attr.device_cap_flags & (unsigned)flag, "no windows of type %d on this device", (int)type);
    mw = ibv_alloc_mw(s->pd, type);
    CHECK(mw, "%s", strerror(errno));
    return mw;
}

static void window_1(struct side *s)
{
    struct ibv_mw *mw = make_window(s, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = 9, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_mr *mr;
    struct end a, b;

    pair(s, &a, &b);
    mr = side_region(s, NULL, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    bind.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)mr->addr + 4096, 64, IBV_ACCESS_REMOTE_WRITE};
    CHECK(!ibv_bind_mw(b.qp, mw, &bind), "bind");
    CHECK_IS(EXPECT(b.cq, 9, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW, "opcode");
    memset(a.buf, 6, 8);
    try_write(&a, &b, mw->rkey, (uint8_t *)mr->addr + 4096, IBV_WC_SUCCESS, "in the window");
    CHECK_IS(((uint8_t *)mr->addr)[4096], 6, "the byte there");
    try_write(&a, &b, mw->rkey, mr->addr, IBV_WC_REM_ACCESS_ERR, "beside the window");
    CHECK(ibv_dereg_mr(mr), "a region with a window was deregistered");
    CHECK(!ibv_dealloc_mw(mw), "window");
    CHECK(!ibv_dereg_mr(mr), "region");
}

static void bind_2(struct end *b, struct ibv_mw *mw, struct ibv_mr *mr, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW}, *bad;

    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)mr->addr, 64, IBV_ACCESS_REMOTE_WRITE};
    CHECK(!ibv_post_send(b->qp, &wr, &bad), "post");
    EXPECT(b->cq, 9, IBV_WC_SUCCESS);
}

static void window_2(struct side *s)
{
    struct ibv_mw *mw = make_window(s, IBV_MW_TYPE_2);
    struct ibv_send_wr wr = {.wr_id = 11, .opcode = IBV_WR_LOCAL_INV}, *bad;
    uint32_t key = ibv_inc_rkey(mw->rkey);
    struct request r;
    struct ibv_mr *mr;
    struct ibv_wc wc;
    struct end a, b;

    pair(s, &a, &b);
    mr = side_region(s, NULL, 8192, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    bind_2(&b, mw, mr, key);
    try_write(&a, &b, key, mr->addr, IBV_WC_SUCCESS, "in the window");
    wr.invalidate_rkey = key;
    CHECK(!ibv_post_send(b.qp, &wr, &bad), "post");
    CHECK_IS(EXPECT(b.cq, 11, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV, "opcode");
    try_write(&a, &b, key, mr->addr, IBV_WC_REM_ACCESS_ERR, "an invalidated window");
    /* the other side invalidates */
    key = ibv_inc_rkey(key);
    bind_2(&b, mw, mr, key);
    recv_post(&b, 12, 0, 64);
    request_make(&r, &a, IBV_WR_SEND_WITH_INV, 13, 0, 8);
    r.wr.invalidate_rkey = key;
    CHECK(!request_post(&a, &r), "post");
    EXPECT(a.cq, 13, IBV_WC_SUCCESS);
    wc = EXPECT(b.cq, 12, IBV_WC_SUCCESS);
    CHECK((wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == key, "flags %#x, key %#x", wc.wc_flags,
          wc.invalidated_rkey);
    try_write(&a, &b, key, mr->addr, IBV_WC_REM_ACCESS_ERR, "a window that the other invalidated");
}

static void domains(struct side *s)
{
    struct ibv_td_init_attr init = {0};
    struct ibv_parent_domain_init_attr parent = {.pd = s->pd};
    struct ibv_td *td = ibv_alloc_td(s->ctx, &init);
    struct ibv_pd *pd;
    struct ibv_mr *mr;

    SKIP_UNLESS(td, "no thread domains on this device");
    parent.td = td;
    CHECK((pd = ibv_alloc_parent_domain(s->ctx, &parent)), "%s", strerror(errno));
    CHECK_IS(ibv_dealloc_td(td), EBUSY, "a thread domain in use");
    CHECK_IS(ibv_dealloc_pd(s->pd), EBUSY, "a domain in use");
    mr = side_region(s, pd, 4096, side_mr_access(s));
    CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_dealloc_td(td) && !ibv_dealloc_pd(s->pd), "destroy");
}

static const struct test_case cases[] = {
    {"registering", registering, false},
    {"keys of regions that are gone", old_keys, false},
    {"addresses of one's choice", other_addresses, false},
    {"zero based", zero_based, false},
    {"changing a region", changed, false},
    {"a region on demand", part_on_demand, false},
    {"all memory on demand", all_on_demand, false},
    {"windows of type 1", window_1, false},
    {"windows of type 2", window_2, false},
    {"thread and parent domains", domains, false},
};
const struct theme theme_memory = {"memory", cases, COUNT(cases)};
