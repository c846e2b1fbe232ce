/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every way to wait for a time, in a process that uses verbs: each prints its time by the clock, to the microsecond of
 * the expected simulated time, or its error. Another thread beside must not keep time going.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t rung;
static struct ibv_context *ctx;
static struct ibv_cq *cq;

static void on_alarm(int sig)
{
    rung++;
}

static int64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000ll + ts.tv_nsec / 1000;
}

/* Within a thousandth and ten microseconds: readings of the clock cost something. */
static void report(const char *what, int64_t from, int64_t want)
{
    int64_t took = now_us() - from;

    printf("%s: %s", what, took >= want && took <= want + want / 1000 + 10 ? "right\n" : "");
    if (took < want || took > want + want / 1000 + 10)
        printf("%lld us instead of %lld\n", (long long)took, (long long)want);
}

static void poll_until_rung(int times)
{
    struct ibv_wc wc;

    while (rung < times)
        ibv_poll_cq(cq, 1, &wc);
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    ts.tv_nsec += ms * 1000000;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return ts;
}

static void signals(void)
{
    const struct itimerval each = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    const struct itimerspec once = {{0, 0}, {0, 30000000}};
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct timespec left, second = {1, 0};
    struct itimerval got;
    timer_t timer;
    int64_t from = now_us();

    rung = 0;
    alarm(1);
    poll_until_rung(1);
    report("alarm, while polling", from, 1000000);

    rung = 0;
    from = now_us();
    setitimer(ITIMER_REAL, &each, NULL);
    poll_until_rung(5);
    report("setitimer, five times", from, 100000);
    getitimer(ITIMER_REAL, &got);
    printf("getitimer: %s\n", got.it_value.tv_usec > 0 && got.it_interval.tv_usec == 20000 ? "right" : "wrong");
    setitimer(ITIMER_REAL, &none, NULL);

    rung = 0;
    from = now_us();
    if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &once, NULL))
        perror("timer_create");
    errno = nanosleep(&second, &left) ? errno : 0;
    report("timer_create, which ends a sleep", from, 30000);
    printf("the sleep says: %s\n", errno == EINTR && rung == 1 && left.tv_nsec > 969000000 ? "right" : "wrong");
    timer_delete(timer);

    rung = 0;
    from = now_us();
    setitimer(ITIMER_REAL, &each, NULL);
    pause();
    report("pause", from, 20000);
    setitimer(ITIMER_REAL, &none, NULL);
}

static void descriptors(void)
{
    const struct itimerspec when = {{0, 10000000}, {0, 25000000}};
    struct epoll_event ev = {.events = EPOLLIN}, out;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), ep = epoll_create1(0), pipes[2];
    int64_t from = now_us();
    uint64_t count = 0;
    struct pollfd p;
    struct timeval tv = {0, 40000};
    fd_set set;

    timerfd_settime(fd, 0, &when, NULL);
    if (read(fd, &count, sizeof count) != sizeof count)
        perror("read");
    report("timerfd, read", from, 25000);
    p = (struct pollfd){.fd = fd, .events = POLLIN};
    printf("poll: %d\n", poll(&p, 1, -1));
    report("timerfd, polled", from, 35000);
    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
    if (read(fd, &count, sizeof count) != sizeof count || count != 1)
        printf("%llu endings\n", (unsigned long long)count);
    printf("epoll_wait: %d\n", epoll_wait(ep, &out, 1, 1000));
    report("timerfd, in an epoll set", from, 45000);
    close(fd);

    if (pipe(pipes))
        perror("pipe");
    p.fd = pipes[0];
    from = now_us();
    printf("poll: %d\n", poll(&p, 1, 150));
    report("poll's time-out", from, 150000);
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    from = now_us();
    printf("select: %d\n", select(pipes[0] + 1, &set, NULL, NULL, &tv));
    report("select's time-out", from, 40000);
    printf("and its set is %s\n", FD_ISSET(pipes[0], &set) ? "wrong" : "empty");
    ev.data.fd = pipes[0];
    epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &ev);
    from = now_us();
    printf("epoll_wait: %d\n", epoll_wait(ep, &out, 1, 30));
    report("epoll_wait's time-out", from, 30000);
}

static void threads(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    int64_t from;
    sem_t sem;

    sem_init(&sem, 0, 0);
    from = now_us();
    until = in_ms(CLOCK_REALTIME, 60);
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&cond, &mutex, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&mutex);
    report("pthread_cond_timedwait", from, 60000);
    from = now_us();
    until = in_ms(CLOCK_REALTIME, 60);
    if (!sem_timedwait(&sem, &until) || errno != ETIMEDOUT)
        puts("sem_timedwait: wrong");
    report("sem_timedwait", from, 60000);
}

/* A queue pair connected to itself; NULL: it cannot be. */
static struct ibv_qp *connect_to_itself(struct ibv_pd *pd)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_port_attr port;
    struct ibv_qp_attr a;

    if (!qp || ibv_query_port(ctx, 1, &port))
        return NULL;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return NULL;
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_2048,
                             .dest_qp_num = qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12,
                             .ah_attr = {.dlid = port.lid, .port_num = 1}};
    if (ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return NULL;
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC)
               ? NULL
               : qp;
}

/* Naps and polls in turn while a message of milliseconds is under way: a poll takes no longer than the nap. */
static void naps(void)
{
    enum { BYTES = 8 << 20, TIMES = 10, NAP_US = 20 };
    const struct timespec nap = {0, NAP_US * 1000};
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_qp *qp = pd ? connect_to_itself(pd) : NULL;
    char *room = malloc(2 * BYTES);
    struct ibv_mr *mr =
        pd && room ? ibv_reg_mr(pd, room, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
    struct ibv_sge sge = {.addr = (uintptr_t)room, .length = BYTES, .lkey = mr ? mr->lkey : 0};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_wc wc;
    int64_t from;
    int got = 0;

    wr.wr.rdma.remote_addr = sge.addr + BYTES;
    wr.wr.rdma.rkey = mr ? mr->rkey : 0;
    if (!qp || !mr || ibv_post_send(qp, &wr, &bad)) {
        puts("no queue pair");
        return;
    }
    from = now_us();
    for (int i = 0; i < TIMES && !got; i++) {
        nanosleep(&nap, NULL);
        got = ibv_poll_cq(cq, 1, &wc);
    }
    if (got) {
        puts("the message is there already");
        return;
    }
    report("naps and empty polls in turns", from, TIMES * 2 * NAP_US);
    from = now_us();
    while (!ibv_poll_cq(cq, 1, &wc)) /* with no nap before them they take as long as need be */
        got++;
    printf("empty polls until it is there: %s\n", got < TIMES && now_us() - from > 1000 ? "right" : "wrong");
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct sigaction act = {.sa_handler = on_alarm};

    setvbuf(stdout, NULL, _IOLBF, 0);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    cq = ctx ? ibv_create_cq(ctx, 10, NULL, NULL, 0) : NULL;
    if (!cq) {
        puts("no adapter");
        return 1;
    }
    sigaction(SIGALRM, &act, NULL);
    sigaction(SIGUSR1, &act, NULL);
    signals();
    descriptors();
    threads();
    naps();
    return 0;
}
