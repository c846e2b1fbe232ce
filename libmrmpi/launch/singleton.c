/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without launcher: rank 0 of 1, its own only peer. Its values stay in a small list here. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/launch/backend.h"

struct value {
    struct value *next;
    size_t len;
    char *key;
    unsigned char data[];
};

static pthread_mutex_t values_lock = PTHREAD_MUTEX_INITIALIZER;
static struct value *values; /* newest first, so a later put of a key hides the earlier */

static int singleton_init(struct mr_launch_world *world)
{
    const uint32_t only = 0;

    world->rank = 0;
    world->size = 1;
    world->appnum = 0;
    world->job_id = strdup("");
    world->space = strdup("");
    world->node_name = strdup("");
    if (!world->job_id || !world->space || !world->node_name)
        return -ENOMEM;
    return mr_nodemap_from_ids(&world->map, 0, 1, &only);
}

static int singleton_put(const char *key, const void *data, size_t len)
{
    struct value *value = malloc(sizeof(*value) + len);

    if (!value || !(value->key = strdup(key))) {
        free(value);
        return -ENOMEM;
    }
    value->len = len;
    memcpy(value->data, data, len);
    pthread_mutex_lock(&values_lock);
    value->next = values;
    values = value;
    pthread_mutex_unlock(&values_lock);
    return 0;
}

static int singleton_fence_begin(void)
{
    return 0;
}

static int singleton_fence_end(bool patient)
{
    return 0;
}

static int singleton_get(int rank, const char *key, void *buf, size_t cap, size_t *len)
{
    int err = -ENOENT;

    pthread_mutex_lock(&values_lock);
    for (struct value *value = values; value; value = value->next) {
        if (strcmp(value->key, key))
            continue;
        *len = value->len;
        err = value->len > cap ? -EMSGSIZE : 0;
        if (!err)
            memcpy(buf, value->data, value->len);
        break;
    }
    pthread_mutex_unlock(&values_lock);
    return err;
}

/* Names of services: nobody else sees them. */
static struct value *names;

static struct value **place_of_name(const char *name)
{
    struct value **at = &names;

    while (*at && strcmp((*at)->key, name))
        at = &(*at)->next;
    return at;
}

static int singleton_publish_name(const char *name, const char *text)
{
    size_t len = strlen(text) + 1;
    struct value *value;

    if (*place_of_name(name))
        return -EEXIST;
    value = malloc(sizeof(*value) + len);
    if (!value || !(value->key = strdup(name))) {
        free(value);
        return -ENOMEM;
    }
    value->len = len;
    memcpy(value->data, text, len);
    value->next = names;
    names = value;
    return 0;
}

static int singleton_look_up_name(const char *name, char *text, size_t cap)
{
    const struct value *value = *place_of_name(name);

    if (!value)
        return -ENOENT;
    if (value->len > cap)
        return -EMSGSIZE;
    memcpy(text, value->data, value->len);
    return 0;
}

static int singleton_unpublish_name(const char *name)
{
    struct value **at = place_of_name(name), *value = *at;

    if (!value)
        return -ENOENT;
    *at = value->next;
    free(value->key);
    free(value);
    return 0;
}

static int singleton_failed(void)
{
    return 0;
}

static __attribute__((noreturn)) void singleton_abort(int code, const char *why)
{
    fprintf(stderr, "mrmpi: process %d aborted with code %d: %s\n", (int)getpid(), code, why ? why : "");
    fflush(NULL);
    _exit(mr_launch_status(code));
}

static int singleton_finalize(void)
{
    pthread_mutex_lock(&values_lock);
    while (values) {
        struct value *next = values->next;
        free(values->key);
        free(values);
        values = next;
    }
    pthread_mutex_unlock(&values_lock);
    while (names)
        singleton_unpublish_name(names->key);
    return 0;
}

const struct mr_launch_backend mr_launch_singleton = {
    .name = "none",
    .init = singleton_init,
    .put = singleton_put,
    .fence_begin = singleton_fence_begin,
    .fence_end = singleton_fence_end,
    .get = singleton_get,
    .publish_name = singleton_publish_name,
    .look_up_name = singleton_look_up_name,
    .unpublish_name = singleton_unpublish_name,
    .universe = mr_launch_processors,
    .failed = singleton_failed,
    .abort = singleton_abort,
    .finalize = singleton_finalize,
};
