/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI client against a launcher of the test, a small store of keys in a separate process, which can be told to
 * answer one request wrongly, in pieces, or not at all. The client is rank 0; rank 1's keys are in the store from the
 * beginning.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/launch/pmi_text.h"
#include "tests/check.h"

#define CLOSES "<closes>" /* instead of an answer */
#define SILENT "<silent>"

/* The launcher's planned misbehaviour. */
struct plan {
    int version, size;
    const char *at;      /* the request that contains this text ... */
    const char *answer;  /* ... gets this */
    const char *mapping; /* NULL: no mapping */
    const char *peer;    /* rank 1's value of its node's identity; NULL: the same as rank 0 */
    bool in_bytes;       /* answers come byte by byte */
    bool flood;          /* that answer is without end */
    bool dies;           /* gone after that answer */
    int late_ms;         /* that answer comes after so long, byte by byte */
    bool stops;          /* silent after that answer */
};

/* ---- the launcher ---- */

static struct {
    int fd;
    const struct plan *plan;
    bool framed;
    char key[64][80], value[64][1100];
    int keys;
} server;

static void answer_raw(const char *text, size_t len)
{
    bool in_bytes = server.plan->in_bytes || server.plan->late_ms;

    for (size_t i = 0; i < len; i += in_bytes ? 1 : len) {
        if (send(server.fd, text + i, in_bytes ? 1 : len, MSG_NOSIGNAL) < 0)
            _exit(0);
        if (in_bytes)
            usleep(server.plan->late_ms ? 5000 : 100);
    }
}

static void answer(const char *text)
{
    char out[4096];

    if (!strcmp(text, CLOSES))
        _exit(0);
    if (!strcmp(text, SILENT))
        return;
    int n = server.framed ? snprintf(out, sizeof(out), "%-6zu%s", strlen(text), text)
                          : snprintf(out, sizeof(out), "%s\n", text);
    answer_raw(out, (size_t)n);
}

static void answer_as_planned(void)
{
    char out[4096];

    if (server.plan->flood)
        for (memset(out, 'x', sizeof(out));;)
            answer_raw(out, sizeof(out));
    usleep((useconds_t)server.plan->late_ms * 1000);
    answer(server.plan->answer);
    while (server.plan->stops)
        pause();
    if (server.plan->dies)
        _exit(0);
}

static const char *find_key(const char *key)
{
    for (int i = 0; i < server.keys; i++)
        if (!strcmp(server.key[i], key))
            return server.value[i];
    return NULL;
}

static void store(const char *key, const char *value)
{
    snprintf(server.key[server.keys], sizeof(server.key[0]), "%s", key);
    snprintf(server.value[server.keys], sizeof(server.value[0]), "%s", value);
    server.keys++;
    /* rank 1 is on the same node unless the plan says otherwise */
    if (!strcmp(key, "mrmpi.node.0") && !server.plan->peer)
        store("mrmpi.node.1", value);
}

static void serve1(const char *m)
{
    char cmd[64], key[80], value[1100], out[1400];

    mr_pmi1_value(m, "cmd", cmd, sizeof(cmd));
    if (!strcmp(cmd, "init")) {
        server.framed = server.plan->version == 2;
        bool framed = server.framed;
        server.framed = false;
        snprintf(out, sizeof(out), "cmd=response_to_init pmi_version=%d pmi_subversion=0 rc=0", server.plan->version);
        answer(out);
        server.framed = framed;
    } else if (!strcmp(cmd, "initack")) {
        answer("cmd=initack\ncmd=set size=2\ncmd=set rank=0\ncmd=set debug=0");
    } else if (!strcmp(cmd, "get_maxes")) {
        answer("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100");
    } else if (!strcmp(cmd, "get_my_kvsname")) {
        answer("cmd=my_kvsname kvsname=job1");
    } else if (!strcmp(cmd, "put")) {
        mr_pmi1_value(m, "key", key, sizeof(key));
        mr_pmi1_value(m, "value", value, sizeof(value));
        if (strlen(value) >= 100)
            answer("cmd=put_result rc=-1 msg=too_long");
        store(key, value);
        answer("cmd=put_result rc=0");
    } else if (!strcmp(cmd, "get")) {
        mr_pmi1_value(m, "key", key, sizeof(key));
        const char *found = !strcmp(key, "PMI_process_mapping") ? server.plan->mapping : find_key(key);
        snprintf(out, sizeof(out), found ? "cmd=get_result rc=0 msg=success value=%s" : "cmd=get_result rc=-1", found);
        answer(out);
    } else if (!strcmp(cmd, "get_appnum")) {
        answer("cmd=appnum appnum=3");
    } else if (!strcmp(cmd, "barrier_in")) {
        answer("cmd=barrier_out");
    } else if (!strcmp(cmd, "finalize")) {
        answer("cmd=finalize_ack");
    }
}

static void serve2(const char *m)
{
    char cmd[64], key[80], value[1100], out[1400];

    mr_pmi2_value(m, "cmd", cmd, sizeof(cmd));
    if (!strcmp(cmd, "fullinit")) {
        snprintf(out, sizeof(out), "cmd=fullinit-response;rc=0;pmi-version=2;rank=0;size=%d;appnum=3;",
                 server.plan->size);
        answer(out);
    } else if (!strcmp(cmd, "job-getid")) {
        answer("cmd=job-getid-response;rc=0;jobid=job;;2;");
    } else if (!strcmp(cmd, "kvs-put")) {
        mr_pmi2_value(m, "key", key, sizeof(key));
        mr_pmi2_value(m, "value", value, sizeof(value));
        store(key, value);
        answer("cmd=kvs-put-response;rc=0;");
    } else if (!strcmp(cmd, "kvs-get") || !strcmp(cmd, "info-getjobattr")) {
        mr_pmi2_value(m, "key", key, sizeof(key));
        const char *found = !strcmp(key, "PMI_process_mapping") ? server.plan->mapping : find_key(key);
        snprintf(out, sizeof(out),
                 found ? "cmd=%s-response;found=TRUE;value=%s;rc=0;" : "cmd=%s-response;found=FALSE;rc=0;", cmd, found);
        answer(out);
    } else {
        snprintf(out, sizeof(out), "cmd=%s-response;rc=0;", cmd);
        answer(out);
    }
}

static bool read_bytes(char *buf, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = recv(server.fd, buf + have, len - have, 0);
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

static bool read_request(char *m, size_t cap)
{
    char header[7] = "";
    size_t n = 0;

    if (server.framed) {
        if (!read_bytes(header, 6) || (n = strtoul(header, NULL, 10)) >= cap || !read_bytes(m, n))
            return false;
    } else {
        while (read_bytes(m + n, 1) && m[n] != '\n' && n + 1 < cap)
            n++;
        if (m[n] != '\n')
            return false;
    }
    m[n] = '\0';
    return true;
}

static void run_server(int fd, const struct plan *plan)
{
    static char m[8192];
    char peer[200];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    server.fd = fd;
    server.plan = plan;
    if (plan->peer) {
        int n = snprintf(peer, sizeof(peer), "%zu.", strlen(plan->peer));
        mr_pmi_encode(plan->peer, strlen(plan->peer), peer + n);
        store("mrmpi.node.1", peer);
    }
    while (read_request(m, sizeof(m))) {
        if (plan->at && strstr(m, plan->at))
            answer_as_planned();
        else
            server.framed ? serve2(m) : serve1(m);
    }
    _exit(0);
}

/* ---- the client ---- */

static const struct mr_launch *self;

static void start_server(const struct plan *plan)
{
    int fds[2];
    char text[16];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    if (fork() == 0) {
        close(fds[0]);
        run_server(fds[1], plan);
    }
    close(fds[1]);
    snprintf(text, sizeof(text), "%d", fds[0]);
    setenv("PMI_FD", text, 1);
    setenv("PMI_RANK", "0", 1);
    snprintf(text, sizeof(text), "%d", plan->size);
    setenv("PMI_SIZE", text, 1);
}

static int join(const struct plan *plan)
{
    setenv("MRMPI_LAUNCHER", plan->version == 2 ? "pmi2" : "pmi1", 1);
    setenv("MRMPI_LAUNCHER_TIMEOUT_S", "1", 1);
    setenv("MRMPI_LOG_LEVEL", "-1", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    return mr_launch_init(&self);
}

static void begin(const struct plan *plan)
{
    start_server(plan);
    int err = join(plan);
    ck_assert_msg(!err, "%s", mr_launch_why(err));
}

static void expect_why(int err, int want, const char *text)
{
    ck_assert_msg(err == want, "%d instead of %d: %s", err, want, mr_launch_why(err));
    ck_assert_msg(strstr(mr_launch_why(err), text), "'%s' is not in: %s", text, mr_launch_why(err));
}

/* ---- successes ---- */

static const struct plan good[] = {
    {.version = 1, .size = 2, .mapping = "(vector,(0,2,1))"},
    {.version = 2, .size = 2, .mapping = "(vector,(0,2,1))"},
    {.version = 1, .size = 2, .mapping = "(vector,(0,2,1))", .in_bytes = true},
    {.version = 2, .size = 2, .mapping = "(vector,(0,2,1))", .in_bytes = true},
    {.version = 1, .size = 2, .peer = "machine of another kind"},
    {.version = 2, .size = 2, .peer = "machine of another kind"},
};

START_TEST(world)
{
    begin(&good[_i]);
    ck_assert(self->rank == 0 && self->size == 2 && self->num_nodes == 2 && self->local_size == 1);
    ck_assert_int_eq(self->appnum, 3);
    ck_assert_str_eq(self->job_id, good[_i].version == 2 ? "job;2" : "job1");
    ck_assert_int_eq(mr_launch_failed(), 0);
    ck_assert_int_eq(mr_launch_finalize(), 0);
}
END_TEST

START_TEST(same_machine_is_one_node)
{
    const struct plan plan = {.version = _i + 1, .size = 2};

    begin(&plan);
    ck_assert(self->num_nodes == 1 && self->local_size == 2);
}
END_TEST

/* Any bytes of any length, in as many parts as the launcher's longest value asks for. */
START_TEST(values)
{
    static const size_t lengths[] = {0, 1, 2, 3, 70, 71, 72, 73, 74, 75, 1000, 2500};
    char key[32];
    unsigned char in[2500], out[2500];
    size_t len;

    begin(&good[_i]);
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (unsigned char)(i * 31);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        if (_i == 0 && lengths[i] > 1000)
            break; /* more parts than the test's store has room for */
        snprintf(key, sizeof(key), "k%zu", i);
        ck_assert_int_eq(mr_launch_put(key, in, lengths[i]), 0);
        ck_assert_int_eq(mr_launch_fence(), 0);
        memset(out, 0, sizeof(out));
        ck_assert_int_eq(mr_launch_get(0, key, out, sizeof(out), &len), 0);
        ck_assert_uint_eq(len, lengths[i]);
        ck_assert_int_eq(memcmp(in, out, len), 0);
        if (len)
            ck_assert_int_eq(mr_launch_get(0, key, out, len - 1, &len), -EMSGSIZE);
    }
    ck_assert_int_eq(mr_launch_get(1, "k0", out, sizeof(out), &len), -ENOENT);
    ck_assert_int_eq(mr_launch_get(2, "k0", out, sizeof(out), &len), -EINVAL);
    ck_assert_int_eq(mr_launch_finalize(), 0);
    expect_why(mr_launch_init(&self), -EALREADY, "takes a process into its job once");
}
END_TEST

/* ---- failures at init: the launcher and the fault are named ---- */

#define MAP    .mapping = "(vector,(0,1,2))"
#define NO_MAP .mapping = NULL
static const struct {
    struct plan plan;
    int err;
    const char *why;
} bad[] = {
    {{1, 2, "cmd=init ", CLOSES, MAP}, -ECONNRESET, "PMI-1) has closed its connection to rank 0"},
    {{1, 2, "cmd=init ", SILENT, MAP}, -ETIMEDOUT, "gave no answer for 1 s (MRMPI_LAUNCHER_TIMEOUT_S)"},
    {{1, 2, "cmd=init ", "hello", MAP}, -EPROTO, "no proper answer to init: 'hello'"},
    {{1, 2, "cmd=init ", "", MAP}, -EPROTO, "no proper answer to init: ''"},
    {{1, 2, "cmd=init ", "cmd=response_to_init pmi_version=\x01\x1b[2J rc=0", MAP}, -EPROTO, "pmi_version=??[2J"},
    {{1, 2, "cmd=init ", "cmd=response_to_init pmi_version=2 rc=0", MAP}, -EPROTONOSUPPORT, "try MRMPI_LAUNCHER=pmi2"},
    {{2, 2, "cmd=init ", "cmd=response_to_init pmi_version=1 rc=-1", MAP}, -EPROTONOSUPPORT, "try MRMPI_LAUNCHER=pmi1"},
    {{1, 2, "cmd=init ", "x", MAP, .flood = true}, -EPROTO, "a message of more than 65536 bytes"},
    {{1, 2, "get_maxes", "cmd=maxes keylen_max=64", MAP}, -EPROTO, "get_maxes"},
    {{1, 2, "get_maxes", "cmd=maxes keylen_max=64 vallen_max=1", MAP}, -EPROTO, "get_maxes"},
    {{1, 2, "get_maxes", "cmd=maxes keylen_max=-9 vallen_max=1024", MAP}, -EPROTO, "get_maxes"},
    {{1, 2, "get_maxes", "cmd=barrier_out", MAP}, -EPROTO, "get_maxes: 'cmd=barrier_out'"},
    {{1, 2, "get_my_kvsname", "cmd=my_kvsname", MAP}, -EPROTO, "get_my_kvsname"},
    {{1, 2, "get_my_kvsname", "cmd=my_kvsname kvsname=", MAP}, -EPROTO, "get_my_kvsname"},
    {{1, 2, "get_my_kvsname", CLOSES, MAP}, -ECONNRESET, "has closed its connection"},
    {{1, 2, NULL, NULL, .mapping = "(vector,(0,0,0))"},
     -EPROTO,
     "PMI_process_mapping that cannot be read: '(vector,(0,0,0))'"},
    {{1, 2, NULL, NULL, .mapping = "(vector,(0,1,"}, -EPROTO, "cannot be read"},
    {{2, 2, "fullinit", CLOSES, MAP}, -ECONNRESET, "PMI-2) has closed its connection"},
    {{2, 2, "fullinit", SILENT, MAP}, -ETIMEDOUT, "gave no answer for 1 s"},
    {{2, 2, "fullinit", "x", MAP, .flood = true}, -EPROTO, "'xxxxxx' where the length of a message was due"},
    {{2, 2, "fullinit", "cmd=fullinit-response;rc=3;", MAP}, -EPROTO, "fullinit"},
    {{2, 2, "fullinit", "cmd=fullinit-response;rc=0;rank=0;", MAP}, -EPROTO, "fullinit"},
    {{2, 2, "fullinit", "cmd=fullinit-response;rc=0;rank=5;size=2;", MAP}, -EPROTO, "says that this is rank 5 of 2"},
    {{2, 2, "fullinit", "cmd=fullinit-response;rc=0;rank=0;size=99999999999;", MAP}, -EPROTO, "fullinit"},
    {{2, 2, "fullinit", "cmd=fullinit-response;rc=0;rank=-1;size=2;", MAP}, -EPROTO, "fullinit"},
    {{2, 2, "job-getid", "cmd=job-getid-response;rc=0;jobid=;", MAP}, -EPROTO, "job-getid"},
    {{2, 2, "getjobattr", "cmd=info-getjobattr-response;rc=0;", MAP}, -EPROTO, "info-getjobattr"},
    {{2, 2, "getjobattr", "cmd=info-getjobattr-response;rc=0;found=TRUE;", MAP}, -EPROTO, "info-getjobattr"},
    {{2, 2, "getjobattr", "cmd=kvs-get-response;rc=0;found=FALSE;", MAP}, -EPROTO, "info-getjobattr"},
    {{1, 2, "cmd=barrier_in", CLOSES, NO_MAP}, -ECONNRESET, "has closed its connection"},
    {{1, 2, "key=mrmpi.node.1", "cmd=get_result rc=0 value=nonsense", NO_MAP},
     -EPROTO,
     "what that rank did not put there: 'nonsense'"},
    {{1, 2, "key=mrmpi.node.1", "cmd=get_result rc=0 value=3.AA+A", NO_MAP}, -EPROTO, "mrmpi.node of rank 1"},
    {{1, 2, "key=mrmpi.node.1", "cmd=get_result rc=0 value=3.AAAAAA", NO_MAP}, -EPROTO, "mrmpi.node of rank 1"},
    {{1, 2, "key=mrmpi.node.1", "cmd=get_result rc=0 value=99999999999999999999.A", NO_MAP},
     -EPROTO,
     "mrmpi.node of rank 1"},
    {{1, 2, "key=mrmpi.node.1", "cmd=get_result rc=0 value=30.AAAA", NO_MAP}, -EPROTO, "mrmpi.node of rank 1"},
};

START_TEST(faults_at_init)
{
    start_server(&bad[_i].plan);
    expect_why(join(&bad[_i].plan), bad[_i].err, bad[_i].why);
}
END_TEST

/* ---- and later ---- */

START_TEST(launcher_dies)
{
    const struct plan plan = {_i + 1, 2, _i ? "kvs-fence" : "barrier_in", CLOSES, MAP};
    size_t len;
    char c;

    begin(&plan);
    ck_assert_int_eq(mr_launch_put("k", "v", 1), 0);
    expect_why(mr_launch_fence(), -ECONNRESET, "has closed its connection to rank 0: it is gone, or ends the job");
    ck_assert_int_eq(mr_launch_failed(), -ECONNRESET);
    ck_assert_int_eq(mr_launch_get(0, "k", &c, 1, &len), -ECONNRESET);
    ck_assert_int_eq(mr_launch_finalize(), -ECONNRESET);
}
END_TEST

START_TEST(death_is_seen_between_calls)
{
    const struct plan plan = {_i + 1, 2,           "k.0", _i ? "cmd=kvs-put-response;rc=0;" : "cmd=put_result rc=0",
                              MAP,    .dies = true};
    int err = 0;

    begin(&plan);
    ck_assert_int_eq(mr_launch_failed(), 0);
    ck_assert_int_eq(mr_launch_put("k", "v", 1), 0);
    for (int i = 0; i < 1000 && !(err = mr_launch_failed()); i++)
        usleep(10000);
    ck_assert_int_eq(err, -ECONNRESET);
}
END_TEST

/* known: the test's launcher looks like one that the client knows to answer questions during a fence. */
static void pretend_launcher(int version, bool known)
{
    if (known && version == 1)
        setenv("HYDI_CONTROL_FD", "9", 1);
    if (known && version == 2)
        setenv("SLURM_STEP_ID", "0", 1), setenv("PMI_JOBID", "1.0", 1);
}

/*
 * Others may come late to a fence: longer than an answer is waited for, whether the launcher answers questions
 * meanwhile or is not asked. A signal in the meantime is nothing.
 */
static void nothing(int sig)
{
}

START_TEST(fences_are_waited_for)
{
    const int version = _i % 2 + 1;
    const struct plan plan = {version, 2, version == 2 ? "kvs-fence" : "barrier_in", SILENT, MAP, .stops = _i < 2};
    struct sigaction act = {.sa_handler = nothing};

    sigaction(SIGALRM, &act, NULL);
    pretend_launcher(version, _i >= 2);
    begin(&plan);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        usleep(300000);
        kill(getppid(), SIGALRM);
        usleep(3000000);
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    signal(SIGUSR1, _exit); /* with SIGUSR1's number: the fence was still waiting */
    int err = mr_launch_fence();
    ck_abort_msg("the fence ended: %s", mr_launch_why(err));
}
END_TEST

/* A launcher that answers questions during a fence, and stops: waited for, or asked about. */
START_TEST(silence_at_a_fence)
{
    const int version = _i % 2 + 1;
    const struct plan plan = {version, 2, version == 2 ? "kvs-fence" : "barrier_in", SILENT, MAP, .stops = true};
    int err = 0;
    size_t len;
    char c;

    pretend_launcher(version, true);
    begin(&plan);
    if (_i < 2)
        err = mr_launch_fence();
    else if (!(err = mr_launch_fence_begin()))
        while ((err = mr_launch_fence_done()) == -EAGAIN)
            usleep(100);
    expect_why(err, -ETIMEDOUT,
               version == 2 ? "Slurm's srun (PMI-2) gave no answer for 1 s (MRMPI_LAUNCHER_TIMEOUT_S)"
                            : "Hydra's mpiexec (PMI-1) gave no answer for 1 s (MRMPI_LAUNCHER_TIM");
    ck_assert_int_eq(mr_launch_get(0, "k", &c, 1, &len), -ETIMEDOUT);
}
END_TEST

/*
 * A rank that goes on working while others are late. With a launcher that answers questions, one is open when the fence
 * ends: the launcher of this test reads the question afterwards.
 */
START_TEST(fences_are_asked_about)
{
    const int version = _i % 2 + 1;
    const struct plan plan = {version,
                              2,
                              version == 2 ? "kvs-fence" : "barrier_in",
                              version == 2 ? "cmd=kvs-fence-response;rc=0;" : "cmd=barrier_out",
                              MAP,
                              .late_ms = _i < 2 ? 100 : 600};
    int err, asked = 0;
    size_t len;
    char c;

    pretend_launcher(version, _i >= 2);
    begin(&plan);
    ck_assert_int_eq(mr_launch_fence_done(), -EINVAL);
    ck_assert_int_eq(mr_launch_put("k", "v", 1), 0);
    ck_assert_int_eq(mr_launch_fence_begin(), 0);
    ck_assert_int_eq(mr_launch_fence_done(), -EAGAIN);
    ck_assert_int_eq(mr_launch_get(0, "k", &c, 1, &len), -EBUSY);
    ck_assert_int_eq(mr_launch_put("l", "v", 1), -EBUSY);
    ck_assert_int_eq(mr_launch_fence_begin(), -EBUSY);
    ck_assert_int_eq(mr_launch_failed(), 0);
    for (; (err = mr_launch_fence_done()) == -EAGAIN; asked++)
        usleep(1000);
    ck_assert_msg(!err, "%s", mr_launch_why(err));
    ck_assert_int_gt(asked, 20);
    ck_assert_int_eq(mr_launch_get(0, "k", &c, 1, &len), 0);
    ck_assert_int_eq(c, 'v');
    ck_assert_int_eq(mr_launch_fence_begin(), 0); /* asked about, and then waited for */
    ck_assert_int_eq(mr_launch_fence_done(), -EAGAIN);
    ck_assert_int_eq(mr_launch_fence_end(), 0);
    ck_assert_int_eq(mr_launch_finalize(), 0);
}
END_TEST

START_TEST(launcher_dies_at_an_open_fence)
{
    const struct plan plan = {_i + 1, 2, _i ? "kvs-fence" : "barrier_in", CLOSES, MAP, .late_ms = 100};
    int err;

    begin(&plan);
    ck_assert_int_eq(mr_launch_fence_begin(), 0);
    ck_assert_int_eq(mr_launch_fence_done(), -EAGAIN);
    for (int i = 0; (err = mr_launch_fence_done()) == -EAGAIN && i < 5000; i++)
        usleep(1000);
    expect_why(err, -ECONNRESET, "has closed its connection to rank 0: it is gone, or ends the job");
    ck_assert_int_eq(mr_launch_failed(), -ECONNRESET);
    ck_assert_int_eq(mr_launch_fence_begin(), -ECONNRESET);
}
END_TEST

/* ---- ports ---- */

static int listener(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    char text[32];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert(fd >= 0 && !bind(fd, (struct sockaddr *)&a, len) && !listen(fd, 1));
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(a.sin_port));
    setenv("PMI_PORT", text, 1);
    setenv("PMI_ID", "0", 1);
    return fd;
}

static int join_port(const struct plan *plan)
{
    int fd = listener();

    if (fork() == 0)
        run_server(accept(fd, NULL, NULL), plan);
    close(fd);
    return join(plan);
}

START_TEST(port)
{
    struct plan plan = good[_i];

    ck_assert_int_eq(join_port(&plan), 0);
    ck_assert(self->rank == 0 && self->size == 2 && self->num_nodes == 2);
    ck_assert_int_eq(mr_launch_finalize(), 0);
}
END_TEST

START_TEST(port_faults)
{
    const struct plan plan = {1, 2, "cmd=initack", "cmd=initack\ncmd=set size=0", MAP};

    expect_why(join_port(&plan), -EPROTO, "no proper answer to initack: 'cmd=set size=0'");
    close(listener());
    expect_why(join(&plan), -ECONNREFUSED, "does not answer at PMI_PORT=127.0.0.1:");
    setenv("PMI_PORT", "nowhere", 1);
    expect_why(join(&plan), -EINVAL, "PMI_PORT=nowhere is not HOST:PORT");
    unsetenv("PMI_ID");
    close(listener());
}
END_TEST

/* ---- detection of launchers ---- */

static const struct {
    const char *set[4][2];
    int err;
    const char *why; /* "": a process of its own */
} environments[] = {
    {{{NULL}}, 0, ""},
    {{{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}, 0, ""},
    {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}, 0, ""},
    {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}, -EOPNOTSUPP, "Slurm's srun started this process"},
    {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "many"}}, -EOPNOTSUPP, "srun --mpi=pmix or srun --mpi=pmi2"},
    {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, 0, ""},
    {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, -EOPNOTSUPP, "Open MPI's mpirun"},
    {{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, -EOPNOTSUPP, "PMI_RANK is set without PMI_FD"},
    {{{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, 0, ""},
    {{{"ALPS_APP_PE", "0"}}, -EOPNOTSUPP, "ALPS"},
    {{{"PALS_RANKID", "0"}}, -EOPNOTSUPP, "PALS"},
    {{{"JSM_NAMESPACE_RANK", "0"}, {"JSM_NAMESPACE_SIZE", "2"}}, -EOPNOTSUPP, "jsrun"},
    {{{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "2"}}, -EOPNOTSUPP, "flux run -o pmi=simple"},
    {{{"MPIRUN_RANK", "0"}, {"MPIRUN_NPROCS", "2"}}, -EOPNOTSUPP, "mpirun_rsh"},
    {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"MRMPI_LAUNCHER", "none"}}, 0, ""},
    {{{"MRMPI_LAUNCHER", "mpd"}}, -EINVAL, "MRMPI_LAUNCHER=mpd: it must be auto, pmix, pmi2, pmi1 or none"},
    {{{"MRMPI_LAUNCHER", "pmix"}}, -EINVAL, "no PMIx launcher started this process"},
    {{{"MRMPI_LAUNCHER", "pmi1"}}, -EINVAL, "neither PMI_FD nor PMI_PORT is set"},
    {{{"PMI_FD", "999"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, -ENOTCONN, "PMI_FD=999 is not an open socket"},
    {{{"PMI_FD", "x"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, -EINVAL, "PMI_FD=x is not a number"},
    {{{"PMI_FD", "999"}, {"HYDI_CONTROL_FD", "5"}, {"PMI_SIZE", "2"}}, -EINVAL, "PMI_RANK"},
    {{{"PMIX_NAMESPACE", "slurm.pmix.1.0"}, {"PMIX_RANK", "0"}, {"PMIX_SERVER_URI41", "x.0;tcp4://127.0.0.1:1"}},
     -ECONNRESET,
     "Slurm's srun started this process (PMIX_NAMESPACE is set), but its PMIx server cannot be reached"},
};

START_TEST(environment)
{
    for (int i = 0; i < 4 && environments[_i].set[i][0]; i++)
        setenv(environments[_i].set[i][0], environments[_i].set[i][1], 1);
    ck_assert_int_eq(mr_config_init(), 0);
    int err = mr_launch_init(&self);
    ck_assert_msg(err == environments[_i].err, "%d: %s", err, mr_launch_why(err));
    if (err)
        expect_why(err, err, environments[_i].why);
    else
        ck_assert(self->size == 1 && self->rank == 0);
}
END_TEST

/* The test may itself run under a launcher. */
static void clear_environment(void)
{
    static const char *const prefixes[] = {"PMI",   "OMPI_", "SLURM",  "FLUX_", "PALS_",
                                           "ALPS_", "JSM_",  "MRMPI_", "HYDI_"};

    for (char **e = environ; *e;) {
        char name[128];
        bool drop = false;
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
            drop |= !strncmp(*e, prefixes[i], strlen(prefixes[i]));
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e, "="), *e);
        if (!drop || unsetenv(name))
            e++;
    }
}

#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

int main(void)
{
    TCase *t = tcase_create("all");

    clear_environment();
    tcase_add_loop_test(t, world, 0, COUNT(good));
    tcase_add_loop_test(t, same_machine_is_one_node, 0, 2);
    tcase_add_loop_test(t, values, 0, 2);
    tcase_add_loop_test(t, faults_at_init, 0, COUNT(bad));
    tcase_add_loop_test(t, launcher_dies, 0, 2);
    tcase_add_loop_test(t, death_is_seen_between_calls, 0, 2);
    tcase_add_loop_exit_test(t, fences_are_waited_for, SIGUSR1, 0, 4);
    tcase_add_loop_test(t, silence_at_a_fence, 0, 4);
    tcase_add_loop_test(t, fences_are_asked_about, 0, 4);
    tcase_add_loop_test(t, launcher_dies_at_an_open_fence, 0, 2);
    tcase_add_loop_test(t, port, 0, 4);
    tcase_add_test(t, port_faults);
    tcase_add_loop_test(t, environment, 0, COUNT(environments));
    return check_run(t, NULL);
}
