/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool information interface: before MPI_Init, during, and after MPI_Finalize. Settings written before MPI_Init are
 * seen to work by counters that say how messages went.
 */
#include "mt.h"

static int cvar(const char *name)
{
    int i = -1;
    EQ(MPI_T_cvar_get_index(name, &i), MPI_SUCCESS);
    return i;
}

static MPI_T_cvar_handle open_cvar(const char *name, int want_count)
{
    MPI_T_cvar_handle h;
    int count;
    EQ(MPI_T_cvar_handle_alloc(cvar(name), NULL, &h, &count), MPI_SUCCESS);
    EQ(count, want_count);
    return h;
}

static int write_int(const char *name, int value)
{
    MPI_T_cvar_handle h = open_cvar(name, 1);
    int code = MPI_T_cvar_write(h, &value);
    MPI_T_cvar_handle_free(&h);
    CHECK(h == MPI_T_CVAR_HANDLE_NULL);
    return code;
}

static int write_size(const char *name, unsigned long value)
{
    MPI_T_cvar_handle h = open_cvar(name, 1);
    int code = MPI_T_cvar_write(h, &value);
    MPI_T_cvar_handle_free(&h);
    return code;
}

static unsigned long read_size(const char *name)
{
    MPI_T_cvar_handle h = open_cvar(name, 1);
    unsigned long value = 77;
    EQ(MPI_T_cvar_read(h, &value), MPI_SUCCESS);
    MPI_T_cvar_handle_free(&h);
    return value;
}

static int read_int(const char *name)
{
    MPI_T_cvar_handle h = open_cvar(name, 1);
    int value = 77;
    EQ(MPI_T_cvar_read(h, &value), MPI_SUCCESS);
    MPI_T_cvar_handle_free(&h);
    return value;
}

static void not_yet(void)
{
    int n;
    EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_category_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_event_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
}

/* Every control variable: described, found by its name, readable as described. */
static void all_cvars(int running)
{
    const char *anytime = "MRMPI_CHECK MRMPI_CHECK_ARGS MRMPI_LEAKS MRMPI_LOG_LEVEL MRMPI_SPIN_US MRMPI_STATS "
                          "MRMPI_STRIPE_MIN MRMPI_UNSENT_MAX";
    int num, kinds[3] = {0};
    EQ(MPI_T_cvar_get_num(&num), MPI_SUCCESS);
    CHECK(num > 10);
    for (int i = 0; i < num; i++) {
        char name[100], desc[300], value[4096];
        int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, bind, scope, count, j;
        MPI_Datatype t;
        MPI_T_enum e;
        MPI_T_cvar_handle h;
        EQ(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &t, &e, desc, &desc_len, &bind, &scope), MPI_SUCCESS);
        int rails = !strcmp(name, "MRMPI_RAILS"); /* no setting */
        CHECK(!strncmp(name, "MRMPI_", 6) && name_len == (int)strlen(name) + 1);
        CHECK(desc_len == (int)strlen(desc) + 1 && desc_len > 5);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC && verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL);
        CHECK(bind == MPI_T_BIND_NO_OBJECT);
        CHECK(scope == (rails || (running && !strstr(anytime, name)) ? MPI_T_SCOPE_READONLY : MPI_T_SCOPE_LOCAL));
        EQ(MPI_T_cvar_get_index(name, &j), MPI_SUCCESS);
        EQ(j, i);
        EQ(MPI_T_cvar_handle_alloc(i, NULL, &h, &count), MPI_SUCCESS);
        CHECK(t == MPI_CHAR ? count > 1 && count <= (int)sizeof(value) : count == 1);
        memset(value, 0xee, sizeof(value));
        EQ(MPI_T_cvar_read(h, value), MPI_SUCCESS);
        if (t == MPI_CHAR)
            CHECK(memchr(value, 0, (size_t)count));
        if (e != MPI_T_ENUM_NULL) {
            CHECK(t == MPI_INT && (*(int *)value == 0 || *(int *)value == 1));
            kinds[2]++;
        }
        kinds[0] += t == MPI_CHAR;
        kinds[1] += t == MPI_UNSIGNED_LONG;
        CHECK(t == MPI_CHAR || t == MPI_INT || t == MPI_UNSIGNED_LONG);
        EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
    }
    CHECK(kinds[0] && kinds[1] && kinds[2]);
    char tiny[6];
    int len = sizeof(tiny), need = 0, i;
    MPI_T_cvar_get_info(0, tiny, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(!strcmp(tiny, "MRMPI") && len == 6);
    MPI_T_cvar_get_info(0, NULL, &need, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(need > 6);
    EQ(MPI_T_cvar_get_info(num, tiny, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_cvar_get_info(-1, tiny, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_cvar_get_index("MRMPI_NO_SUCH", &i), MPI_T_ERR_INVALID_NAME);
}

static void enums(void)
{
    MPI_T_enum e;
    char name[20];
    int len = sizeof(name), num, value;
    MPI_T_cvar_get_info(cvar("MRMPI_SINGLE_COPY"), NULL, NULL, NULL, NULL, &e, NULL, NULL, NULL, NULL);
    EQ(MPI_T_enum_get_info(e, &num, name, &len), MPI_SUCCESS);
    CHECK(num == 2 && len == (int)strlen(name) + 1);
    len = sizeof(name);
    EQ(MPI_T_enum_get_item(e, 1, &value, name, &len), MPI_SUCCESS);
    CHECK(value == 1 && !strcmp(name, "yes"));
    EQ(MPI_T_enum_get_item(e, 2, &value, name, &len), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &num, name, &len), MPI_T_ERR_INVALID_HANDLE);
}

/* Each variable is in one category, and one category holds the others. */
static void categories(void)
{
    int num, cvars, pvars, seen_c[200] = {0}, seen_p[200] = {0}, list[200], n, root = -1, tops = 0;
    MPI_T_cvar_get_num(&cvars);
    MPI_T_pvar_get_num(&pvars);
    EQ(MPI_T_category_get_num(&num), MPI_SUCCESS);
    for (int c = 0; c < num; c++) {
        char name[50], desc[200];
        int name_len = sizeof(name), desc_len = sizeof(desc), nc, np, sub, i;
        EQ(MPI_T_category_get_info(c, name, &name_len, desc, &desc_len, &nc, &np, &sub), MPI_SUCCESS);
        EQ(MPI_T_category_get_index(name, &i), MPI_SUCCESS);
        EQ(i, c);
        CHECK(desc_len > 5);
        memset(list, -1, sizeof(list));
        EQ(MPI_T_category_get_cvars(c, nc, list), MPI_SUCCESS);
        for (int k = 0; k < nc; k++)
            seen_c[list[k]]++;
        EQ(list[nc], -1);
        memset(list, -1, sizeof(list));
        EQ(MPI_T_category_get_pvars(c, np, list), MPI_SUCCESS);
        for (int k = 0; k < np; k++)
            seen_p[list[k]]++;
        EQ(list[np], -1);
        if (sub) {
            root = c;
            tops += sub;
        }
        n = -1;
        EQ(MPI_T_category_get_num_events(c, &n), MPI_SUCCESS);
        EQ(n, 0);
        EQ(MPI_T_category_get_events(c, 200, list), MPI_SUCCESS);
    }
    for (int i = 0; i < cvars; i++)
        EQ(seen_c[i], 1);
    for (int i = 0; i < pvars; i++)
        EQ(seen_p[i], 1);
    EQ(tops, num - 1);
    memset(list, -1, sizeof(list));
    EQ(MPI_T_category_get_categories(root, 2, list), MPI_SUCCESS);
    CHECK(list[0] >= 0 && list[1] >= 0 && list[0] != list[1] && list[2] == -1);
    n = -1;
    EQ(MPI_T_category_changed(&n), MPI_SUCCESS);
    EQ(n, 0);
    EQ(MPI_T_category_get_index("none", &n), MPI_T_ERR_INVALID_NAME);
    EQ(MPI_T_category_get_cvars(num, 1, list), MPI_T_ERR_INVALID_INDEX);
}

static void on_event(MPI_T_event_instance i, MPI_T_event_registration r, MPI_T_cb_safety s, void *data)
{
    CHECK(!"there are no events");
}

static void events(void)
{
    int n = 5, len = 0;
    MPI_T_event_registration r = NULL;
    MPI_Count stamp;
    MPI_Info info;
    EQ(MPI_T_event_get_num(&n), MPI_SUCCESS);
    EQ(n, 0);
    n = 5;
    EQ(MPI_T_source_get_num(&n), MPI_SUCCESS);
    EQ(n, 0);
    EQ(MPI_T_event_get_index("x", &n), MPI_T_ERR_INVALID_NAME);
    EQ(MPI_T_event_get_info(0, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
       MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, &r), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_register_callback(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, on_event),
       MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_handle_free(r, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_handle_get_info(r, &info), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_handle_set_info(r, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_callback_set_info(r, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_set_dropped_handler(r, NULL), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_read(NULL, 0, &n), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_copy(NULL, &n), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_get_source(NULL, &n), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_get_timestamp(NULL, &stamp), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_source_get_info(0, NULL, &len, NULL, &len, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_source_get_timestamp(0, &stamp), MPI_T_ERR_INVALID_INDEX);
}

static void writing_before_init(void)
{
    char text[1024] = "no_such_adapter:1", back[1024] = "", long_text[1024];
    MPI_T_cvar_handle h = open_cvar("MRMPI_DEVICES", 1024), freed;
    memset(long_text, 'x', sizeof(long_text)); /* without an end */
    EQ(MPI_T_cvar_write(h, text), MPI_SUCCESS);
    EQ(MPI_T_cvar_read(h, back), MPI_SUCCESS);
    CHECK(!strcmp(back, text));
    EQ(MPI_T_cvar_write(h, long_text), MPI_T_ERR_INVALID);
    EQ(MPI_T_cvar_write(h, ""), MPI_SUCCESS); /* all of them again */
    freed = h;
    EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
    EQ(MPI_T_cvar_read(freed, back), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_cvar_handle_free(&freed), MPI_T_ERR_INVALID_HANDLE);
    EQ(read_size("MRMPI_STRIPE_MIN"), 48 << 10); /* the environment, set by main */
    EQ(write_int("MRMPI_SINGLE_COPY", 2), MPI_T_ERR_INVALID);
    EQ(write_int("MRMPI_SINGLE_COPY", 0), MPI_SUCCESS);
    EQ(read_int("MRMPI_SINGLE_COPY"), 0);
    EQ(write_size("MRMPI_EAGER_MAX", 1), MPI_T_ERR_INVALID); /* out of its bounds */
    EQ(write_size("MRMPI_EAGER_MAX", 512), MPI_SUCCESS);
    EQ(write_size("MRMPI_SHM_EAGER_MAX", 512), MPI_SUCCESS);
    EQ(read_size("MRMPI_SHM_EAGER_MAX"), 512);
}

static void writing_after_init(void)
{
    char text[1024] = "x";
    int same[2] = {1, 2}, one = 1, zero = 0;
    MPI_Datatype uncommitted;
    MPI_T_cvar_handle h = open_cvar("MRMPI_DEVICES", 1024);
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    EQ(read_size("MRMPI_EAGER_MAX"), 512);
    EQ(MPI_T_cvar_write(h, text), MPI_T_ERR_CVAR_SET_NEVER);
    EQ(write_size("MRMPI_EAGER_MAX", 1024), MPI_T_ERR_CVAR_SET_NEVER);
    MPI_T_cvar_handle_free(&h);
    /* checks can be switched while the program runs */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    EQ(read_int("MRMPI_CHECK_ARGS"), 1);
    CHECK(MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    EQ(write_int("MRMPI_CHECK_ARGS", 0), MPI_SUCCESS);
    EQ(MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_SUCCESS);
    EQ(MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, -1, MPI_COMM_WORLD), MPI_SUCCESS);
    EQ(write_int("MRMPI_STATS", 123), MPI_SUCCESS); /* a truth value: any number */
    EQ(read_int("MRMPI_STATS"), 123);
    EQ(write_int("MRMPI_STATS", 0), MPI_SUCCESS);
    EQ(MPI_Allreduce(same, same, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF), MPI_SUCCESS);
    EQ(MPI_Gatherv(same, 1, MPI_INT, same + 1, &one, &zero, uncommitted, 0, MPI_COMM_SELF), MPI_SUCCESS);
    EQ(write_int("MRMPI_CHECK_ARGS", 1), MPI_SUCCESS);
    CHECK(MPI_Send(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
    CHECK(MPI_Gatherv(same, 1, MPI_INT, same + 1, &one, &zero, uncommitted, 0, MPI_COMM_SELF) != MPI_SUCCESS);
    MPI_Type_free(&uncommitted);
}

static MPI_T_pvar_handle open_pvar(MPI_T_pvar_session s, const char *name)
{
    MPI_T_pvar_handle h;
    int i, count;
    EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &i), MPI_SUCCESS);
    EQ(MPI_T_pvar_handle_alloc(s, i, NULL, &h, &count), MPI_SUCCESS);
    EQ(count, 1);
    return h;
}

static unsigned long long count_of(MPI_T_pvar_session s, MPI_T_pvar_handle h)
{
    unsigned long long v = 12345678;
    EQ(MPI_T_pvar_read(s, h, &v), MPI_SUCCESS);
    return v;
}

/* n messages of some bytes from every even rank to the next one, if any. */
static int exchange(int n, int bytes)
{
    static char buf[4096];
    if (rank % 2 == 0 && rank + 1 == size)
        return 0;
    for (int i = 0; i < n; i++) {
        if (rank % 2 == 0)
            MPI_Send(buf, bytes, MPI_BYTE, rank + 1, 7, MPI_COMM_WORLD);
        else
            MPI_Recv(buf, bytes, MPI_BYTE, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return rank % 2 == 0 ? n : 0;
}

static void all_pvars(void)
{
    int num, i;
    EQ(MPI_T_pvar_get_num(&num), MPI_SUCCESS);
    CHECK(num > 5);
    for (int p = 0; p < num; p++) {
        char name[100], desc[200];
        int name_len = sizeof(name), desc_len = sizeof(desc), verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype t;
        MPI_T_enum e;
        EQ(MPI_T_pvar_get_info(p, name, &name_len, &verbosity, &class, &t, &e, desc, &desc_len, &bind, &readonly,
                               &continuous, &atomic),
           MPI_SUCCESS);
        int share = !strcmp(name, "rail_share");
        int level = !strcmp(name, "reg_cache_entries") || !strcmp(name, "reg_cache_bytes") ||
                    !strcmp(name, "reg_cache_kept") || !strncmp(name, "model_", 6) || !strncmp(name, "seen_", 5);
        CHECK(name_len > 3 && desc_len > 5);
        EQ(class, share ? MPI_T_PVAR_CLASS_PERCENTAGE : level ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER);
        CHECK(t == (share ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG));
        CHECK(e == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT && readonly == (share || level) &&
              continuous == (share || level) && atomic);
        EQ(MPI_T_pvar_get_index(name, class, &i), MPI_SUCCESS);
        EQ(i, p);
        EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &i), MPI_T_ERR_INVALID_NAME);
    }
    EQ(MPI_T_pvar_get_info(num, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
       MPI_T_ERR_INVALID_INDEX);
}

/* Counters of rails have an element for each: their sum is the traffic between hosts. */
static void rails(void)
{
    char names[1024], *last = names;
    MPI_T_cvar_handle h = open_cvar("MRMPI_RAILS", 1024);
    MPI_T_pvar_session s;
    MPI_T_pvar_handle packets, share;
    unsigned long long before[8], after[8], sum = 0;
    double part[8], parts = 0;
    int i, num, named = 0, mine = 0, theirs;
    EQ(MPI_T_cvar_read(h, names), MPI_SUCCESS);
    EQ(MPI_T_cvar_write(h, names), MPI_T_ERR_CVAR_SET_NEVER);
    EQ(MPI_T_cvar_handle_free(&h), MPI_SUCCESS);
    for (char *name = strtok_r(names, ",", &last); name; name = strtok_r(NULL, ",", &last), named++)
        CHECK(strchr(name, ':'));
    EQ(MPI_T_pvar_session_create(&s), MPI_SUCCESS);
    EQ(MPI_T_pvar_get_index("rail_packets_sent", MPI_T_PVAR_CLASS_COUNTER, &i), MPI_SUCCESS);
    EQ(MPI_T_pvar_handle_alloc(s, i, NULL, &packets, &num), MPI_SUCCESS);
    EQ(num, named ? named : 8);
    EQ(MPI_T_pvar_get_index("rail_share", MPI_T_PVAR_CLASS_PERCENTAGE, &i), MPI_SUCCESS);
    EQ(MPI_T_pvar_handle_alloc(s, i, NULL, &share, &num), MPI_SUCCESS);
    EQ(MPI_T_pvar_start(s, share), MPI_T_ERR_PVAR_NO_STARTSTOP);
    EQ(MPI_T_pvar_reset(s, share), MPI_T_ERR_PVAR_NO_WRITE);
    EQ(MPI_T_pvar_write(s, share, part), MPI_T_ERR_PVAR_NO_WRITE);
    EQ(MPI_T_pvar_readreset(s, share, part), MPI_T_ERR_PVAR_NO_WRITE);
    EQ(MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS); /* all that can be started */
    EQ(MPI_T_pvar_read(s, packets, before), MPI_SUCCESS);
    for (int k = 1; k < size; k++)
        MPI_Sendrecv(&mine, 1, MPI_INT, (rank + k) % size, 8, &theirs, 1, MPI_INT, (rank + size - k) % size, 8,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EQ(MPI_T_pvar_read(s, packets, after), MPI_SUCCESS);
    EQ(MPI_T_pvar_read(s, share, part), MPI_SUCCESS);
    for (int k = 0; k < num; k++) {
        CHECK(before[k] <= after[k] && part[k] >= 0 && part[k] <= 1);
        sum += after[k] - before[k];
        parts += part[k];
    }
    CHECK(named ? sum > 0 && parts > 0.999 && parts < 1.001 : !sum && parts == 0);
    for (int k = 0; k < 8; k++)
        before[k] = 7;
    EQ(MPI_T_pvar_write(s, packets, before), MPI_SUCCESS);
    EQ(MPI_T_pvar_stop(s, packets), MPI_SUCCESS);
    EQ(MPI_T_pvar_readreset(s, packets, after), MPI_SUCCESS);
    for (int k = 0; k < num; k++)
        CHECK(after[k] >= 7);
    EQ(MPI_T_pvar_read(s, packets, after), MPI_SUCCESS);
    for (int k = 0; k < num; k++)
        EQ(after[k], 0);
    EQ(MPI_T_pvar_session_free(&s), MPI_SUCCESS);
}

static void counting(void)
{
    MPI_T_pvar_session a, b;
    unsigned long long v = 0;
    EQ(MPI_T_pvar_session_create(&a), MPI_SUCCESS);
    EQ(MPI_T_pvar_session_create(&b), MPI_SUCCESS);
    MPI_T_pvar_handle eager = open_pvar(a, "eager_sent"), rndv = open_pvar(a, "rendezvous_sent"),
                      other = open_pvar(b, "eager_sent"), freed;
    exchange(3, 100); /* nothing is started: nobody counts */
    CHECK(count_of(a, eager) == 0 && count_of(b, other) == 0);
    EQ(MPI_T_pvar_start(a, eager), MPI_SUCCESS);
    int sent = exchange(3, 100);
    CHECK(count_of(a, eager) == (unsigned)sent && count_of(a, rndv) == 0 && count_of(b, other) == 0);
    EQ(MPI_T_pvar_start(a, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS); /* the other one, too; the first goes on */
    EQ(MPI_T_pvar_start(b, other), MPI_SUCCESS);
    int large = exchange(2, 2000); /* more than the limits that were written before MPI_Init */
    EQ(count_of(a, eager), sent);
    EQ(count_of(a, rndv), large);
    int more = exchange(1, 100);
    EQ(count_of(b, other), more);
    EQ(MPI_T_pvar_stop(a, eager), MPI_SUCCESS);
    exchange(4, 100);
    EQ(count_of(a, eager), sent + more);
    EQ(MPI_T_pvar_start(a, eager), MPI_SUCCESS);
    exchange(1, 100);
    EQ(MPI_T_pvar_readreset(a, eager, &v), MPI_SUCCESS);
    EQ(v, sent + 2 * more);
    EQ(count_of(a, eager), 0);
    v = 100;
    EQ(MPI_T_pvar_write(a, eager, &v), MPI_SUCCESS);
    exchange(1, 100);
    EQ(count_of(a, eager), 100 + more);
    EQ(MPI_T_pvar_reset(a, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    CHECK(count_of(a, eager) == 0 && count_of(a, rndv) == 0);
    EQ(count_of(b, other), 7 * more); /* has counted everything */
    EQ(MPI_T_pvar_stop(a, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);

    EQ(MPI_T_pvar_read(b, eager, &v), MPI_T_ERR_INVALID_HANDLE); /* of the other session */
    EQ(MPI_T_pvar_read(a, MPI_T_PVAR_ALL_HANDLES, &v), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_pvar_handle_alloc(a, 9999, NULL, &freed, &sent), MPI_T_ERR_INVALID_INDEX);
    freed = eager;
    EQ(MPI_T_pvar_handle_free(a, &eager), MPI_SUCCESS);
    CHECK(eager == MPI_T_PVAR_HANDLE_NULL);
    EQ(MPI_T_pvar_start(a, freed), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_pvar_session_free(&a), MPI_SUCCESS); /* with a handle in it */
    CHECK(a == MPI_T_PVAR_SESSION_NULL);
    EQ(MPI_T_pvar_start(a, MPI_T_PVAR_ALL_HANDLES), MPI_T_ERR_INVALID_SESSION);
    /* b is left for MPI_T_finalize */
}

static void error_texts(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int len, class;
    MPI_Error_class(MPI_T_ERR_CVAR_SET_NEVER, &class);
    EQ(class, MPI_T_ERR_CVAR_SET_NEVER);
    MPI_Error_string(MPI_T_ERR_CVAR_SET_NEVER, text, &len);
    CHECK(strstr(text, "control variable") && len == (int)strlen(text));
}

int main(int argc, char **argv)
{
    int provided = -1, n;
    setenv("MRMPI_STRIPE_MIN", "48K", 1);
    not_yet();
    EQ(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    CHECK(provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_MULTIPLE);
    EQ(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided), MPI_SUCCESS);
    EQ(MPI_T_finalize(), MPI_SUCCESS);
    all_cvars(0);
    all_pvars();
    enums();
    categories();
    events();
    writing_before_init();
    mt_begin(&argc, &argv);
    writing_after_init();
    all_cvars(1);
    MPI_Barrier(MPI_COMM_WORLD);
    counting();
    rails();
    error_texts();
    MPI_Finalize();
    EQ(MPI_T_cvar_get_num(&n), MPI_SUCCESS);
    EQ(read_size("MRMPI_EAGER_MAX"), 512);
    EQ(MPI_T_finalize(), MPI_SUCCESS);
    not_yet();
    return 0;
}
