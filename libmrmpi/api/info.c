/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects (MPI-4.0 chapter 10), and the object about the program's start (11.2.4). */
#include "libmrmpi/api/api.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libmrmpi/api/life.h"

static enum mr_err check_key(const char *key)
{
    if (!key)
        return api_null("key");
    size_t n = strlen(key);
    if (n == 0 || n > ABI_INFO_KEY_MOST)
        return mr_fail(MR_ERR_INFO_KEY, "the key has %zu characters: 1 to %d are allowed", n, ABI_INFO_KEY_MOST);
    return MR_SUCCESS;
}

/* An info object that the program may change. */
static enum mr_err own_info(MPI_Info h, struct mr_info **i)
{
    if (h == MPI_INFO_ENV)
        return mr_fail(MR_ERR_INFO, "MPI_INFO_ENV cannot be changed or freed");
    return api_info(h, i);
}

MPI_FN(int, Info_create, (MPI_Info * info))
{
    API_ENTER_ANY();
    NOT_NULL(info);
    err = api_new_info(mr_info_new(), info);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_dup, (MPI_Info info, MPI_Info *newinfo))
{
    struct mr_info *i;
    API_ENTER_ANY();
    NOT_NULL(newinfo);
    CHECK(api_info(info, &i));
    err = api_new_info(mr_info_dup(i), newinfo);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_free, (MPI_Info * info))
{
    struct mr_info *i;
    API_ENTER_ANY();
    NOT_NULL(info);
    CHECK(own_info(*info, &i));
    api_handle_free(ABI_INFO, abi_number(*info));
    mr_info_put(i);
    *info = MPI_INFO_NULL;
    API_LEAVE_ANY();
}

MPI_FN(int, Info_set, (MPI_Info info, const char *key, const char *value))
{
    struct mr_info *i;
    API_ENTER_ANY();
    CHECK(own_info(info, &i));
    CHECK(check_key(key));
    NOT_NULL(value);
    if (strlen(value) > ABI_INFO_VALUE_MOST)
        CHECK(mr_fail(MR_ERR_INFO_VALUE, "the value has %zu characters: at most %d are allowed", strlen(value),
                      ABI_INFO_VALUE_MOST));
    if (!mr_info_set(i, key, value))
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for an info pair"));
    API_LEAVE_ANY();
}

MPI_FN(int, Info_get, (MPI_Info info, const char *key, int valuelen, char *value, int *flag))
{
    struct mr_info *i;
    int len;
    API_ENTER_ANY();
    NOT_NULL(flag);
    CHECK(api_info(info, &i));
    CHECK(check_key(key));
    const char *v = mr_info_find(i, key);
    *flag = v != NULL;
    if (v)
        api_string(value, (size_t)(valuelen < 0 ? 0 : valuelen) + 1, v, &len);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_get_valuelen, (MPI_Info info, const char *key, int *valuelen, int *flag))
{
    struct mr_info *i;
    API_ENTER_ANY();
    NOT_NULL(valuelen);
    NOT_NULL(flag);
    CHECK(api_info(info, &i));
    CHECK(check_key(key));
    const char *v = mr_info_find(i, key);
    *flag = v != NULL;
    if (v)
        *valuelen = (int)strlen(v);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_get_nkeys, (MPI_Info info, int *nkeys))
{
    struct mr_info *i;
    API_ENTER_ANY();
    NOT_NULL(nkeys);
    CHECK(api_info(info, &i));
    *nkeys = i->count;
    API_LEAVE_ANY();
}

MPI_FN(int, Info_get_nthkey, (MPI_Info info, int n, char *key))
{
    struct mr_info *i;
    int len;
    API_ENTER_ANY();
    NOT_NULL(key);
    CHECK(api_info(info, &i));
    if (n < 0 || n >= i->count)
        CHECK(mr_fail(MR_ERR_ARG, "n is %d, the info object has %d keys", n, i->count));
    api_string(key, ABI_INFO_KEY_MOST + 1, i->pairs[n].key, &len);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_delete, (MPI_Info info, const char *key))
{
    struct mr_info *i;
    API_ENTER_ANY();
    CHECK(own_info(info, &i));
    CHECK(check_key(key));
    if (!mr_info_delete(i, key))
        CHECK(mr_fail(MR_ERR_INFO_NOKEY, "the key %s is not set", key));
    API_LEAVE_ANY();
}

/* *buflen is the room on entry, with the end; on return the room for the whole value. */
MPI_FN(int, Info_get_string, (MPI_Info info, const char *key, int *buflen, char *value, int *flag))
{
    struct mr_info *i;
    int len;
    API_ENTER_ANY();
    NOT_NULL(buflen);
    NOT_NULL(flag);
    CHECK(api_info(info, &i));
    CHECK(check_key(key));
    if (*buflen < 0)
        CHECK(mr_fail(MR_ERR_ARG, "buflen is %d", *buflen));
    const char *v = mr_info_find(i, key);
    *flag = v != NULL;
    if (v) {
        if (*buflen) {
            NOT_NULL(value);
            api_string(value, (size_t)*buflen, v, &len);
        }
        *buflen = (int)strlen(v) + 1;
    }
    API_LEAVE_ANY();
}

/* ---- how the program was started ---- */

static bool set_cut(struct mr_info *i, const char *key, const char *value)
{
    char cut[ABI_INFO_VALUE_MOST + 1];
    snprintf(cut, sizeof(cut), "%s", value);
    return mr_info_set(i, key, cut);
}

/* The arguments behind the command, as one line. */
static bool note_arguments(struct mr_info *i, int argc, char **argv)
{
    char line[ABI_INFO_VALUE_MOST + 1] = "";
    size_t n = 0;
    for (int k = 1; k < argc && n < sizeof(line); k++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", k > 1 ? " " : "", argv[k]);
    return mr_info_set(i, "argv", line);
}

static bool note_host(struct mr_info *i)
{
    char host[256] = "", dir[ABI_INFO_VALUE_MOST + 1];
    struct utsname machine;
    gethostname(host, sizeof(host) - 1);
    return set_cut(i, "host", host) && (uname(&machine) || set_cut(i, "arch", machine.machine)) &&
           (!getcwd(dir, sizeof(dir)) || set_cut(i, "wdir", dir));
}

static bool note_job(struct mr_info *i)
{
    static const char *const levels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                         "MPI_THREAD_MULTIPLE"};
    char size[16];
    snprintf(size, sizeof(size), "%d", mr_comm_world->size);
    return set_cut(i, "maxprocs", size) && set_cut(i, "soft", size) &&
           set_cut(i, "thread_level", levels[api_thread_level]);
}

static struct mr_info *started_by(int argc, char **argv)
{
    struct mr_info *i = mr_info_new();
    if (i && (argc < 1 || (set_cut(i, "command", argv[0]) && note_arguments(i, argc, argv))) && note_host(i))
        return i;
    mr_info_put(i);
    return NULL;
}

/* It tells the same at any time, also before and after MPI, when nothing is known of the job. */
MPI_FN(int, Info_create_env, (int argc, char *argv[], MPI_Info *info))
{
    API_ENTER_ANY();
    NOT_NULL(info);
    if (argc > 0)
        NOT_NULL(argv);
    err = api_new_info(started_by(argc, argv), info);
    API_LEAVE_ANY();
}

/* The kernel remembers the arguments, which MPI_Init may lack. */
static int own_arguments(char *room, size_t cap, char **argv, int max)
{
    int argc = 0, fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, room, cap - 1);
    if (fd >= 0)
        close(fd);
    room[n > 0 ? n : 0] = '\0';
    for (char *p = room; n > 0 && p < room + n && argc < max; p += strlen(p) + 1)
        argv[argc++] = p;
    return argc;
}

static struct mr_info *env;

struct mr_info *api_info_env(void)
{
    char room[4096], *argv[256];
    if (!env) {
        int argc = own_arguments(room, sizeof(room), argv, 256);
        env = started_by(argc, argv);
        if (env && mr_state == MR_STATE_RUNNING && !note_job(env))
            api_info_finalize();
    }
    return env;
}

void api_info_finalize(void)
{
    mr_info_put(env);
    env = NULL;
}
