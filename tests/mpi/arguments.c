/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each argument of each function, wrong in every way possible for its type and name, while all others are right: the
 * call returns the class of that argument, with a text that names function, argument and value. Functions and arguments
 * are read from mpi.h, so new functions are tried as well. Unsupported functions are called with right arguments, and
 * must report so. A child process makes the calls, because a call may crash or hang: another child goes on with the
 * next function.
 */
#include "mt.h"

#include <ctype.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 14, WORDS = 64, NONE = 0x12345 /* no handle of any kind */ };

static const struct function {
    const char *name;
    void (*call)(void);
    int supported;
    const char *args;
} functions[] = {
#define FUNCTION(name, supported, args) {#name, (void (*)(void))name, supported, args},
#include "functions.h"
#undef FUNCTION
};

/* Values for rules: valid handles, and some freed ones. */
static struct {
    MPI_Comm comm, cart, graph, dist, freed_comm;
    MPI_Datatype freed_type;
    MPI_Op freed_op;
    MPI_Group group, freed_group;
    MPI_Info info, freed_info;
    MPI_Errhandler freed_handler;
    MPI_Session session;
    MPI_File file, freed_file;
    MPI_Win win, dynamic, freed_win; /* the first one in an epoch of MPI_Win_lock_all */
    int comm_key, type_key, win_key, freed_key;
} have;

/* Right values of an argument of this type and name, and wrong values with the class of the error. */
struct rule {
    const char *type, *names; /* "|a|b|"; NULL: any */
    long right;
    struct wrong {
        const char *what;
        long value;
        int class;
    } wrong[4];
};
struct arg {
    char type[48], name[32];
};

#define HANDLES(null, freed, class)                                                                                    \
    {                                                                                                                  \
        {"null handle", null, class}, {"no handle", NONE, class},                                                      \
        {                                                                                                              \
            "freed", freed, class                                                                                      \
        }                                                                                                              \
    }
#define BAD(value, class)                                                                                              \
    {                                                                                                                  \
        {                                                                                                              \
#value, value, class                                                                                       \
        }                                                                                                              \
    }
#define BAD_RANKS(class)                                                                                               \
    {                                                                                                                  \
        {"1", 1, class},                                                                                               \
        {                                                                                                              \
            "-7", -7, class                                                                                            \
        }                                                                                                              \
    }

static int begins(const struct function *f, const char *name)
{
    return !strncmp(f->name, name, strlen(name));
}

static struct rule rule_of(const struct function *f, const struct arg *a)
{
    int of_win = begins(f, "MPI_Win_");
    const char counts[] = "|count|sendcount|recvcount|incount|outcount|origin_count|target_count|result_count|",
               sizes[] = "|insize|outsize|";
    const struct rule rules[] = {
        {"MPI_Comm", NULL, have.comm, HANDLES(MPI_COMM_NULL, have.freed_comm, MPI_ERR_COMM)},
        {"MPI_Datatype", NULL, MPI_INT, HANDLES(MPI_DATATYPE_NULL, have.freed_type, MPI_ERR_TYPE)},
        {"MPI_Op", NULL, MPI_SUM, HANDLES(MPI_OP_NULL, have.freed_op, MPI_ERR_OP)},
        {"MPI_Group", NULL, have.group, HANDLES(MPI_GROUP_NULL, have.freed_group, MPI_ERR_GROUP)},
        {"MPI_Info", NULL, have.info, HANDLES(MPI_INFO_NULL, have.freed_info, MPI_ERR_INFO)},
        {"MPI_Errhandler", NULL, MPI_ERRORS_RETURN, HANDLES(MPI_ERRHANDLER_NULL, have.freed_handler, MPI_ERR_ARG)},
        {"MPI_Session",
         NULL,
         have.session,
         {{"null handle", MPI_SESSION_NULL, MPI_ERR_SESSION}, {"no handle", NONE, MPI_ERR_SESSION}}},
        {"MPI_Win", NULL, have.win, HANDLES(MPI_WIN_NULL, have.freed_win, MPI_ERR_WIN)},
        {"MPI_File", NULL, (long)have.file, HANDLES(0, (long)have.freed_file, MPI_ERR_FILE)},
        {"MPI_Offset", NULL, 0, BAD(-1, MPI_ERR_ARG)},
        {"int", "|amode|", MPI_MODE_RDONLY, BAD(0, MPI_ERR_AMODE)},
        {"int", "|whence|", MPI_SEEK_SET, BAD(-99, MPI_ERR_ARG)},
        {"int", "|assert|", 0, BAD(1, MPI_ERR_ASSERT)},
        {"int", "|lock_type|", MPI_LOCK_SHARED, BAD(-99, MPI_ERR_LOCKTYPE)},
        {"int", "|disp_unit|", 1, {{"0", 0, MPI_ERR_DISP}, {"-1", -1, MPI_ERR_DISP}}},
        {"MPI_Aint", "|disp_unit|", 1, {{"0", 0, MPI_ERR_DISP}, {"-1", -1, MPI_ERR_DISP}}},
        {"MPI_Aint", "|target_disp|", 0, BAD(-1, MPI_ERR_DISP)},
        {"MPI_Request", NULL, MPI_REQUEST_NULL, BAD(NONE, MPI_ERR_REQUEST)},
        {"int", counts, 1, BAD(-1, MPI_ERR_COUNT)},
        {"MPI_Count", counts, 1, BAD(-1, MPI_ERR_COUNT)},
        {"int", "|blocklength|", 1, BAD(-1, MPI_ERR_ARG)},
        {"MPI_Count", "|blocklength|", 1, BAD(-1, MPI_ERR_ARG)},
        {"int", "|dest|source|rank|target_rank|local_leader|remote_leader|", 0, BAD_RANKS(MPI_ERR_RANK)},
        {"int", "|root|", 0, BAD_RANKS(MPI_ERR_ROOT)},
        {"int", "|tag|sendtag|recvtag|", 0, BAD(-77, MPI_ERR_TAG)},
        {"int",
         "|keyval|",
         have.comm_key,
         {{"invalid", MPI_KEYVAL_INVALID, MPI_ERR_KEYVAL},
          {"none", NONE, MPI_ERR_KEYVAL},
          {"freed", have.freed_key, MPI_ERR_KEYVAL}}},
        {"int", "|maxprocs|", 1, BAD(0, MPI_ERR_ARG)},
        {"int", "|ndims|", 1, BAD(-1, MPI_ERR_DIMS)},
        {"int", "|logical_size|", 4, BAD(-99, MPI_ERR_ARG)},
        {"int", "|order|", MPI_ORDER_C, BAD(-99, MPI_ERR_ARG)},
        {"int", "|split_type|", MPI_COMM_TYPE_SHARED, BAD(-99, MPI_ERR_ARG)},
        {"int", "|typeclass|", MPI_TYPECLASS_INTEGER, BAD(-99, MPI_ERR_ARG)},
        {"int", "|direction|", 0, BAD(-99, MPI_ERR_ARG)},
        {"int",
         "|n|nnodes|size|partitions|indegree|outdegree|color|maxdims|maxindex|maxedges|maxneighbors|maxindegree|"
         "maxoutdegree|",
         1, BAD(-99, MPI_ERR_ARG)},
        {"int", sizes, 64, BAD(-1, MPI_ERR_TRUNCATE)},
        {"MPI_Aint", sizes, 64, BAD(-1, MPI_ERR_TRUNCATE)},
        {"MPI_Count", sizes, 64, BAD(-1, MPI_ERR_TRUNCATE)},
        {"MPI_Aint", "|size|", 64, BAD(-1, of_win ? MPI_ERR_SIZE : MPI_ERR_ARG)},
        {"MPI_Count", "|size|", 64, BAD(-1, MPI_ERR_ARG)},
        {"int", NULL, 0, {{0}}},
        {"MPI_Aint", NULL, 0, {{0}}},
        {"MPI_Count", NULL, 0, {{0}}},
        {"MPI_Fint", NULL, 0, {{0}}},
        {"void *", "|base|", 0, {{"none", of_win ? 0 : NONE, MPI_ERR_BASE}}},
        {"void *", "|extra_state|value|location|", 0, {{0}}},
        {"void *", "|logical_true|logical_false|", 0, BAD(0, MPI_ERR_ARG)},
        {"const void *", "|location|", 0, {{0}}},
        {"void *", "|baseptr|buffer_addr|", 0, BAD(0, MPI_ERR_ARG)},
        {"void *", NULL, 0, BAD(0, MPI_ERR_BUFFER)},
        {"const void *", NULL, 0, BAD(0, MPI_ERR_BUFFER)},
        {"const char *", begins(f, "MPI_File_set_view") ? "|datarep|" : "", 0, BAD(0, MPI_ERR_UNSUPPORTED_DATAREP)},
        {NULL, NULL, 0, BAD(0, MPI_ERR_ARG)},
    };
    char name[40];
    const struct rule *r = rules;
    snprintf(name, sizeof(name), "|%s|", a->name);
    while (r->type && (strcmp(r->type, a->type) || (r->names && !strstr(r->names, name))))
        r++;
    return *r;
}

/* Wrong values that the standard allows, or that cannot be detected. */
static int allowed(const struct function *f, const struct arg *a, const struct wrong *w)
{
    static const struct {
        const char *function, *argument; /* how the name begins; "" is how all do */
    } fine[] = {
        /* a null function is none to call, or one of MPI's own */
        {"", "copy_fn"},
        {"", "delete_fn"},
        {"", "poll_fn"},
        {"", "wait_fn"},
        {"", "query_fn"},
        {"", "free_fn"},
        {"", "cancel_fn"},
        {"", "read_conversion_fn"},
        {"", "write_conversion_fn"},
        /* nothing to be looked at: no request, no room for a text, no arguments, no edges, no weights */
        {"MPI_P", "array_of_partitions"},
        {"", "partition"},
        {"MPI_Session_get_nth_pset", "pset_name"},
        {"MPI_Info_get", "value"},
        {"MPI_Info_create_env", "argv"},
        {"", "weights"},
        {"MPI_Comm_spawn", "argv"},
        {"MPI_Comm_spawn", "array_of_argv"},
        {"MPI_Comm_spawn", "array_of_errcodes"},
        {"MPI_Cart_map", "periods"},
        /* another argument cannot be right here: a type that was made, an intercommunicator */
        {"MPI_Type_get_contents", "integers"},
        {"MPI_Type_get_contents", "addresses"},
        {"MPI_Type_get_contents", "datatypes"},
        {"MPI_Type_get_contents", "large_counts"},
        {"MPI_Comm_remote_size", "size"},
        {"MPI_Comm_remote_group", "group"},
        {"MPI_Intercomm_merge", "newintracomm"},
        /* attached memory */
        {"MPI_Win_detach", "base"},
        /* an access that has begun */
        {"MPI_File_read_all_end", "buf"},
        {"MPI_File_read_at_all_end", "buf"},
        {"MPI_File_read_ordered_end", "buf"},
        {"MPI_File_write_all_end", "buf"},
        {"MPI_File_write_at_all_end", "buf"},
        {"MPI_File_write_ordered_end", "buf"},
        /* statuses keep any value */
        {"MPI_Status_set_source", "source"},
        {"MPI_Status_set_tag", "tag"},
        /* reports MPI_ERR_DIMS */
        {"MPI_Dims_create", "nnodes"},
    };
    for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++)
        if (!strncmp(f->name, fine[i].function, strlen(fine[i].function)) && !strcmp(a->name, fine[i].argument))
            return 1;
    if (w->value == (long)MPI_STATUS_IGNORE && !strcmp(a->type, "MPI_Status *") && strncmp(f->name, "MPI_Status_", 11))
        return 1; /* a null pointer in the standard's binary interface */
    if (!w->value && !strcmp(a->type, "MPI_File") && strstr(f->name, "errhandler"))
        return 1; /* arguments that files take over */
    return w->value == MPI_INFO_NULL && !strcmp(a->type, "MPI_Info") && strncmp(f->name, "MPI_Info_", 9);
}

/* ---- a call ---- */

/* Memory for pointer arguments, each its own. */
static long words[ARGS_MAX][WORDS];

/* "const int counts[], MPI_Comm comm": two, "const int *" counts, and comm */
static int read_args(const char *text, struct arg *args)
{
    char *copy = strdup(text), *save, *part = strtok_r(copy, ",", &save);
    int n = 0;
    for (; part && n < ARGS_MAX && strcmp(part, "void"); part = strtok_r(NULL, ",", &save), n++) {
        part += *part == ' ';
        char *end = part + strcspn(part, "["), *name = end;
        while (name > part && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        int len = (int)(name - part) - (name > part && name[-1] == ' ');
        snprintf(args[n].type, sizeof(args[n].type), "%.*s%s", len, part, *end ? " *" : "");
        snprintf(args[n].name, sizeof(args[n].name), "%.*s", (int)(end - name), name);
    }
    free(copy);
    return n;
}

/* Any number is converted. */
static int converts(const struct function *f)
{
    const char *last = strrchr(f->name, '_');
    return !strcmp(last, "_c2f") || !strcmp(last, "_f2c") || !strcmp(last, "_toint") || !strcmp(last, "_fromint");
}

static void fill(int *at, int value)
{
    for (int i = 0; i < 2 * WORDS; i++)
        at[i] = value;
}

/* Handles are numbers, or pointers in the standard's binary interface. */
static void fill_handles(long *at, long handle)
{
    if (sizeof(MPI_Datatype) == sizeof(int))
        fill((int *)at, (int)handle);
    for (int i = 0; i < WORDS && sizeof(MPI_Datatype) == sizeof(long); i++)
        at[i] = handle;
}

/* The right value, of this argument of this function. */
static long right(const struct function *f, const struct arg *a, long *at)
{
    struct rule r = rule_of(f, a);
    const char *not_one = "ranks coords sources destinations edges";
    int made = strstr(f->name, "create") || strstr(f->name, "map");
    if (!strcmp(a->type, "MPI_Comm") && !made) {
        if (begins(f, "MPI_Cart") || strstr(f->name, "eighbor_"))
            return have.cart;
        if (begins(f, "MPI_Graph"))
            return have.graph;
        if (begins(f, "MPI_Dist_graph_n") || begins(f, "MPI_Ineighbor"))
            return have.dist;
    }
    if (!strcmp(a->type, "int") && !strcmp(a->name, "keyval") && begins(f, "MPI_Type"))
        return have.type_key;
    if (!strcmp(a->type, "int") && !strcmp(a->name, "keyval") && begins(f, "MPI_Win"))
        return have.win_key;
    if (!strcmp(a->type, "MPI_Win") && (begins(f, "MPI_Win_attach") || begins(f, "MPI_Win_detach")))
        return have.dynamic;
    if (begins(f, "MPI_Comm_spawn") && strstr(a->name, "argv"))
        return 0;
    if (r.type && (r.right || !strchr(a->type, '*')))
        return r.right;
    if (!strcmp(a->type, "const MPI_Datatype *"))
        fill_handles(at, (long)MPI_INT);
    else if (!strcmp(a->type, "const MPI_Info *"))
        fill_handles(at, (long)MPI_INFO_NULL);
    else if (!strcmp(a->name, "array_of_commands"))
        at[0] = (long)"x";
    else if (!strcmp(a->type, "MPI_Request *"))
        fill_handles(at, (long)MPI_REQUEST_NULL);
    else if (!strcmp(a->type, "const int *") && !strstr(a->name, "disp") && !strstr(not_one, a->name))
        fill((int *)at, 1);
    else if (!strcmp(a->type, "const MPI_Count *"))
        at[0] = at[1] = 1;
    else if (begins(f, "MPI_Register_datarep") && !strcmp(a->name, "datarep"))
        strcpy((char *)at, "x");
    else if (strstr(a->type, "char *"))
        strcpy((char *)at,
               strcmp(a->name, "datarep") ? strcmp(a->name, "pset_name") ? "x" : "mpi://SELF" : "external32");
    return (long)at;
}

static struct {
    int code, class;
    char text[MPI_MAX_ERROR_STRING];
} result;

/* In memory shared by the parent and its children: the child's present function and call, in case the child dies. */
static struct {
    int failures, tried; /* functions, with the present one */
    char doing[128];
} * shared;

/* All arguments are as wide as a register or a stack word, so extra arguments do no harm. */
static void call(const struct function *f, const struct arg *a, const char *what, const long *v)
{
    typedef int any(long, long, long, long, long, long, long, long, long, long, long, long, long, long);
    int n;
    snprintf(shared->doing, sizeof(shared->doing), "%s, %s (%s)", f->name, a->name, what);
    result.code =
        ((any *)f->call)(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13]);
    MPI_Error_string(result.code, result.text, &n);
    MPI_Error_class(result.code, &result.class);
}

/* Functions with a successor fail in the successor's name. */
static int has_successor(const struct function *f)
{
    char name[80];
    snprintf(name, sizeof(name), "|%s|", f->name);
    return strstr("|MPI_Errhandler_create|MPI_Errhandler_set|MPI_Errhandler_get|MPI_Keyval_create|MPI_Keyval_free|MPI_"
                  "Attr_put|"
                  "MPI_Attr_get|MPI_Attr_delete|MPI_Type_size_x|MPI_Type_get_extent_x|"
                  "MPI_Type_get_true_extent_x|MPI_Address|MPI_Type_hvector|"
                  "MPI_Type_hindexed|MPI_Type_struct|",
                  name) != NULL;
}

/* The text names the argument and its value. */
static int told(const struct arg *a, const struct wrong *w)
{
    char number[32], handle[32], address[32];
    snprintf(number, sizeof(number), "%ld", w->value);
    snprintf(handle, sizeof(handle), "0x%08x", (unsigned)w->value);
    snprintf(address, sizeof(address), "%#lx", w->value);
    return strstr(result.text, a->name) && (strstr(result.text, number) || strstr(result.text, handle) ||
                                            strstr(result.text, address) || strstr(result.text, "null"));
}

/* a, w: the wrong argument; NULL: none */
static void expect(const struct function *f, const struct arg *a, const struct wrong *w, int class)
{
    size_t n = strcspn(result.text, ":");
    int named = strlen(f->name) == n && !strncmp(result.text, f->name, n);
    if (result.class == class && (named || has_successor(f)) && (!a || told(a, w)))
        return;
    shared->failures++;
    fprintf(stderr, "%s: class %d expected, and a text with all names and values; it is %d: %s\n", shared->doing, class,
            result.class, result.text);
}

static void try(const struct function *f)
{
    struct arg args[ARGS_MAX];
    long v[ARGS_MAX] = {0};
    int n = read_args(f->args, args);
    CHECK(n < ARGS_MAX);
    memset(words, 0, sizeof(words));
    for (int i = 0; i < n; i++)
        v[i] = right(f, &args[i], words[i]);
    if (!f->supported) {
        call(f, &(struct arg){.name = "all is right"}, "not supported", v);
        expect(f, NULL, NULL, MPI_ERR_UNSUPPORTED_OPERATION);
        return;
    }
    for (int i = 0; i < n; i++) {
        struct rule r = rule_of(f, &args[i]);
        for (const struct wrong *w = r.wrong; w->what; w++) {
            long was = v[i];
            if (allowed(f, &args[i], w))
                continue;
            v[i] = w->value;
            call(f, &args[i], w->what, v);
            v[i] = was;
            expect(f, &args[i], w, w->class);
        }
    }
}

enum { FUNCTIONS = sizeof(functions) / sizeof(*functions) };

static int is_tried(const struct function *f)
{
    const char *never = "|MPI_Init|MPI_Init_thread|MPI_Finalize|MPI_Abort|MPI_Pcontrol|";
    char name[80];
    snprintf(name, sizeof(name), "|%s|", f->name);
    return !strstr(never, name) && !begins(f, "MPI_T_") && !converts(f);
}

/* A child tries all functions from shared->tried on, up to the first one that crashes or has not returned in a minute.
 */
static void try_apart(void)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        while (shared->tried < FUNCTIONS) {
            const struct function *f = &functions[shared->tried++];
            alarm(60);
            if (is_tried(f))
                try(f);
        }
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status) {
        shared->failures++;
        fprintf(stderr, "%s: no return, wait status %#x\n", shared->doing, status);
    }
}

/* ---- present functions ---- */

static char file_name[256];

static void nothing(void)
{
}

static void make(void)
{
    int one = 1, zero = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &have.comm);
    MPI_Cart_create(MPI_COMM_SELF, 1, &one, &one, 0, &have.cart);
    MPI_Graph_create(MPI_COMM_SELF, 1, &one, &zero, 0, &have.graph);
    MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, &zero, &one, 1, &zero, &one, MPI_INFO_NULL, 0, &have.dist);
    MPI_Comm_group(MPI_COMM_SELF, &have.group);
    MPI_Info_create(&have.info);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &have.session);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &have.comm_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &have.type_key, NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &have.win_key, NULL);
    void *memory;
    MPI_Win_allocate(sizeof(words), 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &have.win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &have.dynamic);
    MPI_Win_set_errhandler(have.win, MPI_ERRORS_RETURN);
    MPI_Win_set_errhandler(have.dynamic, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, have.win);
    snprintf(file_name, sizeof(file_name), "%s/mrmpi-arguments-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
             (int)getpid());
    MPI_File_open(MPI_COMM_SELF, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &have.file);
}

static void make_and_free(void)
{
    int first = 0;
    MPI_Comm c;
    MPI_Datatype t;
    MPI_Op op;
    MPI_Group g;
    MPI_Info i;
    MPI_Errhandler h;
    MPI_Win w;
    MPI_File f;
    MPI_File_open(MPI_COMM_SELF, file_name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    have.freed_file = f;
    MPI_File_close(&f);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &w);
    have.freed_win = w;
    MPI_Win_free(&w);
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    have.freed_comm = c;
    MPI_Comm_free(&c);
    MPI_Type_contiguous(2, MPI_INT, &t);
    have.freed_type = t;
    MPI_Type_free(&t);
    MPI_Op_create((MPI_User_function *)nothing, 1, &op);
    have.freed_op = op;
    MPI_Op_free(&op);
    MPI_Group_incl(have.group, 1, &first, &g);
    have.freed_group = g;
    MPI_Group_free(&g);
    MPI_Info_create(&i);
    have.freed_info = i;
    MPI_Info_free(&i);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)nothing, &h);
    have.freed_handler = h;
    MPI_Errhandler_free(&h);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &first, NULL);
    have.freed_key = first;
    MPI_Comm_free_keyval(&first);
}

static void unmake(void)
{
    MPI_Comm_free(&have.comm);
    MPI_Comm_free(&have.cart);
    MPI_Comm_free(&have.graph);
    MPI_Comm_free(&have.dist);
    MPI_Group_free(&have.group);
    MPI_Info_free(&have.info);
    MPI_Session_finalize(&have.session);
    MPI_Comm_free_keyval(&have.comm_key);
    MPI_Type_free_keyval(&have.type_key);
    MPI_Win_free_keyval(&have.win_key);
    MPI_Win_unlock_all(have.win);
    MPI_Win_free(&have.win);
    MPI_Win_free(&have.dynamic);
    MPI_File_close(&have.file);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    make();
    make_and_free();
    while (shared->tried < FUNCTIONS)
        try_apart();
    EQ(shared->failures, 0);
    unmake();
    return mt_end();
}
