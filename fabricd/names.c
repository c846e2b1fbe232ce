/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of services: see names.h. */
#include "fabricd/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct name {
    struct name *next;
    uint64_t client, job;
    uint32_t uid;
    char name[FD_SERVICE_MAX], value[FD_SERVICE_MAX];
};

static struct name **find_name(struct names *all, uint32_t uid, const char *name)
{
    struct name **at = &all->first;
    while (*at && ((*at)->uid != uid || strcmp((*at)->name, name)))
        at = &(*at)->next;
    return at;
}

static unsigned count_names(const struct names *all, uint32_t uid)
{
    unsigned n = 0;
    for (const struct name *i = all->first; i; i = i->next)
        n += i->uid == uid;
    return n;
}

static void free_name(struct name **at)
{
    struct name *gone = *at;
    *at = gone->next;
    free(gone);
}

static int publish_name(struct names *all, uint64_t client, uint32_t uid, const struct fd_name *m)
{
    if (*find_name(all, uid, m->name))
        return -EEXIST;
    if (count_names(all, uid) >= NAMES_PER_UID)
        return -ENOSPC;
    struct name *n = malloc(sizeof(*n));
    if (!n)
        return -ENOMEM;
    *n = (struct name){.next = all->first, .client = client, .job = m->job, .uid = uid};
    memcpy(n->name, m->name, sizeof(n->name));
    memcpy(n->value, m->value, sizeof(n->value));
    all->first = n;
    return 0;
}

void names_answer(struct names *all, uint64_t client, uint32_t uid, struct fd_name *m)
{
    struct name **at = find_name(all, uid, m->name);
    if (m->what == FD_NAME_PUBLISH) {
        m->status = publish_name(all, client, uid, m);
    } else if (!*at || (m->what == FD_NAME_WITHDRAW && (*at)->job != m->job)) {
        m->status = -ENOENT;
    } else {
        m->status = 0;
        if (m->what == FD_NAME_FIND)
            memcpy(m->value, (*at)->value, sizeof(m->value));
        else
            free_name(at);
    }
}

void names_left(struct names *all, uint64_t client)
{
    for (struct name **at = &all->first; *at;)
        if ((*at)->client == client)
            free_name(at);
        else
            at = &(*at)->next;
}

void names_free(struct names *all)
{
    while (all->first)
        free_name(&all->first);
}
