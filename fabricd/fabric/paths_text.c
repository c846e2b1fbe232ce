/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of nodes, and paths as text: see paths_text.h. */
#include "fabricd/fabric/paths_text.h"
#include "fabricd/fabric/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* IBTA volume 1, 15.2.5.2: LID, 2 bytes, NodeInfo, NodeDescription */
#define TYPE_AT      6
#define NAME_AT      44
#define NAME_LENGTH  64
#define NODE_ADAPTER 1

static int by_lid(const void *a, const void *b)
{
    return (int)((const struct paths_name *)a)->lid - (int)((const struct paths_name *)b)->lid;
}

void paths_names_free(struct paths_names *n)
{
    free(n->name);
    *n = (struct paths_names){0};
}

int paths_names_take(struct paths_names *n, const uint8_t *record, size_t num, size_t size)
{
    paths_names_free(n);
    if (size < NAME_AT + NAME_LENGTH)
        num = 0;
    n->name = calloc(num + 1, sizeof(*n->name));
    if (!n->name)
        return -ENOMEM;
    for (size_t i = 0; i < num; i++) {
        const uint8_t *r = record + i * size;
        struct paths_name *name = &n->name[n->num++];
        name->lid = (uint16_t)(r[0] << 8 | r[1]);
        name->adapter = r[TYPE_AT] == NODE_ADAPTER;
        memcpy(name->text, r + NAME_AT, NAME_LENGTH);
    }
    qsort(n->name, n->num, sizeof(*n->name), by_lid);
    return 0;
}

/* "h1" and "h1 mlx5_0" mean the node "h1 mlx5_0". */
static uint16_t find_end(const struct paths_names *n, const char *what)
{
    size_t len = strlen(what);
    for (unsigned i = 0; i < n->num; i++)
        if (n->name[i].adapter && !strncmp(n->name[i].text, what, len) &&
            (!n->name[i].text[len] || n->name[i].text[len] == ' '))
            return n->name[i].lid;
    return 0;
}

int paths_names_find(const struct paths_names *n, const struct fd_ends *ends, uint16_t *from, uint16_t *to,
                     struct text *why)
{
    *from = find_end(n, ends->from);
    *to = find_end(n, ends->to);
    if (!*from || !*to)
        text_printf(why,
                    "the subnet has no adapter whose description is '%s' or begins with that; ibhosts lists them\n",
                    *from ? ends->to : ends->from);
    else if (*from == *to)
        text_printf(why, "both ends are the same port\n");
    return *from && *to && *from != *to ? 0 : -ENOENT;
}

static void put_lid_name(struct text *out, const struct paths_names *n, uint16_t lid)
{
    struct paths_name key = {.lid = lid};
    const struct paths_name *found = bsearch(&key, n->name, n->num, sizeof(key), by_lid);
    struct text t = {0};
    if (found)
        text_put_visible(&t, found->text, strlen(found->text));
    else
        text_printf(&t, "LID %u", lid);
    text_yaml_string(out, text_str(&t));
    text_free(&t);
}

static void put_route(struct text *out, const struct paths_names *n, const struct route *r)
{
    for (unsigned i = 0; i < r->num; i++) {
        text_printf(out, "%s{switch: ", i ? ", " : "");
        put_lid_name(out, n, r->hop[i].lid);
        text_printf(out, ", port: %u}", r->hop[i].port);
    }
}

void paths_text(struct text *out, const struct paths_names *n, const struct paths_question *q,
                const struct routes_pair *pair)
{
    uint8_t order[FD_PATHS_MAX];
    unsigned disjoint = routes_order(pair, order);
    text_printf(out, "from: {node: ");
    put_lid_name(out, n, q->from);
    text_printf(out, ", lid: %u}\nto: {node: ", q->from);
    put_lid_name(out, n, q->to);
    text_printf(out, ", lid: %u}\ndisjoint: %u\npaths:\n", q->to, disjoint);
    for (unsigned i = 0; i < pair->num; i++) {
        unsigned k = order[i];
        text_printf(out, "  - path: %u\n    disjoint: %s\n", k, i < disjoint ? "yes" : "no");
        if (!pair->has[k]) {
            text_printf(out, "    there: none\n");
            continue;
        }
        text_printf(out, "    there: [");
        put_route(out, n, &pair->there[k]);
        text_printf(out, "]\n    back: [");
        put_route(out, n, &pair->back[k]);
        text_printf(out, "]\n");
    }
}
