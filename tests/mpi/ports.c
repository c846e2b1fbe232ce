/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections between jobs. Jobs tell each other the name of the port by a file. Cases:
 *
 *     serve FILE ROUNDS, call FILE ROUNDS   two jobs, connected and disconnected so many times
 *     a FILE, b FILE, c FILE                three jobs in one communicator: b and c meet through a only
 *     many-serve FILE ROUNDS, many-call ... the same; what the processes have afterwards
 *     within                                two halves of one job
 *     names [SCOPE]                         names of services
 *     named serve|call [SCOPE]              two jobs that meet by the name of a service
 *     nameless [SCOPE]                      nobody keeps names
 *     errors                                wrong and closed ports
 *     join PATH listen|call                 over a socket of the program
 *     die FILE, mourn FILE                  a job that dies
 *     cut FILE flood|read                   a job that dies while it sends, and one that receives
 *     leave FILE, stay FILE                 a job that ends without a word
 *     slow FILE                             as call, with a rest longer than a stranger is borne
 *     crowded FILE                          serves, while strangers connect to the socket and say nothing
 *     wide FILE serve|call                  large jobs: connected, merged, each process with each; how long it took
 *     threads FILE serve|call               two threads of each process connect at once, with ports of their own
 *     rails FILE serve|call [one|all N [FAULT [FOR]]]  messages between a rank on the first host and one on the second;
 *                                           in the middle of round N a rail gets the fault of simfab, or all do
 */
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kept.h"
#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* ---- the name of the port goes through a file ---- */

static void put_name(const char *file, const char *name)
{
    char tmp[4096];
    FILE *f;
    snprintf(tmp, sizeof(tmp), "%s.new", file);
    f = fopen(tmp, "w");
    CHECK(f && fputs(name, f) >= 0 && !fclose(f));
    EQ(rename(tmp, file), 0);
}

static void get_name(const char *file, char *name)
{
    FILE *f;
    while (!(f = fopen(file, "r")))
        usleep(10000);
    CHECK(fgets(name, MPI_MAX_PORT_NAME, f));
    fclose(f);
}

static MPI_Comm accept_at(const char *port, MPI_Comm comm)
{
    MPI_Comm inter;
    int n, inside;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, comm, &inter);
    MPI_Comm_test_inter(inter, &inside);
    CHECK(inside);
    MPI_Comm_remote_size(inter, &n);
    CHECK(n > 0);
    return inter;
}

static MPI_Comm serve(const char *file, MPI_Comm comm, char *port)
{
    int me;
    MPI_Comm_rank(comm, &me);
    if (me == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        put_name(file, port);
    }
    return accept_at(port, comm);
}

static MPI_Comm call(const char *file, MPI_Comm comm)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int me;
    MPI_Comm_rank(comm, &me);
    if (me == 0)
        get_name(file, port);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, comm, &inter);
    return inter;
}

/* ---- what a communicator of several jobs does ---- */

enum { LONGEST = 3 << 20 };
static const int lengths[] = {0, 1, 64, 1024, 16 << 10, (16 << 10) + 1, 100000, LONGEST};
static _Thread_local unsigned char *out, *in;

static void fill(int len, int from, int to)
{
    for (int i = 0; i < len; i++)
        out[i] = (unsigned char)(i * 7 + from * 31 + to * 5 + len);
}

static void check(int len, int from, int to)
{
    for (int i = 0; i < len; i++)
        if (in[i] != (unsigned char)(i * 7 + from * 31 + to * 5 + len))
            EQ(in[i], (unsigned char)(i * 7 + from * 31 + to * 5 + len));
}

/* Every pair of c, or of the two groups. */
static void messages(MPI_Comm c, int me, int num)
{
    for (unsigned l = 0; l < sizeof(lengths) / sizeof(*lengths); l++)
        for (int step = 0; step < num; step++) {
            int to = (me + step) % num, inter, n, from;
            MPI_Request r;
            MPI_Status s;
            MPI_Comm_test_inter(c, &inter);
            if (inter && (me >= num || step))
                continue;
            from = inter ? me : (me - step + num) % num;
            to = inter ? me : to;
            MPI_Irecv(in, LONGEST, MPI_BYTE, step % 2 && !inter ? from : MPI_ANY_SOURCE, (int)l, c, &r);
            fill(lengths[l], me, to);
            if (step % 3)
                MPI_Ssend(out, lengths[l], MPI_BYTE, to, (int)l, c);
            else
                MPI_Send(out, lengths[l], MPI_BYTE, to, (int)l, c);
            MPI_Wait(&r, &s);
            EQ(s.MPI_SOURCE, from);
            MPI_Get_count(&s, MPI_BYTE, &n);
            EQ(n, lengths[l]);
            check(n, from, me);
            if (!inter)
                MPI_Barrier(c);
        }
}

static void of_two_groups(MPI_Comm inter)
{
    int me, mine, theirs, sum = 0, all[64], value, root;
    MPI_Comm dup, split;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    messages(inter, me, mine < theirs ? mine : theirs);
    MPI_Barrier(inter);
    value = me + 1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
    EQ(sum, theirs * (theirs + 1) / 2);
    MPI_Allgather(&me, 1, MPI_INT, all, 1, MPI_INT, inter);
    for (int i = 0; i < theirs; i++)
        EQ(all[i], i);
    MPI_Comm_dup(inter, &dup);
    MPI_Comm_compare(inter, dup, &value);
    EQ(value, MPI_CONGRUENT);
    MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, dup);
    EQ(all[0], theirs);
    MPI_Comm_split(dup, me % 2, me, &split);
    if (split != MPI_COMM_NULL) {
        MPI_Comm_remote_size(split, &root);
        EQ(root, (theirs + (me % 2 ? 0 : 1)) / 2);
        MPI_Barrier(split);
        MPI_Comm_disconnect(&split);
    } else {
        CHECK(me % 2 && theirs < 2);
    }
    MPI_Comm_disconnect(&dup);
}

static void of_group(MPI_Comm c)
{
    int me, n, sum, *all, value, left, right;
    MPI_Comm dup, part;
    MPI_Group g, half;
    MPI_Win win;
    MPI_Comm_rank(c, &me);
    MPI_Comm_size(c, &n);
    messages(c, me, n);
    value = me + 1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, c);
    EQ(sum, n * (n + 1) / 2);
    all = calloc((size_t)n, sizeof(*all));
    MPI_Alltoall(memset(out, me, (size_t)n * 1000), 1000, MPI_BYTE, in, 1000, MPI_BYTE, c);
    for (int i = 0; i < n * 1000; i++)
        EQ(in[i], i / 1000);
    for (int root = 0; root < n; root++) {
        memset(out, me == root ? root + 1 : 0, 200000);
        MPI_Bcast(out, 200000, MPI_BYTE, root, c);
        EQ(out[199999], root + 1);
    }
    MPI_Comm_dup(c, &dup);
    MPI_Comm_split(dup, me % 2, -me, &part);
    MPI_Comm_size(part, &value);
    EQ(value, (n + (me % 2 ? 0 : 1)) / 2);
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_MAX, part);
    MPI_Comm_free(&part);

    /* processes of different jobs share no node */
    MPI_Comm_split_type(dup, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_group(MPI_COMM_WORLD, &half);
    MPI_Comm_group(part, &g);
    for (MPI_Comm_size(part, &value); value--;) {
        int there;
        MPI_Group_translate_ranks(g, 1, &value, half, &there);
        CHECK(there != MPI_UNDEFINED);
    }
    MPI_Group_free(&g);
    MPI_Group_free(&half);
    MPI_Comm_free(&part);

    /* some of the members, without the others */
    MPI_Comm_group(dup, &g);
    MPI_Group_range_incl(g, 1, (int[][3]){{0, n - 1, n > 2 ? 2 : 1}}, &half);
    MPI_Comm_create_group(dup, half, 3, &part);
    if (part != MPI_COMM_NULL) {
        MPI_Barrier(part);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&g);
    MPI_Group_free(&half);

    MPI_Win_create(all, (MPI_Aint)((size_t)n * sizeof(*all)), sizeof(*all), MPI_INFO_NULL, dup, &win);
    MPI_Win_fence(0, win);
    for (int to = 0; to < n; to++)
        MPI_Put(&me, 1, MPI_INT, to, me, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < n; i++)
        EQ(all[i], i);
    left = (me + n - 1) % n;
    right = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, left, 0, win);
    MPI_Get(&right, 1, MPI_INT, left, me, 1, MPI_INT, win);
    MPI_Win_unlock(left, win);
    EQ(right, me);
    MPI_Win_free(&win);
    MPI_Comm_free(&dup);
    free(all);
}

static void exercise(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int me, before, mine, theirs;
    MPI_Comm_rank(inter, &before);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    of_two_groups(inter);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_rank(all, &me);
    EQ(me, before + (high ? theirs : 0));
    of_group(all);
    MPI_Comm_disconnect(&all);
    MPI_Intercomm_merge(inter, 0, &all); /* both say the same: either order, but one for all */
    MPI_Comm_rank(all, &me);
    EQ((me - before) % (theirs ? theirs : 1), 0);
    MPI_Allgather(&me, 1, MPI_INT, in, 1, MPI_INT, all);
    for (int i = 0; i < mine + theirs; i++)
        EQ(((int *)in)[i], i);
    MPI_Comm_disconnect(&all);
}

/* ---- cases ---- */

static void serves(const char *file, int rounds)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = serve(file, MPI_COMM_WORLD, port);
    for (int i = 0;; i++) {
        exercise(inter, i % 2);
        MPI_Comm_disconnect(&inter);
        EQ(inter, MPI_COMM_NULL);
        if (i + 1 == rounds)
            break;
        inter = accept_at(port, MPI_COMM_WORLD);
    }
    if (rank == 0)
        MPI_Close_port(port);
}

static void calls(const char *file, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter = call(file, MPI_COMM_WORLD);
        exercise(inter, !(i % 2));
        MPI_Comm_disconnect(&inter);
    }
}

static void slow(const char *file)
{
    MPI_Comm inter = call(file, MPI_COMM_WORLD);
    sleep(7);
    exercise(inter, 1);
    MPI_Comm_disconnect(&inter);
}

/* All ends of connections have been seen: no more descriptors are left than that, and for 0.2 s none has been closed.
 */
static void see_ends(int descriptors)
{
    const struct timespec ms = {.tv_nsec = 1000000}; /* of real time, as the sockets' */
    int flag, before = 0;
    for (int i = 0, quiet = 0; i < 10000 && quiet < 200; i++, quiet++) {
        int now = kept_descriptors();
        if (now != before || now > descriptors)
            quiet = 0;
        before = now;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        syscall(SYS_nanosleep, &ms, NULL);
    }
}

/* More packets at a time than later: pools that grow have grown, and all receive buffers were written once. */
static void fill_pools(MPI_Comm inter)
{
    enum { NUM = 64, LEN = 4096 };
    MPI_Request q[2 * NUM];
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < NUM; i++)
            MPI_Irecv(in + i * LEN, LEN, MPI_BYTE, 0, i, inter, &q[i]);
        MPI_Barrier(inter);
        for (int i = 0; i < NUM; i++)
            MPI_Isend(out + i * LEN, LEN, MPI_BYTE, 0, i, inter, &q[NUM + i]);
        MPI_Waitall(2 * NUM, q, MPI_STATUSES_IGNORE);
    }
}

/* Connections end with their communicators. So many messages find their way to shared memory in each. */
enum { MANY_MESSAGES = 20 };
static void many(const char *file, int rounds, int serving)
{
    char port[MPI_MAX_PORT_NAME] = "";
    struct kept first, last;
    int got = -1;
    if (serving) {
        MPI_Open_port(MPI_INFO_NULL, port);
        put_name(file, port);
    }
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter = serving ? accept_at(port, MPI_COMM_SELF) : call(file, MPI_COMM_SELF);
        if (i < rounds / 10)
            fill_pools(inter);
        for (int k = 0; k < MANY_MESSAGES; k++) {
            MPI_Sendrecv(&i, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
            EQ(got, i);
        }
        MPI_Comm_disconnect(&inter);
        if (i == rounds / 10) {
            see_ends(INT_MAX);
            kept_measure(&first);
        }
    }
    see_ends(first.descriptors);
    kept_measure(&last);
    kept_compare(serving ? "connections accepted" : "connections made", &first, &last);
}

static void three(const char *role, const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", second[4096];
    MPI_Comm inter, ab, abc;
    int all[3] = {0}, n;
    snprintf(second, sizeof(second), "%s.c", file);
    if (*role != 'c') {
        inter = *role == 'a' ? serve(file, MPI_COMM_WORLD, port) : call(file, MPI_COMM_WORLD);
        MPI_Intercomm_merge(inter, *role == 'b', &ab);
        MPI_Comm_disconnect(&inter);
        if (*role == 'a' && rank == 0)
            put_name(second, port);
        inter = accept_at(port, ab);
    } else {
        inter = call(second, MPI_COMM_WORLD);
    }
    of_two_groups(inter);
    MPI_Intercomm_merge(inter, *role == 'c', &abc);
    of_group(abc);
    MPI_Comm_size(abc, &n);
    n = 1;
    MPI_Allreduce((int[3]){*role == 'a', *role == 'b', *role == 'c'}, all, 3, MPI_INT, MPI_SUM, abc);
    CHECK(all[0] && all[1] && all[2]);
    MPI_Comm_disconnect(&abc);
    MPI_Comm_disconnect(&inter);
    if (*role != 'c')
        MPI_Comm_disconnect(&ab);
    if (*role == 'a' && rank == 0)
        MPI_Close_port(port);
}

static void within(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank % 2)
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
    else
        inter = accept_at(port, half);
    of_two_groups(inter);
    MPI_Comm_disconnect(&inter);
    if (rank == 0)
        MPI_Close_port(port);
    MPI_Comm_free(&half);
}

static MPI_Info with_scope(const char *scope)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (scope)
        MPI_Info_set(info, "scope", scope);
    return info;
}

static void names(const char *scope)
{
    MPI_Info info = with_scope(scope);
    char port[MPI_MAX_PORT_NAME] = "some text", got[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Lookup_name("mrmpi test", info, got)), MPI_ERR_NAME);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        EQ(class_of(MPI_Unpublish_name("mrmpi test", info, port)), MPI_ERR_SERVICE);
        EQ(MPI_Publish_name("mrmpi test", info, port), MPI_SUCCESS);
        EQ(class_of(MPI_Publish_name("mrmpi test", info, port)), MPI_ERR_SERVICE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EQ(MPI_Lookup_name("mrmpi test", info, got), MPI_SUCCESS);
    CHECK(!strcmp(got, port));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        EQ(MPI_Unpublish_name("mrmpi test", info, port), MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    EQ(class_of(MPI_Lookup_name("mrmpi test", info, got)), MPI_ERR_NAME);
    MPI_Info_free(&info);
}

static void named(int serves, const char *scope)
{
    char port[MPI_MAX_PORT_NAME] = "", got[MPI_MAX_PORT_NAME] = "";
    MPI_Info info = with_scope(scope);
    MPI_Comm inter;
    int sum;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (serves && rank == 0) {
        EQ(MPI_Open_port(MPI_INFO_NULL, port), MPI_SUCCESS);
        EQ(MPI_Publish_name("ports of a test", info, port), MPI_SUCCESS);
        EQ(class_of(MPI_Publish_name("ports of a test", info, port)), MPI_ERR_SERVICE);
    }
    for (int i = 0; !serves && rank == 0; i++) {
        if (MPI_Lookup_name("ports of a test", info, port) == MPI_SUCCESS)
            break;
        CHECK(i < 3000);
        usleep(10000);
    }
    if (!serves && rank == 0) { /* the name is another job's */
        EQ(class_of(MPI_Unpublish_name("ports of a test", info, port)), MPI_ERR_SERVICE);
        EQ(MPI_Lookup_name("ports of a test", info, got), MPI_SUCCESS);
        CHECK(!strcmp(got, port));
    }
    if (serves)
        inter = accept_at(port, MPI_COMM_WORLD);
    else
        EQ(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_SUCCESS);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    if (serves && rank == 0) {
        EQ(MPI_Unpublish_name("ports of a test", info, port), MPI_SUCCESS);
        EQ(class_of(MPI_Lookup_name("ports of a test", info, got)), MPI_ERR_NAME);
        EQ(MPI_Publish_name("left behind", info, port), MPI_SUCCESS);
    }
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
}

static void nameless(const char *scope)
{
    char port[MPI_MAX_PORT_NAME] = "some text", text[MPI_MAX_ERROR_STRING] = "";
    MPI_Info info = with_scope(scope), wrong = with_scope("world");
    int err, len;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    err = MPI_Lookup_name("left behind", info, port);
    EQ(class_of(err), MPI_ERR_NAME);
    MPI_Error_string(err, text, &len);
    puts(text);
    EQ(class_of(MPI_Publish_name("left behind", wrong, port)), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    MPI_Info_free(&wrong);
}

/* What a program does wrong is an error of all its processes. */
static void errors(void)
{
    char port[MPI_MAX_PORT_NAME] = "mrmpi-port-1:00", good[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    EQ(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    EQ(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    EQ(class_of(MPI_Comm_accept(port, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter)), MPI_ERR_ROOT);
    EQ(class_of(MPI_Close_port(port)), MPI_ERR_PORT);
    if (rank == 0) {
        EQ(MPI_Open_port(MPI_INFO_NULL, good), MPI_SUCCESS);
        EQ(class_of(MPI_Comm_connect(good, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)), MPI_ERR_PORT);
        EQ(MPI_Close_port(good), MPI_SUCCESS);
        EQ(class_of(MPI_Close_port(good)), MPI_ERR_PORT);
    }
    MPI_Bcast(good, sizeof(good), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank)
        EQ(class_of(MPI_Comm_connect(good, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)), MPI_ERR_PORT);
    MPI_Barrier(MPI_COMM_WORLD); /* rank 0 answers */
}

static void join(const char *path, int listens)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), on;
    MPI_Comm inter;
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    if (listens) {
        CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1));
        on = accept(fd, NULL, NULL);
        close(fd);
        fd = on;
    } else {
        while (connect(fd, (struct sockaddr *)&at, sizeof(at)))
            usleep(10000);
    }
    EQ(MPI_Comm_join(fd, &inter), MPI_SUCCESS);
    exercise(inter, listens);
    MPI_Comm_disconnect(&inter);
    EQ(write(fd, "x", 1), 1); /* the socket is the program's again */
    EQ(read(fd, in, 1), 1);
    EQ(in[0], 'x');
    close(fd);
}

/* The living of the communicator are this job. The standard's binary interface has no such functions. */
static void living(MPI_Comm all)
{
#ifdef MPIX_ERR_REVOKED
    MPI_Comm left;
    int n;
    MPIX_Comm_revoke(all);
    EQ(MPIX_Comm_shrink(all, &left), MPI_SUCCESS);
    MPI_Comm_size(left, &n);
    EQ(n, size);
    MPI_Barrier(left);
    MPI_Comm_free(&left);
#else
    (void)all;
#endif
}

static void mourns(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "", byte;
    MPI_Comm inter = serve(file, MPI_COMM_WORLD, port);
    MPI_Comm all;
    int err, sum, at;
    MPI_Intercomm_merge(inter, 0, &all);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Barrier(inter);
    MPI_Comm_remote_size(inter, &at);
    err = MPI_Recv(&byte, 1, MPI_BYTE, rank % at, 0, inter, MPI_STATUS_IGNORE);
    EQ(class_of(err), MPIX_ERR_PROC_FAILED);
    err = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    EQ(class_of(err), MPIX_ERR_PROC_FAILED);
    living(all);
    MPI_Comm_free(&all);
    MPI_Comm_free(&inter);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* the job is whole */
    EQ(sum, size * (size - 1) / 2);
}

static void dies(const char *file)
{
    MPI_Comm inter = call(file, MPI_COMM_WORLD), all;
    MPI_Intercomm_merge(inter, 1, &all);
    MPI_Barrier(inter);
    usleep(50000);
    raise(SIGKILL);
}

/* The lengths of a flood's messages: most go by rings, or in packets; large ones are read from the sender's memory. */
static int flood_length(int number)
{
    static const int of[] = {8, 0, 40, 300, 1500, 4096, 5000, 16 << 10, 100000, 60, 8, 2000};
    return of[number % (int)(sizeof(of) / sizeof(*of))];
}

static void floods(MPI_Comm inter)
{
    for (int number = 0; number < 20000; number++) {
        fill(flood_length(number), number, 3);
        MPI_Send(out, flood_length(number), MPI_BYTE, rank, 7, inter);
    }
    raise(SIGKILL);
}

/* Returns the number of whole messages before the error. */
static int takes_flood(MPI_Comm inter)
{
    int n, number = 0, err;
    MPI_Status s;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    while (!(err = MPI_Recv(in, LONGEST, MPI_BYTE, rank, 7, inter, &s))) {
        MPI_Get_count(&s, MPI_BYTE, &n);
        EQ(n, flood_length(number));
        check(n, number, 3);
        if (++number % 500 == 0)
            usleep(3000); /* the writer finds its ring full */
    }
    EQ(class_of(err), MPIX_ERR_PROC_FAILED);
    return number;
}

/*
 * Rank r of one job floods rank r of the other, and is killed with messages under way. Those that arrive are exact, in
 * order and without a gap, up to an error; and nothing of the dead is kept.
 */
static void cut(const char *file, int flooding)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = flooding ? call(file, MPI_COMM_WORLD) : serve(file, MPI_COMM_WORLD, port);
    int descriptors = kept_descriptors(), n, there;
    if (flooding)
        floods(inter);
    n = takes_flood(inter);
    printf("# %d messages have come\n", n);
    CHECK(n <= 20000 && (size > 1 || n > 10000)); /* the first death ends the other job */
    MPI_Comm_free(&inter);
    for (int i = 0; kept_count("/proc/self/maps", "/memfd:mrmpi-jobs") || kept_descriptors() > descriptors; i++) {
        CHECK(i < 1000);
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        usleep(1000);
    }
}

/* Neither disconnects: the last messages arrive, and the end of the other job is no failure. */
static void stays(const char *file, int leaves)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = leaves ? call(file, MPI_COMM_WORLD) : serve(file, MPI_COMM_WORLD, port);
    int n, theirs;
    MPI_Comm_remote_size(inter, &theirs);
    if (leaves) {
        MPI_Request r;
        fill(LONGEST, rank, 0);
        for (int i = 0; i < 20; i++)
            MPI_Send(out, 5000, MPI_BYTE, 0, 1, inter);
        MPI_Isend(out, LONGEST, MPI_BYTE, 0, 2, inter, &r);
        MPI_Request_free(&r);
        return;
    }
    usleep(300000);
    for (int from = 0; rank == 0 && from < theirs; from++) {
        MPI_Status s;
        for (int i = 0; i < 20; i++)
            MPI_Recv(in, LONGEST, MPI_BYTE, from, 1, inter, &s);
        MPI_Recv(in, LONGEST, MPI_BYTE, from, 2, inter, &s);
        MPI_Get_count(&s, MPI_BYTE, &n);
        EQ(n, LONGEST);
        check(LONGEST, from, 0);
    }
}

/* down: its cable is pulled; loss=1: no packet gets through any more; die: the adapter has no power */
static void end_rail(const char *adapter, const char *fault, const char *until)
{
    char command[128];
    int node = !strcmp(fault, "die");
    snprintf(command, sizeof(command), "simfab fault %s \"%s\" %s%s %s", node ? "node" : "link", adapter,
             node ? "" : "1 ", fault, until);
    CHECK(!system(command));
}

/*
 * A rank of each job on different hosts, after a while in which the two have found their way to each other. In the
 * middle of round `at` (negative: never) the first rail of the second host gets the fault, or both.
 */
static void rails(const char *file, int serves, int at, int both, const char *fault, const char *until)
{
    static const int sizes[] = {8, 8, 65536, 1 << 20, LONGEST};
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = serves ? serve(file, MPI_COMM_WORLD, port) : call(file, MPI_COMM_WORLD);
    int theirs, peer;
    MPI_Comm_remote_size(inter, &theirs);
    peer = serves ? theirs - 1 : 0;
    for (int round = 0; round < 5 && rank == (serves ? 0 : size - 1); round++) {
        int len = sizes[round], n = round ? 40 : 10;
        double begun = MPI_Wtime();
        for (int i = 0; i < n; i++) {
            if (serves && round == at && i == n / 2) {
                end_rail("h2 mlx5_0", fault, until);
                if (both)
                    end_rail("h2 mlx5_1", fault, until);
            }
            fill(len, i, serves);
            memset(in, 0, (size_t)len);
            if (round == 4) /* large messages that cross are written */
                MPI_Sendrecv(out, len, MPI_BYTE, peer, i, in, len, MPI_BYTE, peer, i, inter, MPI_STATUS_IGNORE);
            if (round < 4 && serves)
                MPI_Send(out, len, MPI_BYTE, peer, i, inter);
            if (round < 4)
                MPI_Recv(in, len, MPI_BYTE, peer, i, inter, MPI_STATUS_IGNORE);
            check(len, i, !serves);
            if (round < 4 && !serves)
                MPI_Send(out, len, MPI_BYTE, peer, i, inter);
        }
        if (serves && round)
            printf("%d bytes: %.2f us\n", len, (MPI_Wtime() - begun) / n / 2 * 1e6);
    }
    MPI_Comm_disconnect(&inter);
}

static void wide(const char *file, int serves)
{
    char port[MPI_MAX_PORT_NAME] = "";
    double begun = MPI_Wtime(), took;
    int mine, n, sum, *all;
    MPI_Comm inter = serves ? serve(file, MPI_COMM_WORLD, port) : call(file, MPI_COMM_WORLD), merged;
    took = MPI_Wtime() - begun;
    MPI_Comm_remote_size(inter, &n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    EQ(sum, n * (n - 1) / 2);
    MPI_Intercomm_merge(inter, !serves, &merged);
    MPI_Comm_rank(merged, &mine);
    EQ(mine, rank + (serves ? 0 : n));
    MPI_Comm_size(merged, &n);
    all = calloc((size_t)n, 2 * sizeof(*all));
    for (int i = 0; i < n; i++)
        all[i] = mine * n + i;
    MPI_Alltoall(all, 1, MPI_INT, all + n, 1, MPI_INT, merged);
    for (int i = 0; i < n; i++)
        EQ(all[n + i], i * n + mine);
    free(all);
    MPI_Comm_disconnect(&merged);
    MPI_Comm_disconnect(&inter);
    if (serves && rank == 0)
        printf("# %d and %d processes are connected after %.3f s, and part after %.3f s\n", size, n - size, took,
               MPI_Wtime() - begun);
}

/* ---- threads ---- */

enum { THREADS = 2 };
static MPI_Comm of_thread[THREADS];
static const char *thread_file;
static int thread_serves;

static void *connects(void *arg)
{
    int t = (int)(long)arg;
    char port[MPI_MAX_PORT_NAME] = "", file[4096];
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    snprintf(file, sizeof(file), "%s.%d", thread_file, t);
    for (int i = 0; i < 3; i++) {
        MPI_Comm inter = !thread_serves ? call(file, of_thread[t])
                         : i            ? accept_at(port, of_thread[t])
                                        : serve(file, of_thread[t], port);
        exercise(inter, !thread_serves);
        MPI_Comm_disconnect(&inter);
    }
    if (*port)
        MPI_Close_port(port);
    free(out);
    free(in);
    return NULL;
}

static void threads(const char *file, int serves)
{
    pthread_t other[THREADS];
    thread_file = file;
    thread_serves = serves;
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[t]);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&other[t], NULL, connects, (void *)(long)t) == 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(other[t], NULL);
        MPI_Comm_free(&of_thread[t]);
    }
}

/* ---- strangers ---- */

static in_port_t listening_port(void)
{
    for (int fd = 0; fd < 2048; fd++) {
        int listens = 0;
        struct sockaddr_in6 at = {0};
        socklen_t len = sizeof(listens), size_of_at = sizeof(at);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) || !listens)
            continue;
        if (!getsockname(fd, (struct sockaddr *)&at, &size_of_at) &&
            (at.sin6_family == AF_INET || at.sin6_family == AF_INET6))
            return at.sin6_port; /* at the same place in both */
    }
    CHECK(!"a listening socket");
    return 0;
}

static int stranger(in_port_t port, int says)
{
    static const char words[20];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) || send(fd, words, (size_t)says, MSG_NOSIGNAL) < 0)
        _exit(1);
    return fd;
}

/* A process with num connections, of which some begin a hello; if insistent, in place of those that end it opens
 * others. */
static pid_t crowd(in_port_t port, int num, int insistent)
{
    int ready[2];
    char byte;
    pid_t pid;
    CHECK(!pipe2(ready, O_NONBLOCK));
    pid = fork();
    CHECK(pid >= 0);
    if (!pid) {
        struct pollfd *of = calloc((size_t)num, sizeof(*of));
        for (int i = 0; i < num; i++)
            of[i] = (struct pollfd){.fd = stranger(port, i % 3 * 10), .events = POLLIN};
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;) {
            poll(of, (nfds_t)num, 1000);
            for (int i = 0; insistent && i < num; i++)
                if (of[i].revents) {
                    close(of[i].fd);
                    of[i].fd = stranger(port, i % 3 * 10);
                }
            usleep(20000);
        }
    }
    for (int i = 0; read(ready[0], &byte, 1) != 1; i++) { /* this process takes the connections meanwhile */
        int there;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        CHECK(i < 20000 && waitpid(pid, NULL, WNOHANG) == 0);
        usleep(500);
    }
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end_crowd(pid_t pid)
{
    EQ(waitpid(pid, NULL, WNOHANG), 0); /* there until now */
    kill(pid, SIGKILL);
    EQ(waitpid(pid, NULL, 0), pid);
}

static void crowded(const char *file)
{
    char port[MPI_MAX_PORT_NAME] = "";
    struct rlimit limit;
    MPI_Comm inter;
    int before, there;
    pid_t pid;
    EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    MPI_Open_port(MPI_INFO_NULL, port);
    before = kept_descriptors();
    pid = crowd(listening_port(), 1000, 1);
    CHECK(kept_descriptors() < before + 200);
    put_name(file, port);
    inter = accept_at(port, MPI_COMM_WORLD);
    exercise(inter, 0);
    MPI_Comm_disconnect(&inter);
    CHECK(kept_descriptors() < before + 200);
    end_crowd(pid);
    pid = crowd(listening_port(), 50, 0); /* few: they may stay for a while */
    for (int i = 0; kept_descriptors() < before + 50; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        CHECK(i < 1000);
        usleep(1000);
    }
    for (int i = 0; kept_descriptors() > before + 4; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        CHECK(i < 1000);
        usleep(20000);
    }
    end_crowd(pid);
    MPI_Close_port(port);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int provided;
    MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    if (!strcmp(what, "serve"))
        serves(argv[2], atoi(argv[3]));
    else if (!strcmp(what, "call"))
        calls(argv[2], atoi(argv[3]));
    else if (!strcmp(what, "many-serve") || !strcmp(what, "many-call"))
        many(argv[2], atoi(argv[3]), what[5] == 's');
    else if (strlen(what) == 1)
        three(what, argv[2]);
    else if (!strcmp(what, "within"))
        within();
    else if (!strcmp(what, "names"))
        names(argc > 2 ? argv[2] : NULL);
    else if (!strcmp(what, "named"))
        named(argv[2][0] == 's', argc > 3 ? argv[3] : NULL);
    else if (!strcmp(what, "nameless"))
        nameless(argc > 2 ? argv[2] : NULL);
    else if (!strcmp(what, "errors"))
        errors();
    else if (!strcmp(what, "join"))
        join(argv[2], argv[3][0] == 'l');
    else if (!strcmp(what, "cut"))
        cut(argv[2], argv[3][0] == 'f');
    else if (!strcmp(what, "mourn"))
        mourns(argv[2]);
    else if (!strcmp(what, "slow"))
        slow(argv[2]);
    else if (!strcmp(what, "rails"))
        rails(argv[2], argv[3][0] == 's', argc > 5 ? atoi(argv[5]) : -1, argc > 5 && !strcmp(argv[4], "all"),
              argc > 6 ? argv[6] : "down", argc > 7 ? argv[7] : "");
    else if (!strcmp(what, "wide"))
        wide(argv[2], argv[3][0] == 's');
    else if (!strcmp(what, "threads"))
        threads(argv[2], argv[3][0] == 's');
    else if (!strcmp(what, "crowded"))
        crowded(argv[2]);
    else if (!strcmp(what, "die"))
        dies(argv[2]);
    else
        stays(argv[2], what[0] == 'l');
    MPI_Finalize(); /* out may still be read */
    free(out);
    free(in);
    return 0;
}
