/* SPDX-License-Identifier: BSD-3-Clause */
/* Netlists in memory: records, errors with their lines, rates of links. */
#include "simfab/engine/fabric/netlist.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"

int netlist_error(const struct netlist *nl, unsigned line, struct parse_error *err, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(err->text, sizeof err->text, "%s:%u: ", nl->path, line);

    if (n < 0 || (size_t)n >= sizeof err->text)
        return -1;
    va_start(ap, fmt);
    vsnprintf(err->text + n, sizeof err->text - (size_t)n, fmt, ap);
    va_end(ap);
    return -1;
}

bool link_speed_parse(const char *text, size_t len, struct link_rate *rate)
{
    static const struct {
        const char *name;
        uint8_t speed, ext;
    } speeds[] = {
        {"SDR", 1, 0}, {"DDR", 2, 0}, {"QDR", 4, 0}, {"FDR10", 4, 0}, /* see link_rate.fdr10 */
        {"FDR", 4, 1}, {"EDR", 4, 2}, {"HDR", 4, 4}, {"NDR", 4, 8},
    };

    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        if (strlen(speeds[i].name) == len && !strncasecmp(speeds[i].name, text, len)) {
            rate->speed = speeds[i].speed;
            rate->ext_speed = speeds[i].ext;
            rate->fdr10 = len == strlen("FDR10");
            return true;
        }
    }
    return false;
}

bool link_width_parse(unsigned lanes, struct link_rate *rate)
{
    switch (lanes) {
    case 1:
        rate->width = 1;
        return true;
    case 2:
        rate->width = 16;
        return true;
    case 4:
        rate->width = 2;
        return true;
    case 8:
        rate->width = 4;
        return true;
    case 12:
        rate->width = 8;
        return true;
    default:
        return false;
    }
}

int link_rate_parse(const char *word, size_t len, struct link_rate *rate)
{
    size_t digits = strspn(word, "0123456789");

    if (!digits || digits > 3 || digits + 2 > len || word[digits] != 'x' || !isupper((unsigned char)word[digits + 1]))
        return 1;
    return link_width_parse((unsigned)strtoul(word, NULL, 10), rate) &&
                   link_speed_parse(word + digits + 1, len - digits - 1, rate)
               ? 0
               : -1;
}

/* Makes room for another element in a list that doubles when full. */
static void *grow(void *list, unsigned used, size_t size)
{
    return used & (used - 1) ? list : realloc(list, (used ? used * 2 : 1) * size);
}

struct netlist_node *netlist_add_node(struct netlist *nl, unsigned line, struct parse_error *err)
{
    struct netlist_node *n = grow(nl->nodes, nl->num_nodes, sizeof *n);

    if (!n) {
        netlist_error(nl, line, err, "out of memory");
        return NULL;
    }
    nl->nodes = n;
    n += nl->num_nodes++;
    *n = (struct netlist_node){.line = line};
    return n;
}

struct netlist_link *netlist_add_link(struct netlist *nl, unsigned line, struct parse_error *err)
{
    struct netlist_link *l = grow(nl->links, nl->num_links, sizeof *l);

    if (!l) {
        netlist_error(nl, line, err, "out of memory");
        return NULL;
    }
    nl->links = l;
    l += nl->num_links++;
    *l = (struct netlist_link){.line = line};
    return l;
}

void netlist_free(struct netlist *nl)
{
    free(nl->nodes);
    free(nl->links);
    nl->nodes = NULL;
    nl->links = NULL;
    nl->num_nodes = nl->num_links = 0;
}
