/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool information interface in several threads: each thread level, inits and finalizes that overlap, and threads
 * of a tool that read and write variables, make and free sessions and handles, while MPI starts, communicates (at the
 * thread level of the argument: single, funneled, serialized or multiple, the default) and ends.
 */
#include "mt.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TOOLS = 3, TALKERS = 2, MESSAGES = 100, HASTE = 1000 /* rounds of a tool's thread without a rest */ };

static int cvar(const char *name)
{
    int i = -1;
    EQ(MPI_T_cvar_get_index(name, &i), MPI_SUCCESS);
    return i;
}

static int pvar(const char *name)
{
    int i = -1;
    EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &i), MPI_SUCCESS);
    return i;
}

/* ---- life ---- */

static const int wanted[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};

static void levels(void)
{
    int provided, n;
    for (int i = 0; i < 4; i++) { /* nested: each returns its level */
        provided = -1;
        EQ(MPI_T_init_thread(wanted[i], &provided), MPI_SUCCESS);
        EQ(provided, wanted[i]);
    }
    for (int i = 0; i < 4; i++) {
        EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
        EQ(MPI_T_finalize(), MPI_SUCCESS);
    }
    EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    for (int i = 0; i < 4; i++) { /* and again, in sequence */
        EQ(MPI_T_init_thread(wanted[i], &provided), MPI_SUCCESS);
        EQ(provided, wanted[i]);
        EQ(MPI_T_finalize(), MPI_SUCCESS);
        EQ(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    }
}

static void *in_and_out(void *arg)
{
    int n, provided;
    for (int i = 0; i < 300; i++) {
        EQ(MPI_T_init_thread(wanted[i % 4], &provided), MPI_SUCCESS);
        EQ(provided, wanted[i % 4]);
        EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
        CHECK(n > 10);
        EQ(MPI_T_finalize(), MPI_SUCCESS);
    }
    return NULL;
}

static void lives(void)
{
    pthread_t t[TOOLS];
    int n;
    levels();
    for (int i = 0; i < TOOLS; i++)
        pthread_create(&t[i], NULL, in_and_out, NULL);
    for (int i = 0; i < TOOLS; i++)
        pthread_join(t[i], NULL);
    EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
}

/* ---- threads of a tool, as long as the program runs ---- */

static atomic_int over;           /* threads end */
static MPI_T_pvar_session common; /* read by all */
static MPI_T_pvar_handle plain,
    drawn;                  /* both count eager messages: one continuously, the other read and reset in turn */
static atomic_ullong taken; /* total of its readings */

static void job_text(char *text, int kind)
{
    memset(text, 0, 1024);
    memset(text, 'a' + kind, 8 + (size_t)kind * 100);
}

/* Values used at MPI's start can be written until then, and never afterwards. True while possible. */
static int write_early(MPI_T_cvar_handle eager, MPI_T_cvar_handle job, int i)
{
    char text[1024];
    unsigned long bytes = i % 2 ? 512 : 1024;
    job_text(text, i % 3);
    int code = MPI_T_cvar_write(eager, &bytes), other = MPI_T_cvar_write(job, text);
    CHECK(code == MPI_SUCCESS || code == MPI_T_ERR_CVAR_SET_NEVER);
    CHECK(other == MPI_SUCCESS || other == MPI_T_ERR_CVAR_SET_NEVER);
    CHECK(code == MPI_SUCCESS || other != MPI_SUCCESS); /* never again */
    return other == MPI_SUCCESS;
}

/* All of one kind, and of its length. */
static void read_job(MPI_T_cvar_handle job)
{
    char text[1024];
    EQ(MPI_T_cvar_read(job, text), MPI_SUCCESS);
    size_t n = strlen(text);
    EQ(n, 8 + (size_t)(text[0] - 'a') * 100);
    EQ(strspn(text, (char[]){text[0], 0}), n);
}

/* Variables changeable at any time. */
static void change(int i)
{
    static const char *const names[] = {"MRMPI_CHECK_ARGS", "MRMPI_SPIN_US", "MRMPI_LOG_LEVEL"};
    const int values[][2] = {{0, 1}, {10, 1000}, {0, 0}};
    MPI_T_cvar_handle h;
    int k = i % 3, count, now;
    EQ(MPI_T_cvar_handle_alloc(cvar(names[k]), NULL, &h, &count), MPI_SUCCESS);
    EQ(MPI_T_cvar_write(h, &values[k][i / 3 % 2]), MPI_SUCCESS);
    EQ(MPI_T_cvar_read(h, &now), MPI_SUCCESS);
    CHECK(now == values[k][0] || now == values[k][1]);
    EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
    unsigned long stripe = i % 2 ? 16 << 10 : 1 << 20, got;
    EQ(MPI_T_cvar_handle_alloc(cvar("MRMPI_STRIPE_MIN"), NULL, &h, &count), MPI_SUCCESS);
    EQ(MPI_T_cvar_write(h, &stripe), MPI_SUCCESS);
    EQ(MPI_T_cvar_read(h, &got), MPI_SUCCESS);
    CHECK(got == 16 << 10 || got == 1 << 20);
    EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
}

static void describe(int i)
{
    char name[100], desc[300];
    int name_len = sizeof(name), desc_len = sizeof(desc), num, nc, np, sub, list[200];
    EQ(MPI_T_cvar_get_num(&num), MPI_SUCCESS);
    EQ(MPI_T_cvar_get_info(i % num, name, &name_len, NULL, NULL, NULL, desc, &desc_len, NULL, NULL), MPI_SUCCESS);
    EQ(cvar(name), i % num);
    EQ(MPI_T_category_get_num(&num), MPI_SUCCESS);
    EQ(MPI_T_category_get_info(i % num, NULL, NULL, NULL, NULL, &nc, &np, &sub), MPI_SUCCESS);
    EQ(MPI_T_category_get_cvars(i % num, nc, list), MPI_SUCCESS);
    EQ(MPI_T_category_get_pvars(i % num, np, list), MPI_SUCCESS);
}

/* A session of this thread's own, with handles that come and go. */
static void own_session(int i)
{
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h[2];
    unsigned long long v = 5, w = 0;
    int count;
    EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
    for (int k = 0; k < 2; k++)
        EQ(MPI_T_pvar_handle_alloc(s, pvar(k ? "unexpected" : "eager_sent"), NULL, &h[k], &count), MPI_SUCCESS);
    EQ(MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    EQ(MPI_T_pvar_write(s, h[0], &v), MPI_SUCCESS);
    EQ(MPI_T_pvar_read(s, h[0], &v), MPI_SUCCESS);
    EQ(MPI_T_pvar_stop(s, h[0]), MPI_SUCCESS);
    EQ(MPI_T_pvar_read(s, h[0], &w), MPI_SUCCESS);
    CHECK(v >= 5 && w >= v);
    EQ(MPI_T_pvar_readreset(s, h[0], &v), MPI_SUCCESS);
    EQ(v, w); /* stands still */
    EQ(MPI_T_pvar_reset(s, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    EQ(MPI_T_pvar_read(s, h[0], &v), MPI_SUCCESS);
    EQ(v, 0);
    EQ(MPI_T_pvar_handle_free(s, &h[0]), MPI_SUCCESS);
    if (i % 2)
        EQ(MPI_T_pvar_handle_free(s, &h[1]), MPI_SUCCESS);
    EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS); /* with a handle, now and then */
}

static void *tool(void *arg)
{
    MPI_T_cvar_handle eager, job;
    unsigned long long v, before = 0;
    const struct timespec rest = {.tv_nsec = 10000000};
    int early = 1, first = (int)(long)arg, i = first, count, provided;
    EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    EQ(provided, MPI_THREAD_MULTIPLE);
    EQ(MPI_T_cvar_handle_alloc(cvar("MRMPI_EAGER_MAX"), NULL, &eager, &count), MPI_SUCCESS);
    EQ(MPI_T_cvar_handle_alloc(cvar("MRMPI_JOBID"), NULL, &job, &count), MPI_SUCCESS);
    for (; !atomic_load(&over); i++) {
        int could = write_early(eager, job, i);
        CHECK(early || !could);
        early = could;
        read_job(job);
        change(i);
        describe(i);
        own_session(i);
        EQ(MPI_T_pvar_read(common, plain, &v), MPI_SUCCESS);
        CHECK(v >= before);
        before = v;
        EQ(MPI_T_pvar_readreset(common, drawn, &v), MPI_SUCCESS);
        atomic_fetch_add(&taken, v);
        if (i - first >= HASTE)
            nanosleep(&rest, NULL); /* the program's threads need the processors too */
    }
    EQ(MPI_T_cvar_handle_free(&eager), MPI_SUCCESS);
    EQ(MPI_T_cvar_handle_free(&job), MPI_SUCCESS);
    EQ(MPI_T_finalize(), MPI_SUCCESS);
    return NULL;
}

/* ---- the observed program ---- */

static void talk(MPI_Comm c)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, x, y;
    for (int i = 0; i < MESSAGES; i++) {
        x = rank * 1000 + i;
        MPI_Sendrecv(&x, 1, MPI_INT, right, 1, &y, 1, MPI_INT, left, 1, c, MPI_STATUS_IGNORE);
        EQ(y, left * 1000 + i);
    }
}

static void *talker(void *comm)
{
    talk(*(MPI_Comm *)comm);
    return NULL;
}

static void program(int level)
{
    MPI_Comm c[TALKERS];
    pthread_t t[TALKERS];
    for (int i = 0; i < TALKERS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &c[i]);
    for (int i = 0; i < TALKERS; i++)
        if (level == MPI_THREAD_MULTIPLE)
            pthread_create(&t[i], NULL, talker, &c[i]);
        else
            talk(c[i]);
    for (int i = 0; i < TALKERS; i++) {
        if (level == MPI_THREAD_MULTIPLE)
            pthread_join(t[i], NULL);
        MPI_Comm_free(&c[i]);
    }
}

static int level_of(const char *name)
{
    static const char *const names[] = {"single", "funneled", "serialized", "multiple"};
    int l = 3;
    while (l > 0 && strcmp(names[l], name))
        l--;
    return (const int[]){MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE}[l];
}

int main(int argc, char **argv)
{
    int level = level_of(argc > 1 ? argv[1] : "multiple"), provided, count;
    pthread_t t[TOOLS];
    unsigned long long all, rest;
    MPI_T_cvar_handle job;
    char text[1024];
    lives();
    EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    EQ(MPI_T_pvar_session_create(&common), MPI_SUCCESS);
    EQ(MPI_T_pvar_handle_alloc(common, pvar("eager_sent"), NULL, &plain, &count), MPI_SUCCESS);
    EQ(MPI_T_pvar_handle_alloc(common, pvar("eager_sent"), NULL, &drawn, &count), MPI_SUCCESS);
    EQ(MPI_T_pvar_start(common, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    job_text(text, 0);
    EQ(MPI_T_cvar_handle_alloc(cvar("MRMPI_JOBID"), NULL, &job, &count), MPI_SUCCESS);
    EQ(MPI_T_cvar_write(job, text), MPI_SUCCESS);
    for (long i = 0; i < TOOLS; i++)
        pthread_create(&t[i], NULL, tool, (void *)i);
    MPI_Init_thread(&argc, &argv, level, &provided);
    EQ(provided, level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    program(level);
    MPI_Finalize();
    atomic_store(&over, 1);
    for (int i = 0; i < TOOLS; i++)
        pthread_join(t[i], NULL);
    /* no message was counted twice, and none was lost between reading and resetting */
    EQ(MPI_T_pvar_read(common, plain, &all), MPI_SUCCESS);
    EQ(MPI_T_pvar_readreset(common, drawn, &rest), MPI_SUCCESS);
    CHECK(all >= TALKERS * MESSAGES);
    EQ(atomic_load(&taken) + rest, all);
    EQ(MPI_T_pvar_session_free(&common), MPI_SUCCESS);
    EQ(MPI_T_finalize(), MPI_SUCCESS);
    lives(); /* after MPI_Finalize as well */
    return 0;
}
