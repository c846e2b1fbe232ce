/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes started by a program. Cases of the parent; children have "child" as their first argument:
 *
 *     some N         N children, of this program; messages and collectives with them; once more, disconnected at once
 *     threads N      two threads of each process start N children each, at once; some cannot be started
 *     parts          two programs, with their arguments, numbers and directory
 *     bare           two programs without arguments (MPI_ARGVS_NULL)
 *     keys DIR       what infos say: numbers, hosts, directories, variables, files
 *     universe N     MPI_UNIVERSE_SIZE
 *     launcher NAME  the launcher of the parents starts the children: "pmi", "pmix" or "mrrun"
 *     why            the error of a program that ends at once
 *     on HOST        a child on that node of Slurm
 *     outlives DIR   children go on when the parents have ended: they wait for the file go, and say their last words
 *     outlived DIR   and when a parent has died
 *     many ROUNDS N  N children, so many times; what the parent keeps of them
 *     tree           children that have children
 *     wrong          programs that cannot be run, that end early, wrong arguments
 *     leaves         the parent does not disconnect
 *     dies           children die
 */
#include <pthread.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kept.h"
#include "mt.h"

static char *self;

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* Both sides. first: of the two groups in the merged communicator. */
static void talk(MPI_Comm inter, int parents)
{
    int mine, theirs, me, sum = -1, value, ranks;
    MPI_Comm all;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &mine);
    MPI_Comm_remote_size(inter, &theirs);
    value = parents ? 1 : 100;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
    EQ(sum, theirs * (parents ? 100 : 1));
    MPI_Intercomm_merge(inter, !parents, &all);
    MPI_Comm_rank(all, &ranks);
    EQ(ranks, me + (parents ? 0 : theirs));
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, all);
    EQ(sum, mine * value + theirs * (101 - value));
    MPI_Comm_disconnect(&all);
}

static MPI_Comm start(char *what, int n, int *codes)
{
    char *args[] = {"child", what, NULL};
    MPI_Comm inter;
    int theirs;
    EQ(MPI_Comm_spawn(self, args, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes), MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &theirs);
    EQ(theirs, n);
    return inter;
}

static void some(int n)
{
    int codes[64];
    MPI_Comm inter;
    memset(codes, 1, sizeof(codes));
    inter = start("talk", n, codes);
    for (int i = 0; i < n; i++)
        EQ(codes[i], MPI_SUCCESS);
    talk(inter, 1);
    MPI_Comm_disconnect(&inter);
    inter = start("part", n, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&inter);
}

/* ---- threads ---- */

enum { THREADS = 2, TURNS = 4 };
static MPI_Comm of_thread[THREADS];
static int children_of_thread;

static void *starts(void *arg)
{
    int t = (int)(long)arg;
    char *talking[] = {"child", "talk", NULL}, *early[] = {"child", "early", NULL};
    MPI_Comm inter;
    for (int i = 0; i < TURNS; i++) {
        int fails = (i + t) % 2;
        int err = MPI_Comm_spawn(self, fails ? early : talking, children_of_thread, MPI_INFO_NULL, 0, of_thread[t],
                                 &inter, MPI_ERRCODES_IGNORE);
        EQ(class_of(err), fails ? MPI_ERR_SPAWN : MPI_SUCCESS);
        if (!err) {
            talk(inter, 1);
            MPI_Comm_disconnect(&inter);
        }
    }
    return NULL;
}

static void threads(int n)
{
    pthread_t other[THREADS];
    children_of_thread = n;
    for (int t = 0; t < THREADS; t++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &of_thread[t]);
        MPI_Comm_set_errhandler(of_thread[t], MPI_ERRORS_RETURN);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&other[t], NULL, starts, (void *)(long)t) == 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(other[t], NULL);
        MPI_Comm_free(&of_thread[t]);
    }
}

/* Two programs without arguments, by the name for that: this one, as parents without a case. */
static void bare(void)
{
    char *commands[] = {self, self};
    int numbers[] = {1, 2}, codes[3] = {1, 1, 1}, n;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    EQ(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, numbers, infos, 0, MPI_COMM_WORLD, &inter, codes),
       MPI_SUCCESS);
    for (int i = 0; i < 3; i++)
        EQ(codes[i], MPI_SUCCESS);
    MPI_Comm_remote_size(inter, &n);
    EQ(n, 3);
    talk(inter, 1);
    MPI_Comm_disconnect(&inter);
}

static void parts(void)
{
    char dir[4096], *first[] = {"child", "part 0", "two words", "-n", NULL}, *second[] = {"child", "part 1", NULL};
    char **argvs[] = {first, second}, *commands[] = {self, strrchr(self, '/') + 1}, path[4096];
    int numbers[] = {1, 2}, codes[3] = {1, 1, 1};
    MPI_Info infos[2];
    MPI_Comm inter;
    snprintf(path, sizeof(path), "/nowhere:%.*s", (int)(strrchr(self, '/') - self), self);
    MPI_Info_create(&infos[0]);
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[0], "wdir", "/");
    MPI_Info_set(infos[1], "path", path);
    EQ(MPI_Comm_spawn_multiple(2, commands, argvs, numbers, infos, 0, MPI_COMM_WORLD, &inter, codes), MPI_SUCCESS);
    for (int i = 0; i < 3; i++)
        EQ(codes[i], MPI_SUCCESS);
    if (rank == 0) {
        CHECK(getcwd(dir, sizeof(dir)));
        MPI_Send(dir, (int)strlen(dir) + 1, MPI_CHAR, 1, 0, inter);
    }
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, inter);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
}

static void child_of_parts(MPI_Comm parent, char **argv)
{
    char dir[4096], got[4096];
    int *app, there;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &there);
    CHECK(there && getcwd(dir, sizeof(dir)));
    EQ(size, 3);
    EQ(*app, rank > 0);
    EQ(argv[2][5] - '0', rank > 0);
    if (rank == 0)
        CHECK(!strcmp(argv[3], "two words") && !strcmp(argv[4], "-n") && !argv[5] && !strcmp(dir, "/"));
    if (rank == 1) {
        MPI_Recv(got, sizeof(got), MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE);
        CHECK(!strcmp(got, dir) && !argv[3]);
    }
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, parent);
}

/* ---- infos ---- */

static int universe_size(void)
{
    int *n, there;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &n, &there);
    CHECK(there);
    return *n;
}

/* What the first of the children tells the parents. */
struct facts {
    int size, universe, apps[2];
    char dir[512], a[32], b[32], launcher[8];
};

static MPI_Info info_of(const char *const *words)
{
    MPI_Info info;
    MPI_Info_create(&info);
    for (; words && words[0]; words += 2)
        MPI_Info_set(info, words[0], words[1]);
    return info;
}

/* n of wanted processes are started; none: an error. *f: all parents know the facts */
static void start_with(const char *const *words, int wanted, int n, struct facts *f)
{
    char *args[] = {"child", "facts", NULL};
    int codes[64], err;
    MPI_Info info = info_of(words);
    MPI_Comm inter;
    for (int i = 0; i < 64; i++)
        codes[i] = -1;
    err = MPI_Comm_spawn(self, args, wanted, rank == 0 ? info : MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Info_free(&info);
    EQ(class_of(err), n ? MPI_SUCCESS : MPI_ERR_SPAWN);
    for (int i = 0; i < 64; i++)
        EQ(codes[i], i < n ? MPI_SUCCESS : i < wanted ? MPI_ERR_SPAWN : -1);
    if (!n)
        return;
    MPI_Bcast(f, sizeof(*f), MPI_BYTE, 0, inter);
    EQ(f->size, n);
    MPI_Comm_disconnect(&inter);
}

#define START_WITH(wanted, n, ...) start_with((const char *const[]){__VA_ARGS__, NULL}, wanted, n, &facts)

/* The root learns why a program is not started with that key. */
static void refused_for(const char *program, const char *key, const char *value, const char *why)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Info info = info_of((const char *[]){key, value, NULL});
    MPI_Comm inter;
    int len, err = MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    EQ(class_of(err), MPI_ERR_SPAWN);
    MPI_Error_string(err, text, &len);
    if (rank == 0 && !strstr(text, why))
        fprintf(stderr, "%s: not so: %s\n", why, text);
    CHECK(rank || strstr(text, why));
}

static void child_of_keys(MPI_Comm parent)
{
    struct facts f = {.size = size, .universe = universe_size()};
    int *app, there, mine[2] = {0, 0};
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &there);
    CHECK(there && *app < 2 && getcwd(f.dir, sizeof(f.dir)));
    mine[*app] = 1;
    MPI_Allreduce(mine, f.apps, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(f.launcher, sizeof(f.launcher), "%s",
             getenv("PMI_FD")                                               ? "pmi"
             : !getenv("PMIX_NAMESPACE")                                    ? "none"
             : !strncmp(getenv("PMIX_NAMESPACE"), "mrrun", strlen("mrrun")) ? "mrrun"
                                                                            : "pmix");
    if (getenv("SPAWN_A"))
        snprintf(f.a, sizeof(f.a), "%s", getenv("SPAWN_A"));
    if (getenv("SPAWN_B"))
        snprintf(f.b, sizeof(f.b), "%s", getenv("SPAWN_B"));
    MPI_Bcast(&f, sizeof(f), MPI_BYTE, rank ? MPI_PROC_NULL : MPI_ROOT, parent);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = rank == 0 ? fopen(name, "w") : NULL;
    CHECK(rank || (f && fputs(text, f) >= 0 && !fclose(f)));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void soft_parts(void)
{
    char *args[] = {"child", "facts", NULL}, **argvs[] = {args, args}, *commands[] = {self, self};
    int numbers[] = {2, 5}, codes[7];
    struct facts f;
    MPI_Info infos[] = {info_of((const char *[]){"soft", "1:2", "host", "localhost:4", NULL}),
                        info_of((const char *[]){"soft", "1:5:2,4", "host", "localhost", NULL})};
    MPI_Comm inter;
    MPI_Comm_spawn_multiple(2, commands, argvs, numbers, infos, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_Bcast(&f, sizeof(f), MPI_BYTE, 0, inter);
    EQ(f.size, f.apps[0] + f.apps[1]);
    CHECK(f.apps[0] == 2 && (f.apps[1] == 1 || f.apps[1] == 3));
    for (int i = 0; i < 7; i++)
        EQ(codes[i], i < 2 || i - 2 < f.apps[1] ? MPI_SUCCESS : MPI_ERR_SPAWN);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&infos[0]);
    MPI_Info_free(&infos[1]);
}

/* dir: where files may be written */
static void keys(const char *dir)
{
    char hosts[512], file[512];
    struct facts facts;
    struct utsname own;
    snprintf(hosts, sizeof(hosts), "%s/hosts", dir);
    snprintf(file, sizeof(file), "%s/file", dir);
    uname(&own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    START_WITH(2, 2, "nonesuch", "whatever", "arch", own.machine);
    START_WITH(5, 3, "soft", "1:5", "host", "localhost:3");
    EQ(facts.universe, 3);
    START_WITH(6, 4, "soft", "6,4,2", "host", "localhost:5");
    START_WITH(3, 3, "soft", "-2:9", "host", "localhost:9");
    START_WITH(3, 0, "soft", "5", "host", "localhost:9");
    START_WITH(3, 0, "soft", "3", "host", "localhost:2");
    START_WITH(3, 0, "soft", "1:", "host", "localhost:9");
    START_WITH(3, 0, "host", "localhost:2");
    START_WITH(3, 3, "host", "localhost:2", "add-host", "localhost:2");
    EQ(facts.universe, 4);
    write_file(hosts, "localhost slots=2\n");
    START_WITH(3, 2, "hostfile", hosts, "soft", "1:3");
    START_WITH(3, 3, "host", "localhost:1", "add-hostfile", hosts, "soft", "1:3");
    START_WITH(1, 0, "hostfile", "/nowhere/hosts");
    refused_for(self, "hostfile", "/nowhere/hosts", "key hostfile: cannot read \"/nowhere/hosts\"");
    refused_for(self, "add-hostfile", "/nowhere/hosts", "key add-hostfile: cannot read \"/nowhere/hosts\"");
    refused_for(self, "wdir", "/nowhere/dir", "key wdir: cannot enter \"/nowhere/dir\"");
    refused_for("/nowhere/program", "nonesuch", "x", "exit status 127: a program was not found");
    refused_for("/", "nonesuch", "x", "exit status 126: a program cannot be run");
    write_file(file, "localhost slots=some\n");
    refused_for(self, "hostfile", file, "(exit status 2)");
    refused_for(self, "add-hostfile", file, "(exit status 2)");
    refused_for(self, "host", "localhost:none", "(exit status 2)");
    refused_for(self, "add-host", "localhost:none", "(exit status 2)");
    refused_for(self, "host", "", "(exit status 2)");
    refused_for(self, "host", "nonesuch.invalid", "ended before they had called MPI_Init");
    refused_for(self, "soft", "one", "key soft is no list of A, A:B and A:B:STEP: \"one\"");
    refused_for(self, "soft", "1:5:0", "key soft is no list of A, A:B and A:B:STEP: \"1:5:0\"");
    refused_for("spawn-nonesuch", "path", "/nowhere:/tmp", "exit status 127: a program was not found");
    refused_for(self, "file", "/nowhere/file", "key file: cannot read \"/nowhere/file\"");
    refused_for(self, "arch", "nonesuch", "key arch asks for \"nonesuch\"");
    START_WITH(1, 0, "arch", "nonesuch");
    START_WITH(2, 2, "env", "SPAWN_A=1\nSPAWN_B=two words", "wdir", "/");
    CHECK(!strcmp(facts.a, "1") && !strcmp(facts.b, "two words") && !strcmp(facts.dir, "/"));
    write_file(file, "# of a test\n  wdir = /\nsoft=1:2\nenv=SPAWN_A=3\nhost = localhost:1\nnonesuch = 1\nword\n");
    START_WITH(2, 1, "file", file);
    CHECK(!strcmp(facts.a, "3") && !strcmp(facts.b, "") && !strcmp(facts.dir, "/"));
    START_WITH(2, 2, "file", file, "host", "localhost:2", "env", "SPAWN_B=4");
    CHECK(!strcmp(facts.a, "") && !strcmp(facts.b, "4") && !strcmp(facts.dir, "/"));
    START_WITH(2, 0, "file", "/nowhere/file");
    soft_parts();
}

/* Of what mrrun refuses other launchers start some: they do not count slots. */
static void by_launcher(const char *name)
{
    char *args[] = {"child", "facts", NULL};
    int code = 0;
    struct facts facts;
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    START_WITH(2, 2, "nonesuch", "whatever");
    CHECK(!strcmp(facts.launcher, name));
    START_WITH(3, 2, "soft", "1:2", "env", "SPAWN_A=1\nSPAWN_B=two words", "wdir", "/");
    CHECK(!strcmp(facts.a, "1") && !strcmp(facts.b, "two words") && !strcmp(facts.dir, "/"));
    EQ(class_of(MPI_Comm_spawn("/nowhere/program", args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &code)),
       MPI_ERR_SPAWN);
    EQ(code, MPI_ERR_SPAWN);
    START_WITH(1, 1, "nonesuch", "whatever");
    if (getenv("MRMPI_LAUNCHER_TIMEOUT_S"))
        EQ(class_of(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &code)),
           MPI_ERR_SPAWN);
}

/* A program that ends at once: prints why that is an error. */
static void tell_why(void)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Comm inter;
    int err, len;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    err = MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    EQ(class_of(err), MPI_ERR_SPAWN);
    MPI_Error_string(err, text, &len);
    if (rank == 0)
        puts(text);
}

/* One child on the host, in words of the launcher. */
static void on_host(const char *host)
{
    char *args[] = {"child", "host", NULL}, name[256] = "";
    MPI_Info info = info_of((const char *[]){"host", host, NULL});
    MPI_Comm inter;
    EQ(MPI_Comm_spawn(self, args, 1, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE), MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, inter);
    CHECK(!strcmp(name, host));
    MPI_Comm_disconnect(&inter);
}

static void child_on_host(MPI_Comm parent)
{
    char name[256] = "";
    if (getenv("SLURMD_NODENAME"))
        snprintf(name, sizeof(name), "%s", getenv("SLURMD_NODENAME"));
    MPI_Bcast(name, sizeof(name), MPI_CHAR, MPI_ROOT, parent);
}

/* ---- the end of parents ---- */

static void touch(const char *dir, const char *name, long number)
{
    char path[512], there[512];
    snprintf(path, sizeof(path), "%s/%s.new", dir, name);
    snprintf(there, sizeof(there), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "%ld\n", number) < 0 || fclose(f) || rename(path, there))
        abort();
}

/* Sorts of children: see "outlives". */
static void outlive(char *dir, int dies)
{
    char *args[] = {"child", "slow", dir, NULL};
    MPI_Comm inter;
    EQ(MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE), MPI_SUCCESS);
    MPI_Comm_disconnect(&inter);
    if (dies)
        raise(SIGKILL);
    MPI_Finalize();
    touch(dir, "parent", getpid());
    exit(0);
}

static void slow_child(const char *dir)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/go", dir);
    if (rank == 0)
        touch(dir, "child", getpid());
    while (access(path, F_OK))
        usleep(10000);
    printf("last words of %d\n", rank);
}

/* The last job may be ending: its mrrun, and connections from its ranks. That end is awaited, for 5 s at most. */
static int is_ending(void)
{
    siginfo_t ended = {0};
    int children = kept_children();
    return children > 1 || (children && !(!waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) && ended.si_pid));
}

static void await_end_of_jobs(void)
{
    int flag;
    for (int i = 0; i < 5000 && is_ending(); i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        usleep(1000);
    }
    for (int i = 0; i < 100; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

static void many(int rounds, int n)
{
    struct kept first, last;
    char what[64];
    for (int i = 0; i < rounds; i++) {
        MPI_Comm inter = start("part", n, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&inter);
        if (i == rounds / 10) {
            await_end_of_jobs();
            kept_measure(&first);
        }
    }
    await_end_of_jobs();
    kept_measure(&last);
    snprintf(what, sizeof(what), "%d times %d children", rounds, n);
    kept_compare(what, &first, &last);
}

static void wrong(void)
{
    char *args[] = {"child", "early", NULL}, *colon[] = {":", NULL};
    int codes[2] = {0, 0};
    MPI_Comm inter = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EQ(class_of(MPI_Comm_spawn("/nowhere/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)),
       MPI_ERR_SPAWN);
    EQ(inter, MPI_COMM_NULL);
    EQ(codes[0], MPI_ERR_SPAWN);
    EQ(codes[1], MPI_ERR_SPAWN);
    EQ(class_of(MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)), MPI_ERR_SPAWN);
    EQ(class_of(MPI_Comm_spawn("true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)),
       MPI_ERR_SPAWN);
    EQ(class_of(MPI_Comm_spawn(self, colon, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)), MPI_ERR_SPAWN);
    EQ(class_of(MPI_Comm_spawn("-n", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)),
       MPI_ERR_SPAWN);
    EQ(class_of(MPI_Comm_spawn(self, args, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes)), MPI_ERR_ARG);
    EQ(class_of(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter, codes)), MPI_ERR_ROOT);
}

static void leaves(void)
{
    int n = 5000, *many = calloc((size_t)n, sizeof(*many));
    MPI_Comm inter = start("stay", 2, MPI_ERRCODES_IGNORE);
    if (rank == 0)
        for (int to = 0; to < 2; to++)
            MPI_Send(many, n, MPI_INT, to, 0, inter);
    free(many);
}

static void dies(void)
{
    int byte, err;
    MPI_Comm inter = start("die", 2, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    err = MPI_Recv(&byte, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    EQ(class_of(err), MPIX_ERR_PROC_FAILED);
    MPI_Comm_free(&inter);
}

static void child(MPI_Comm parent, char **argv)
{
    MPI_Comm again;
    char name[MPI_MAX_OBJECT_NAME];
    int len, got[5000];
    MPI_Comm_get_parent(&again);
    EQ(again, parent);
    MPI_Comm_get_name(parent, name, &len);
    CHECK(!strcmp(name, "MPI_COMM_PARENT"));
    CHECK(!getenv("MRMPI_PARENT"));
    if (!strcmp(argv[2], "talk"))
        talk(parent, 0);
    if (!strncmp(argv[2], "part ", 5))
        child_of_parts(parent, argv);
    if (!strcmp(argv[2], "facts"))
        child_of_keys(parent);
    if (!strcmp(argv[2], "host"))
        child_on_host(parent);
    if (!strcmp(argv[2], "tree")) {
        MPI_Comm inter = start("talk", 2, MPI_ERRCODES_IGNORE);
        talk(inter, 1);
        MPI_Comm_disconnect(&inter);
        talk(parent, 0);
    }
    if (!strcmp(argv[2], "stay")) {
        MPI_Recv(got, 5000, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
        return; /* neither free nor disconnect */
    }
    if (!strcmp(argv[2], "die"))
        raise(SIGKILL);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&again);
    EQ(again, MPI_COMM_NULL);
    if (!strcmp(argv[2], "slow"))
        slow_child(argv[3]);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int provided;
    if (argc > 2 && !strcmp(argv[1], "child") && !strcmp(argv[2], "early"))
        return 3;
    self = realpath(argv[0], NULL);
    MPI_Init_thread(&argc, &argv, argc > 1 && !strcmp(argv[1], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                    &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc == 1) { /* see "bare" */
        CHECK(parent != MPI_COMM_NULL);
        talk(parent, 0);
        MPI_Comm_disconnect(&parent);
    } else if (argc > 2 && !strcmp(argv[1], "child")) {
        CHECK(parent != MPI_COMM_NULL);
        child(parent, argv);
    } else if (!strcmp(argv[1], "some")) {
        EQ(parent, MPI_COMM_NULL);
        some(atoi(argv[2]));
    } else if (!strcmp(argv[1], "threads")) {
        threads(atoi(argv[2]));
    } else if (!strcmp(argv[1], "bare")) {
        bare();
    } else if (!strcmp(argv[1], "parts")) {
        parts();
    } else if (!strcmp(argv[1], "keys")) {
        keys(argv[2]);
    } else if (!strcmp(argv[1], "why")) {
        tell_why();
    } else if (!strcmp(argv[1], "on")) {
        on_host(argv[2]);
    } else if (!strcmp(argv[1], "launcher")) {
        by_launcher(argv[2]);
    } else if (!strncmp(argv[1], "outlive", strlen("outlive"))) {
        outlive(argv[2], !strcmp(argv[1], "outlived"));
    } else if (!strcmp(argv[1], "universe")) {
        EQ(universe_size(), atoi(argv[2]));
    } else if (!strcmp(argv[1], "many")) {
        many(atoi(argv[2]), atoi(argv[3]));
    } else if (!strcmp(argv[1], "tree")) {
        MPI_Comm inter = start("tree", 1, MPI_ERRCODES_IGNORE);
        talk(inter, 1);
        MPI_Comm_disconnect(&inter);
    } else if (!strcmp(argv[1], "wrong")) {
        wrong();
    } else if (!strcmp(argv[1], "leaves")) {
        leaves();
    } else {
        dies();
    }
    free(self);
    return mt_end();
}
