/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that share everything, forked children, objects made again and again. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/suite.h"

enum { THREADS = 4, EACH = 100 };

/* Several threads post to one queue pair and poll one queue, each taking any thread's completions. */
struct crowd {
    struct end *a;
    unsigned completed, failed, refused;
};

static void *post_and_poll(void *arg)
{
    struct crowd *c = arg;
    struct request r;
    struct ibv_wc wc;

    for (unsigned done = 0; done < EACH;) {
        request_make(&r, c->a, IBV_WR_SEND, done, 0, 64);
        r.wr.sg_list = &r.sge;
        if (!ibv_post_send(c->a->qp, &r.wr, &(struct ibv_send_wr *){NULL}))
            done++;
        else
            __atomic_add_fetch(&c->refused, 1, __ATOMIC_RELAXED);
        while (ibv_poll_cq(c->a->cq, 1, &wc) == 1) {
            __atomic_add_fetch(&c->completed, 1, __ATOMIC_RELAXED);
            if (wc.status)
                __atomic_add_fetch(&c->failed, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

/* Another thread takes receive completions and posts receive requests again. */
static void *receive(void *arg)
{
    struct end *b = arg;
    unsigned n = 0, failed = 0;
    struct ibv_wc wc;

    for (int patience = 0; n < THREADS * EACH && patience < 100000; patience++) {
        if (ibv_poll_cq(b->cq, 1, &wc) != 1) {
            if (patience % 8 == 7)
                sleep_ms(1);
            continue;
        }
        n++;
        failed += wc.status || recv_try(b, n, 0, 64, b->mr->lkey);
    }
    return (void *)(uintptr_t)(n - failed);
}

static void threads(struct side *s)
{
    struct end_options o = {.recv_wr = 32, .cqe = 128};
    pthread_t thread[THREADS], receiver;
    struct end a, b;
    struct crowd c = {.a = &a};
    struct ibv_wc wc;
    void *n;

    end_make(&a, s, &o);
    end_make(&b, s, &o);
    end_loop(&a, &b);
    for (uint64_t i = 0; i < 32; i++)
        recv_post(&b, i, 0, 64);
    CHECK(!pthread_create(&receiver, NULL, receive, &b), "thread");
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&thread[i], NULL, post_and_poll, &c), "thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_join(receiver, &n);
    for (int i = 0; i < 5000 && c.completed < THREADS * EACH; i++) {
        if (ibv_poll_cq(a.cq, 1, &wc) == 1)
            c.completed++, c.failed += wc.status != 0;
        else
            sleep_ms(1);
    }
    CHECK_IS(c.completed, THREADS * EACH, "sends that completed");
    CHECK_IS(c.failed, 0, "sends that failed");
    CHECK_IS((uintptr_t)n, THREADS * EACH, "messages received");
}

/* Threads make and destroy objects of one context at once. */
static void *make_and_destroy(void *arg)
{
    struct side *s = arg;
    uintptr_t bad = 0;

    for (int i = 0; i < 10; i++) {
        struct ibv_cq *cq = ibv_create_cq(s->ctx, 8, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp = cq ? ibv_create_qp(s->pd, &init) : NULL;
        struct ibv_mr *mr = ibv_reg_mr(s->pd, &init, sizeof init, 0);

        bad += !qp || !mr || ibv_dereg_mr(mr) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq);
    }
    return (void *)bad;
}

static void threads_make_objects(struct side *s)
{
    pthread_t thread[THREADS];
    void *bad;

    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&thread[i], NULL, make_and_destroy, s), "thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &bad);
        CHECK(!bad, "%d of 10 failed", (int)(uintptr_t)bad);
    }
    CHECK(!ibv_dealloc_pd(s->pd), "something was left");
}

/* A child opens the device anew and works; the parent's connection works on, before and after the child's end. */
static void forked_child(struct side *s)
{
    struct end a, b;
    int status;
    pid_t pid;

    end_make(&a, s, NULL);
    end_make(&b, s, NULL);
    end_loop(&a, &b);
    pid = fork();
    CHECK(pid >= 0, "fork");
    if (!pid) {
        struct ibv_device **list = ibv_get_device_list(NULL);
        struct side mine = *s;
        struct end c, d;

        for (int i = 0; list && list[i]; i++)
            if (!strcmp(ibv_get_device_name(list[i]), ibv_get_device_name(s->ctx->device)))
                mine.ctx = ibv_open_device(list[i]);
        CHECK(mine.ctx != s->ctx && (mine.pd = ibv_alloc_pd(mine.ctx)), "the child's device");
        end_make(&c, &mine, NULL);
        end_make(&d, &mine, NULL);
        end_loop(&c, &d);
        recv_post(&d, 1, 0, 64);
        send_post(&c, IBV_WR_SEND, 1, 0, 64);
        EXPECT(d.cq, 1, IBV_WC_SUCCESS);
        EXPECT(c.cq, 1, IBV_WC_SUCCESS);
        _exit(0);
    }
    for (uint64_t i = 0; i < 2; i++) {
        recv_post(&b, i, 0, 64);
        fill(a.buf, 64, (unsigned)i);
        send_post(&a, IBV_WR_SEND, i, 0, 64);
        wc_wait(b.cq, i, IBV_WC_SUCCESS, "the parent's");
        wc_wait(a.cq, i, IBV_WC_SUCCESS, "the parent's");
        CHECK(i || waitpid(pid, &status, 0) == pid, "waitpid");
        CHECK(!status, "the child ended with %#x", status);
    }
}

/* Numbers of queue pairs are not reused at once, and packets for the old queue pair do not reach the new one. */
static void made_again(struct side *s)
{
    uint32_t last = 0;
    struct end a, b;

    for (int i = 0; i < 40; i++) {
        end_make(&a, s, NULL);
        end_make(&b, s, NULL);
        CHECK(a.qp->qp_num != b.qp->qp_num && a.qp->qp_num != last, "the same number");
        last = a.qp->qp_num;
        end_loop(&a, &b);
        recv_post(&b, 1, 0, 64);
        send_post(&a, IBV_WR_SEND, 1, 0, 64);
        if (i % 2)
            EXPECT(a.cq, 1, IBV_WC_SUCCESS);
        CHECK(!ibv_destroy_qp(i % 3 ? a.qp : b.qp) && !ibv_destroy_qp(i % 3 ? b.qp : a.qp), "destroy");
        CHECK(!ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq) && !ibv_dereg_mr(a.mr) && !ibv_dereg_mr(b.mr), "destroy");
    }
}

static void close_in_order(struct side *s)
{
    CHECK(!ibv_dealloc_pd(s->pd), "domain");
    CHECK(!ibv_close_device(s->ctx), "device");
}

static const struct test_case cases[] = {
    {"threads on one queue pair and one queue", threads, false},
    {"threads making objects", threads_make_objects, false},
    {"a forked child", forked_child, false},
    {"made and destroyed again and again", made_again, false},
    {"closed", close_in_order, false},
};
const struct theme theme_process = {"process", cases, COUNT(cases)};
