/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects (MPI-3.1 chapter 9). */
#include "libmrmpi/api/api.h"

#include <string.h>

static enum mr_err check_key(const char *key)
{
    if (!key)
        return api_null("key");
    size_t n = strlen(key);
    if (n == 0 || n > MPI_MAX_INFO_KEY)
        return mr_fail(MR_ERR_INFO_KEY, "the key has %zu characters: 1 to %d are allowed", n, MPI_MAX_INFO_KEY);
    return MR_SUCCESS;
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
    CHECK(api_info(*info, &i));
    api_handle_free(ABI_INFO, *info);
    mr_info_put(i);
    *info = MPI_INFO_NULL;
    API_LEAVE_ANY();
}

MPI_FN(int, Info_set, (MPI_Info info, const char *key, const char *value))
{
    struct mr_info *i;
    API_ENTER_ANY();
    CHECK(api_info(info, &i));
    CHECK(check_key(key));
    NOT_NULL(value);
    if (strlen(value) > MPI_MAX_INFO_VAL)
        CHECK(mr_fail(MR_ERR_INFO_VALUE, "the value has %zu characters: at most %d are allowed", strlen(value),
                      MPI_MAX_INFO_VAL));
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
    api_string(key, MPI_MAX_INFO_KEY + 1, i->pairs[n].key, &len);
    API_LEAVE_ANY();
}

MPI_FN(int, Info_delete, (MPI_Info info, const char *key))
{
    struct mr_info *i;
    API_ENTER_ANY();
    CHECK(api_info(info, &i));
    CHECK(check_key(key));
    if (!mr_info_delete(i, key))
        CHECK(mr_fail(MR_ERR_INFO_NOKEY, "the key %s is not set", key));
    API_LEAVE_ANY();
}
