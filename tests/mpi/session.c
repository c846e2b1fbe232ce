/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions: without MPI_Init, in sequence and several at once, communicators and intercommunicators from groups, error
 * handlers. With "world": beside MPI_Init and beyond MPI_Finalize; with "late": after the end of everything, which is
 * refused; with "threads": in several threads at once.
 */
#include "mt.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int total(MPI_Comm c, int x)
{
    int s = -1;
    MPI_Allreduce(&x, &s, 1, MPI_INT, MPI_SUM, c);
    return s;
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static MPI_Comm world_of(MPI_Session s, const char *tag)
{
    MPI_Group g;
    MPI_Comm c;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
    MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
    MPI_Group_free(&g);
    return c;
}

static void process_sets(MPI_Session s)
{
    int n, len = 0, seen = 0, flag, size_known = 0;
    char name[MPI_MAX_PSET_NAME_LEN], value[32];
    MPI_Info i;
    MPI_Group g;
    MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
    CHECK(n >= 2);
    for (int k = 0; k < n; k++) {
        len = 0;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, k, &len, NULL);
        int need = len;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, k, &len, name);
        EQ(len, need);
        EQ(strlen(name) + 1, len);
        int world = !strcmp(name, "mpi://WORLD"), self = !strcmp(name, "mpi://SELF");
        seen |= world | self << 1;
        MPI_Session_get_pset_info(s, name, &i);
        MPI_Info_get(i, "mpi_size", 31, value, &flag);
        CHECK(flag);
        MPI_Info_free(&i);
        MPI_Group_from_session_pset(s, name, &g);
        int m;
        MPI_Group_size(g, &m);
        EQ(atoi(value), m);
        if (self)
            EQ(m, 1);
        if (world)
            size_known = m;
        len = 6; /* too short: cut off */
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, k, &len, name);
        CHECK(!strcmp(name, "mpi:/") && len == need);
        MPI_Group_free(&g);
    }
    EQ(seen, 3);
    EQ(size_known, size);
    CHECK(class_of(MPI_Group_from_session_pset(s, "mpi://NOTHING", &g)) == MPI_ERR_ARG);
    EQ(g, MPI_GROUP_NULL);
}

static void between(MPI_Session s)
{
    MPI_Group world, part[2];
    MPI_Comm inter, back;
    int n, x = rank, y = -1, half = size / 2, side = rank >= half;
    if (size < 2)
        return;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &world);
    MPI_Group_range_incl(world, 1, (int[][3]){{0, half - 1, 1}}, &part[0]);
    MPI_Group_range_incl(world, 1, (int[][3]){{size - 1, half, -1}}, &part[1]); /* the other way round */
    /* only the leaders know the other group */
    int ours = side ? size - half : half, r;
    MPI_Group_rank(part[side], &r);
    int leads = r == ours - 1;
    MPI_Intercomm_create_from_groups(part[side], ours - 1, leads ? part[!side] : MPI_GROUP_NULL,
                                     leads ? (side ? half : size - half) - 1 : -5, "between", MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &inter);
    MPI_Comm_remote_size(inter, &n);
    EQ(n, size - ours);
    MPI_Comm_rank(inter, &n);
    EQ(n, r);
    if (r == 0) {
        MPI_Sendrecv(&x, 1, MPI_INT, 0, 0, &y, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
        EQ(y, side ? 0 : size - 1);
    }
    MPI_Intercomm_merge(inter, side, &back);
    EQ(total(back, 1), size);
    MPI_Comm_free(&back);
    MPI_Comm_free(&inter);
    for (int i = 0; i < 2; i++)
        MPI_Group_free(&part[i]);
    MPI_Group_free(&world);
}

static int told, told_code;
static MPI_Session told_of;

static void handler(MPI_Session *s, int *code, ...)
{
    told++;
    told_of = *s;
    told_code = *code;
}

static void comm_handler(MPI_Comm *c, int *code, ...)
{
    (void)c;
    (void)code;
}

static void errors(void)
{
    MPI_Errhandler h, other, got;
    MPI_Session s;
    MPI_Group g;
    MPI_Info used;
    char level[64];
    int flag, n;
    MPI_Session_create_errhandler(handler, &h); /* allowed before anything else */
    MPI_Comm_create_errhandler(comm_handler, &other);
    MPI_Session_init(MPI_INFO_NULL, h, &s);
    CHECK(class_of(MPI_Group_from_session_pset(s, "nowhere", &g)) == MPI_ERR_ARG);
    CHECK(told == 1 && told_of == s && class_of(told_code) == MPI_ERR_ARG);
    MPI_Session_call_errhandler(s, MPI_ERR_IO);
    CHECK(told == 2 && told_code == MPI_ERR_IO);
    CHECK(class_of(MPI_Session_set_errhandler(s, other)) == MPI_ERR_ARG); /* a handler for communicators */
    EQ(told, 3);
    MPI_Session_get_errhandler(s, &got);
    EQ(got, h);
    MPI_Errhandler_free(&got);
    MPI_Session_set_errhandler(s, MPI_ERRORS_RETURN);
    CHECK(MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 99, &n, NULL) != MPI_SUCCESS);
    EQ(told, 3);
    MPI_Session_get_info(s, &used);
    MPI_Info_get(used, "thread_level", 63, level, &flag);
    CHECK(flag && !strncmp(level, "MPI_THREAD_", 11));
    MPI_Info_free(&used);
    MPI_Session_finalize(&s);
    EQ(s, MPI_SESSION_NULL);
    MPI_Errhandler_free(&h);
    MPI_Errhandler_free(&other);
}

/* The handler given to a creation is called for wrong arguments, and sets the returned value. */
static int comm_told, comm_leaves;

static void comm_creation(MPI_Comm *c, int *code, ...)
{
    (void)c;
    comm_told = *code;
    *code = comm_leaves;
}
static void session_creation(MPI_Session *s, int *code, ...)
{
    (void)s;
    comm_told = *code;
    *code = comm_leaves;
}

#define TELLS(call, class)                                                                                             \
    do {                                                                                                               \
        comm_told = MPI_SUCCESS;                                                                                       \
        EQ(call, comm_leaves);                                                                                         \
        EQ(class_of(comm_told), class);                                                                                \
    } while (0)

static void creations(MPI_Session s)
{
    MPI_Errhandler h, of_session;
    MPI_Group self, world, others;
    MPI_Comm c = MPI_COMM_WORLD, *none = NULL;
    char tag[MPI_MAX_STRINGTAG_LEN + 2];
    memset(tag, 'x', sizeof(tag));
    tag[sizeof(tag) - 1] = '\0';
    MPI_Comm_create_errhandler(comm_creation, &h);
    MPI_Session_create_errhandler(session_creation, &of_session);
    MPI_Group_from_session_pset(s, "mpi://SELF", &self);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &world);
    MPI_Group_difference(world, self, &others);
    comm_leaves = MPI_ERR_QUOTA;
    const MPI_Info info = (MPI_Info)0x4321;
    TELLS(MPI_Comm_create_from_group(self, "a", MPI_INFO_NULL, h, none), MPI_ERR_ARG);
    TELLS(MPI_Comm_create_from_group(self, "a", info, h, &c), MPI_ERR_INFO);
    TELLS(MPI_Comm_create_from_group(self, NULL, MPI_INFO_NULL, h, &c), MPI_ERR_ARG);
    TELLS(MPI_Comm_create_from_group(self, tag, MPI_INFO_NULL, h, &c), MPI_ERR_ARG);
    TELLS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "a", MPI_INFO_NULL, h, &c), MPI_ERR_GROUP);
    TELLS(MPI_Intercomm_create_from_groups(self, 0, self, 0, "a", MPI_INFO_NULL, h, none), MPI_ERR_ARG);
    TELLS(MPI_Intercomm_create_from_groups(self, 0, self, 0, "a", info, h, &c), MPI_ERR_INFO);
    TELLS(MPI_Intercomm_create_from_groups(self, 1, self, 0, "a", MPI_INFO_NULL, h, &c), MPI_ERR_RANK);
    TELLS(MPI_Intercomm_create_from_groups(self, 0, self, 1, "a", MPI_INFO_NULL, h, &c), MPI_ERR_RANK);
    TELLS(MPI_Intercomm_create_from_groups(self, 0, MPI_GROUP_NULL, 0, "a", MPI_INFO_NULL, h, &c), MPI_ERR_GROUP);
    TELLS(MPI_Intercomm_create_from_groups(self, 0, self, 0, NULL, MPI_INFO_NULL, h, &c), MPI_ERR_ARG);
    TELLS(MPI_Session_init(info, of_session, &s), MPI_ERR_INFO);
    TELLS(MPI_Session_init(MPI_INFO_NULL, of_session, NULL), MPI_ERR_ARG);
    /* without processes on one side it is a local operation, for any other arguments */
    if (size > 1 && !rank) {
        c = MPI_COMM_WORLD;
        EQ(MPI_Intercomm_create_from_groups(world, 1, MPI_GROUP_EMPTY, 0, "a", MPI_INFO_NULL, h, &c), MPI_SUCCESS);
        EQ(c, MPI_COMM_NULL);
    }
    c = MPI_COMM_WORLD;
    EQ(MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 5, world, 0, "a", MPI_INFO_NULL, h, &c), MPI_SUCCESS);
    EQ(c, MPI_COMM_NULL);
    c = MPI_COMM_WORLD;
    EQ(MPI_Intercomm_create_from_groups(world, 0, MPI_GROUP_EMPTY, 0, "a", MPI_INFO_NULL, h, &c), MPI_SUCCESS);
    EQ(c, MPI_COMM_NULL);
    if (size == 1) { /* a group that has become empty */
        c = MPI_COMM_WORLD;
        EQ(MPI_Intercomm_create_from_groups(self, 0, others, 0, "a", MPI_INFO_NULL, h, &c), MPI_SUCCESS);
        EQ(c, MPI_COMM_NULL);
    }
    MPI_Group_free(&self);
    MPI_Group_free(&world);
    if (others != MPI_GROUP_EMPTY)
        MPI_Group_free(&others);
    MPI_Errhandler_free(&h);
    MPI_Errhandler_free(&of_session);
}

/* Rank and size by the first session: there is no world to ask. */
static void who_are_we(void)
{
    MPI_Session s;
    MPI_Group g;
    int flag;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    MPI_Group_from_session_pset(s, "mpi://world", &g);
    MPI_Group_rank(g, &rank);
    MPI_Group_size(g, &size);
    MPI_Group_free(&g);
    MPI_Initialized(&flag);
    EQ(flag, 0);
    MPI_Session_finalize(&s);
    MPI_Finalized(&flag);
    EQ(flag, 0);
}

static void several(void)
{
    MPI_Session s[3];
    MPI_Comm c[3];
    MPI_Info i, used;
    char value[64];
    int flag;
    MPI_Info_create(&i);
    MPI_Info_set(i, "thread_level", "MPI_THREAD_SERIALIZED");
    for (int k = 0; k < 3; k++) {
        MPI_Session_init(k ? MPI_INFO_NULL : i, MPI_ERRORS_RETURN, &s[k]);
        c[k] = world_of(s[k], k == 1 ? "one" : "other");
    }
    MPI_Session_get_info(s[0], &used);
    MPI_Info_get(used, "thread_level", 63, value, &flag);
    CHECK(flag && !strcmp(value, "MPI_THREAD_SERIALIZED"));
    MPI_Info_free(&used);
    MPI_Info_free(&i);
    int out[3], in[3];
    MPI_Request r[3];
    for (int k = 0; k < 3; k++) {
        out[k] = 10 * k + rank;
        MPI_Isend(&out[k], 1, MPI_INT, (rank + 1) % size, 0, c[k], &r[k]);
    }
    for (int k = 2; k >= 0; k--) {
        MPI_Recv(&in[k], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c[k], MPI_STATUS_IGNORE);
        EQ(in[k], 10 * k + (rank + size - 1) % size);
    }
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&c[1]);
    MPI_Session_finalize(&s[1]); /* the others go on */
    EQ(total(c[2], 2), 2 * size);
    MPI_Comm_free(&c[0]);
    MPI_Comm_free(&c[2]);
    MPI_Session_finalize(&s[2]);
    MPI_Session_finalize(&s[0]);
}

/* Not every process opens as many. */
static void as_it_likes(void)
{
    for (int k = 0; k < rank % 3; k++) {
        MPI_Session s;
        MPI_Group g;
        MPI_Comm c;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        MPI_Group_from_session_pset(s, "mpi://SELF", &g);
        MPI_Comm_create_from_group(g, "alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c);
        EQ(total(c, 7), 7);
        MPI_Comm_free(&c);
        MPI_Group_free(&g);
        MPI_Session_finalize(&s);
    }
}

/* Threads that know nothing of each other, before anything else was started. */
static void *one_thread(void *arg)
{
    char tag[16];
    snprintf(tag, sizeof(tag), "thread %ld", (long)arg);
    for (int k = 0; k < 20; k++) {
        MPI_Session s;
        MPI_Group g;
        MPI_Comm c, d;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
        MPI_Group_from_session_pset(s, k % 5 ? "mpi://SELF" : "mpi://WORLD", &g);
        MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
        int n, one = 1, sum = 0;
        MPI_Comm_size(c, &n);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
        EQ(sum, n);
        MPI_Comm_dup(c, &d);
        MPI_Comm_free(&c);
        MPI_Comm_free(&d);
        MPI_Group_free(&g);
        MPI_Session_finalize(&s);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[3];
    for (long k = 0; k < 3; k++)
        pthread_create(&t[k], NULL, one_thread, (void *)k);
    for (int k = 0; k < 3; k++)
        pthread_join(t[k], NULL);
}

/* A part of the processes, while the others do something else. */
static void some(MPI_Session s)
{
    MPI_Group world, odd;
    MPI_Comm c;
    if (rank % 2 == 0 || size < 2)
        return;
    MPI_Group_from_session_pset(s, "mpi://WORLD", &world);
    MPI_Group_range_incl(world, 1, (int[][3]){{1, size - 1, 2}}, &odd);
    MPI_Info i, used;
    char value[8];
    int flag;
    MPI_Info_create(&i);
    MPI_Info_set(i, "mpi_assert_no_any_tag", "true");
    MPI_Comm_create_from_group(odd, "odd", i, MPI_ERRORS_ARE_FATAL, &c);
    EQ(total(c, 1), size / 2);
    MPI_Comm_get_info(c, &used);
    MPI_Info_get(used, "mpi_assert_no_any_tag", 7, value, &flag);
    CHECK(flag && !strcmp(value, "true"));
    MPI_Info_free(&used);
    MPI_Info_free(&i);
    MPI_Comm_free(&c);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
}

/*
 * Requests outlive communicators and sessions: inactive ones, without a wait. Freed operations under way are done when
 * MPI_Comm_disconnect returns, or else at the process's exit.
 */
enum { LEFT = 100000 };
static int left_out[LEFT], left_in[LEFT];

static void send_and_forget(MPI_Comm c)
{
    MPI_Request r[2];
    for (int i = 0; i < LEFT; i++) {
        left_out[i] = rank + i;
        left_in[i] = -1;
    }
    MPI_Issend(left_out, LEFT, MPI_INT, (rank + 1) % size, 5, c, &r[0]);
    if (rank % 2)
        usleep(10000);
    MPI_Irecv(left_in, LEFT, MPI_INT, (rank + size - 1) % size, 5, c, &r[1]);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void check_left(void)
{
    for (int i = 0; i < LEFT; i++)
        EQ(left_in[i], (rank + size - 1) % size + i);
}

/* After the library's own end, which was registered later. */
static void check_at_exit(void)
{
    for (int i = 0; i < LEFT; i++)
        if (left_in[i] != (rank + size - 1) % size + i) {
            fprintf(stderr, "rank %d: a receive that was freed has not ended: element %d is %d\n", rank, i, left_in[i]);
            _exit(1);
        }
}

static void left_behind(MPI_Session beside)
{
    MPI_Session s;
    MPI_Request r[3];
    MPI_Comm c;
    for (int k = 0; k < 2; k++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
        c = world_of(s, "left");
        MPI_Send_init(left_out, 1, MPI_INT, (rank + 1) % size, 1, c, &r[0]);
        MPI_Recv_init(left_in, 1, MPI_INT, (rank + size - 1) % size, 1, c, &r[1]);
        MPI_Barrier_init(c, MPI_INFO_NULL, &r[2]);
        if (k == 0) {
            send_and_forget(c);
            MPI_Comm_disconnect(&c);
            check_left();
        } else {
            MPI_Comm_free(&c);
        }
        MPI_Session_finalize(&s);
        for (int i = 0; i < 3; i++)
            MPI_Request_free(&r[i]);
    }
    c = world_of(beside, "left");
    send_and_forget(c);
    MPI_Comm_free(&c);
}

static void beside_the_world(int *argc, char ***argv)
{
    MPI_Session before, during;
    MPI_Comm c;
    int flag;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before);
    MPI_Initialized(&flag);
    EQ(flag, 0);
    mt_begin(argc, argv);
    c = world_of(before, "a");
    EQ(total(c, 1), size);
    EQ(total(MPI_COMM_WORLD, 1), size);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &during);
    MPI_Session_finalize(&before);
    MPI_Finalize();
    MPI_Finalized(&flag);
    EQ(flag, 1);
    EQ(total(c, 2), 2 * size);
    MPI_Comm_free(&c);
    c = world_of(during, "b");
    EQ(total(c, 3), 3 * size);
    MPI_Comm_free(&c);
    MPI_Session_finalize(&during);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &during); /* the last one is not the end */
    c = world_of(during, "c");
    EQ(total(c, 4), 4 * size);
    MPI_Comm_free(&c);
    MPI_Session_finalize(&during);
}

/* Longer than a packet, so memory is registered and mapped anew. */
static void large(MPI_Comm c)
{
    enum { N = 300000 };
    int *out = malloc(N * sizeof(*out)), *in = calloc(N, sizeof(*in));
    for (int i = 0; i < N; i++)
        out[i] = rank + i;
    MPI_Sendrecv(out, N, MPI_INT, (rank + 1) % size, 1, in, N, MPI_INT, (rank + size - 1) % size, 1, c,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        EQ(in[i], (rank + size - 1) % size + i);
    free(in);
    free(out);
}

/* After the world has ended and with it everything: from nothing, several times. */
static void again(void)
{
    for (int k = 1; k <= 3; k++) {
        MPI_Session s;
        int flag;
        if (k == 1)
            MPI_Finalize();
        if (rank == k % size)
            usleep(20000); /* the others start while this session is about to */
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
        MPI_Comm c = world_of(s, "again");
        EQ(total(c, k), k * size);
        large(c);
        MPI_Comm_free(&c);
        MPI_Session_finalize(&s);
        MPI_Finalized(&flag);
        EQ(flag, 1);
    }
}

/* A child forked by the program does not end its parent's library at its exit. */
static void child(void)
{
    MPI_Session s;
    int status;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    MPI_Session_finalize(&s);
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    EQ(waitpid(pid, &status, 0), pid);
    EQ(status, 0);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
    MPI_Comm c = world_of(s, "child");
    EQ(total(c, 1), size);
    MPI_Comm_free(&c);
    MPI_Session_finalize(&s);
}

int main(int argc, char **argv)
{
    MPI_Session s;
    if (argc > 1 && !strcmp(argv[1], "threads")) {
        threads();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "again")) {
        mt_begin(&argc, &argv);
        again();
        child();
        return 0;
    }
    if (argc > 1) {
        beside_the_world(&argc, &argv);
        return 0;
    }
    atexit(check_at_exit);
    who_are_we();
    errors();
    as_it_likes();
    several();
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    process_sets(s);
    between(s);
    creations(s);
    some(s);
    left_behind(s);
    MPI_Session_finalize(&s);
    return 0;
}
