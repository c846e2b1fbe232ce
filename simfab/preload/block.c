/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait in the kernel for events hidden from simfab: sockets, children, other threads. An actor tells the
 * engine before the wait, so virtual time can go on for the other actors at once. Calls that are ready, or do not wait,
 * are not announced, because time must not slip there. (read and write are in umad.c, with the devices.)
 *
 * Waiting for our own pipes (completion channels, asynchronous events) is different: their events have a virtual time,
 * at which the engine itself resumes the actor. So a poll or epoll that includes such a pipe waits as an idle actor
 * does.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/marks.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/trap.h"
#include "simfab/preload/verbs_cq.h"

/* Wraps a call on one descriptor. */
#define ON(fd, events, flags, expr)                                                                                    \
    ({                                                                                                                 \
        bool waits_ = !((flags)&MSG_DONTWAIT) && sfp_block_begin_on((fd), (events));                                   \
        bool counts_ = waits_ && sfp_waiter_begins();                                                                  \
        __typeof__(expr) result_ = (expr);                                                                             \
        if (waits_) {                                                                                                  \
            sfp_waiter_ends(counts_);                                                                                  \
            sfp_block_end();                                                                                           \
        }                                                                                                              \
        result_;                                                                                                       \
    })

/* Wraps any call that may wait. */
#define WAITING(expr)                                                                                                  \
    ({                                                                                                                 \
        sfp_guest_leaves();                                                                                            \
        sfp_block_begin();                                                                                             \
        __typeof__(expr) result_ = (expr);                                                                             \
        sfp_block_end();                                                                                               \
        result_;                                                                                                       \
    })

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size);

/* ---- sockets --------------------------------------------------------------------------------------------------- */

SFP_EXPORT ssize_t recv(int fd, void *buf, size_t n, int flags)
{
    return ON(fd, POLLIN, flags, SFP_REAL(recv)(fd, buf, n, flags));
}

SFP_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
    return ON(fd, POLLIN, flags, SFP_REAL(__recv_chk)(fd, buf, n, size, flags));
}

SFP_EXPORT ssize_t recvfrom(int fd, void *restrict buf, size_t n, int flags, struct sockaddr *restrict addr,
                            socklen_t *restrict len)
{
    return ON(fd, POLLIN, flags, SFP_REAL(recvfrom)(fd, buf, n, flags, addr, len));
}

SFP_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr,
                                  socklen_t *len)
{
    return ON(fd, POLLIN, flags, SFP_REAL(__recvfrom_chk)(fd, buf, n, size, flags, addr, len));
}

SFP_EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    return ON(fd, POLLIN, flags, SFP_REAL(recvmsg)(fd, msg, flags));
}

SFP_EXPORT ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    sfp_clock_settle(fd);
    return ON(fd, POLLOUT, flags, SFP_REAL(send)(fd, buf, n, flags));
}

SFP_EXPORT ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr, socklen_t len)
{
    sfp_clock_settle(fd);
    return ON(fd, POLLOUT, flags, SFP_REAL(sendto)(fd, buf, n, flags, addr, len));
}

SFP_EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    sfp_clock_settle(fd);
    return ON(fd, POLLOUT, flags, SFP_REAL(sendmsg)(fd, msg, flags));
}

SFP_EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
    return ON(fd, POLLIN, 0, SFP_REAL(readv)(fd, iov, n));
}

SFP_EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
    sfp_clock_settle(fd);
    return ON(fd, POLLOUT, 0, SFP_REAL(writev)(fd, iov, n));
}

/*
 * The sender's kernel may hold a small segment until the receiver's kernel has acknowledged the previous segment, after
 * up to 40 ms of real time in which no thread runs. Written data must be under way at once, so that only the programs'
 * actions decide the time of arrival.
 */
static int hold_nothing_back(int fd)
{
    int e = errno;

    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* sockets other than TCP refuse the option */
    errno = e;
    return fd;
}

SFP_EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    hold_nothing_back(fd);
    sfp_clock_settle(fd);
    return WAITING(SFP_REAL(connect)(fd, addr, len));
}

SFP_EXPORT int accept(int fd, struct sockaddr *restrict addr, socklen_t *restrict len)
{
    return hold_nothing_back(ON(fd, POLLIN, 0, SFP_REAL(accept)(fd, addr, len)));
}

SFP_EXPORT int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict len, int flags)
{
    return hold_nothing_back(ON(fd, POLLIN, 0, SFP_REAL(accept4)(fd, addr, len, flags)));
}

/* ---- our pipes ------------------------------------------------------------------------------------------------- */

static bool any_marked(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++)
        if (sfp_fd_is_marked(fds[i].fd))
            return true;
    return false;
}

SFP_EXPORT int epoll_create(int size)
{
    int fd = SFP_REAL(epoll_create)(size);

    sfp_mark_fd(fd, false);
    return fd;
}

SFP_EXPORT int epoll_create1(int flags)
{
    int fd = SFP_REAL(epoll_create1)(flags);

    sfp_mark_fd(fd, false);
    return fd;
}

SFP_EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    int st = SFP_REAL(epoll_ctl)(epfd, op, fd, event);

    if (st == 0 && op == EPOLL_CTL_ADD && sfp_fd_is_marked(fd))
        sfp_mark_fd(epfd, true);
    return st;
}

/*
 * An actor waits idly, and evaluates LOOK whenever resumed; other descriptors of the set are seen when the fabric is
 * quiet. Ends like a wait of timeout_ns that LOOK would end, -2 when the engine is gone.
 */
#define IDLE_WAIT(timeout_ns, look)                                                                                    \
    ({                                                                                                                 \
        int64_t ns_ = (timeout_ns);                                                                                    \
        struct sf_actor *a_ = sfp_enter_if_actor();                                                                    \
        uint64_t until_ = ns_ > 0 ? sfp_now(a_) + (uint64_t)ns_ * SFP_PS_PER_NS : 0;                                   \
        int result_;                                                                                                   \
        while (!(result_ = (look)) && ns_ && !(until_ && sfp_now(a_) >= until_)) {                                     \
            int reason_ = sfp_wait(a_, SF_ACTOR_IDLE, until_);                                                         \
            if (reason_ < 0 || (reason_ == SFP_WAKE_SIGNAL && !(result_ = (look)))) {                                  \
                result_ = reason_ < 0 ? -2 : -1;                                                                       \
                errno = EINTR;                                                                                         \
                break;                                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        result_;                                                                                                       \
    })

static bool waits_idly(bool has_marked)
{
    return has_marked && !sfp_proc.dead && sfp_enter_if_actor();
}

/* ---- many descriptors ------------------------------------------------------------------------------------------ */

/*
 * A wait of at most timeout (ns, negative: without limit) that LOOK would end: first a look without waiting, then the
 * announced wait; a time-out moves the clock by its length. LOOK and WAIT give the number of ready descriptors. SLICE
 * is a WAIT of at most slice_ms_ real milliseconds; repeated slices make a wait that ends at a virtual time.
 */
#define MULTI(timeout_ns, look, wait, slice)                                                                           \
    ({                                                                                                                 \
        int64_t ns_ = (timeout_ns);                                                                                    \
        uint64_t until_ = ns_ > 0 ? sfp_clock_peek() + (uint64_t)ns_ * SFP_PS_PER_NS : 0;                              \
        int result_ = ns_ ? (look) : (wait), slice_ms_ = 1;                                                            \
        if (ns_ && !result_) {                                                                                         \
            sfp_guest_leaves();                                                                                        \
            sfp_block_begin_until(until_);                                                                             \
            bool counts_ = sfp_waiter_begins();                                                                        \
            if (ns_ < 0 || !sfp_is_actor() || sfp_proc.dead)                                                           \
                result_ = (wait);                                                                                      \
            else                                                                                                       \
                while (!(result_ = (slice)) && sfp_wait_goes_on(until_))                                               \
                    slice_ms_ = slice_ms_ < SFP_SLICE_MS_MAX ? slice_ms_ + 1 : SFP_SLICE_MS_MAX;                       \
            sfp_waiter_ends(counts_);                                                                                  \
            sfp_block_end();                                                                                           \
            if (!result_ && ns_ > 0)                                                                                   \
                sfp_clock_advance_to(until_);                                                                          \
        } else if (ns_) {                                                                                              \
            sfp_need_not_wait();                                                                                       \
        }                                                                                                              \
        result_;                                                                                                       \
    })

/* True for a wait without descriptors of at least a moment: a sleep. */
static bool sleeps(bool no_descriptors, int64_t ns)
{
    return no_descriptors && ns > 0;
}

static int just_sleep(int64_t ns)
{
    struct timespec ts = {.tv_sec = (time_t)((uint64_t)ns / SFP_NS_PER_S),
                          .tv_nsec = (long)((uint64_t)ns % SFP_NS_PER_S)};

    return nanosleep(&ts, NULL);
}

static int64_t ns_of_timespec(const struct timespec *ts)
{
    if (!ts)
        return -1;
    if (ts->tv_sec < 0 || ts->tv_nsec < 0)
        return 0; /* the kernel says EINVAL */
    return ts->tv_sec > 4000000000 ? -1 : ts->tv_sec * (int64_t)SFP_NS_PER_S + ts->tv_nsec;
}

SFP_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    int64_t ns = timeout < 0 ? -1 : timeout * 1000000ll;

    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(poll)(fds, n, timeout));
    if (sleeps(n == 0, ns))
        return just_sleep(ns);
    if (waits_idly(any_marked(fds, n))) {
        int st = IDLE_WAIT(ns, SFP_REAL(poll)(fds, n, 0));

        if (st != -2)
            return st;
    }
    return MULTI(ns, SFP_REAL(poll)(fds, n, 0), SFP_REAL(poll)(fds, n, timeout), SFP_REAL(poll)(fds, n, slice_ms_));
}

SFP_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
    if (n > size / sizeof *fds)
        return SFP_REAL(__poll_chk)(fds, n, timeout, size); /* complains and aborts */
    return poll(fds, n, timeout);
}

SFP_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    const struct timespec zero = {0};
    int64_t ns = ns_of_timespec(timeout);
    sigset_t copy;

    mask = sfp_trap_unblocked(mask, &copy);
    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(ppoll)(fds, n, timeout, mask));
    return MULTI(ns, SFP_REAL(ppoll)(fds, n, &zero, mask), SFP_REAL(ppoll)(fds, n, timeout, mask),
                 SFP_REAL(ppoll)(fds, n, &(struct timespec){.tv_nsec = slice_ms_ * 1000000}, mask));
}

SFP_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                           size_t size)
{
    if (n > size / sizeof *fds)
        return SFP_REAL(__ppoll_chk)(fds, n, timeout, mask, size);
    return ppoll(fds, n, timeout, mask);
}

/* select overwrites its sets, so there is no look in advance, and the sets are restored before each further call. */
struct sets {
    fd_set r, w, e;
};

static struct sets keep_sets(const fd_set *r, const fd_set *w, const fd_set *e)
{
    struct sets s;

    FD_ZERO(&s.r);
    FD_ZERO(&s.w);
    FD_ZERO(&s.e);
    if (r)
        s.r = *r;
    if (w)
        s.w = *w;
    if (e)
        s.e = *e;
    return s;
}

static void put_sets(const struct sets *s, fd_set *r, fd_set *w, fd_set *e)
{
    if (r)
        *r = s->r;
    if (w)
        *w = s->w;
    if (e)
        *e = s->e;
}

SFP_EXPORT int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e, struct timeval *restrict tv)
{
    int64_t ns = tv ? tv->tv_sec * (int64_t)SFP_NS_PER_S + tv->tv_usec * 1000 : -1;
    struct sets want;
    int st;

    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(select)(n, r, w, e, tv));
    if (sleeps(!r && !w && !e, ns)) {
        st = just_sleep(ns);
        tv->tv_sec = tv->tv_usec = 0;
        return st;
    }
    if (n > FD_SETSIZE)
        return WAITING(SFP_REAL(select)(n, r, w, e, tv));
    want = keep_sets(r, w, e);
    st =
        MULTI(ns, 0, SFP_REAL(select)(n, r, w, e, tv),
              (put_sets(&want, r, w, e), SFP_REAL(select)(n, r, w, e, &(struct timeval){.tv_usec = slice_ms_ * 1000})));
    if (tv && ns > 0 && st == 0)
        tv->tv_sec = tv->tv_usec = 0;
    return st;
}

SFP_EXPORT int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
                       const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
    int64_t ns = ns_of_timespec(timeout);
    struct sets want;
    sigset_t copy;

    mask = sfp_trap_unblocked(mask, &copy);
    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(pselect)(n, r, w, e, timeout, mask));
    if (sleeps(!r && !w && !e && !mask, ns))
        return just_sleep(ns);
    if (n > FD_SETSIZE)
        return WAITING(SFP_REAL(pselect)(n, r, w, e, timeout, mask));
    want = keep_sets(r, w, e);
    return MULTI(ns, 0, SFP_REAL(pselect)(n, r, w, e, timeout, mask),
                 (put_sets(&want, r, w, e),
                  SFP_REAL(pselect)(n, r, w, e, &(struct timespec){.tv_nsec = slice_ms_ * 1000000}, mask)));
}

SFP_EXPORT int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(epoll_wait)(fd, events, max, timeout));
    if (waits_idly(sfp_fd_is_marked(fd))) {
        int st = IDLE_WAIT(timeout < 0 ? -1 : timeout * 1000000ll, SFP_REAL(epoll_wait)(fd, events, max, 0));

        if (st != -2)
            return st;
    }
    return MULTI(timeout < 0 ? -1 : timeout * 1000000ll, SFP_REAL(epoll_wait)(fd, events, max, 0),
                 SFP_REAL(epoll_wait)(fd, events, max, timeout), SFP_REAL(epoll_wait)(fd, events, max, slice_ms_));
}

SFP_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    sigset_t copy;

    mask = sfp_trap_unblocked(mask, &copy);
    if (!sfp_clock_is_virtual())
        return WAITING(SFP_REAL(epoll_pwait)(fd, events, max, timeout, mask));
    return MULTI(timeout < 0 ? -1 : timeout * 1000000ll, SFP_REAL(epoll_pwait)(fd, events, max, 0, mask),
                 SFP_REAL(epoll_pwait)(fd, events, max, timeout, mask),
                 SFP_REAL(epoll_pwait)(fd, events, max, slice_ms_, mask));
}

/* ---- children -------------------------------------------------------------------------------------------------- */

SFP_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
    return options & WNOHANG ? SFP_REAL(waitpid)(pid, status, options)
                             : WAITING(SFP_REAL(waitpid)(pid, status, options));
}

SFP_EXPORT pid_t wait(int *status)
{
    return WAITING(SFP_REAL(wait)(status));
}

SFP_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return WAITING(SFP_REAL(wait4)(pid, status, options, usage));
}
