/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The grammar of netlists: the output of ibnetdiscover (attributes in front of a node record, guids in parentheses,
 * descriptions and rates in comments) and the simple form of ibsim (no guids, "w=4" behind a cable). A file is read
 * line by line; a line's first characters give its kind.
 */
#include "simfab/engine/fabric/netlist_parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/netlist.h"
#include "simfab/engine/fabric/netlist_ports.h"

struct parser {
    struct netlist *nl;
    struct parse_error *err;
    unsigned line;
    const char *at;              /* the rest of the line */
    struct netlist_node pending; /* attributes seen since the last node record */
    bool in_node;
};

#define FAIL(p, ...) netlist_error((p)->nl, (p)->line, (p)->err, __VA_ARGS__)

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool at_end(struct parser *p)
{
    skip_blanks(p);
    return *p->at == '\0' || *p->at == '#';
}

static int parse_net_number(struct parser *p, unsigned max, const char *what, unsigned *out)
{
    unsigned long v;
    char *end;

    skip_blanks(p);
    if (!isdigit((unsigned char)*p->at))
        return FAIL(p, "%s is missing: a number is wanted before \"%.20s\"", what, p->at);
    errno = 0;
    v = strtoul(p->at, &end, 10);
    if (errno || v > max)
        return FAIL(p, "%s %.*s is out of range: at most %u", what, (int)(end - p->at), p->at, max);
    p->at = end;
    *out = (unsigned)v;
    return 0;
}

static int parse_hex(struct parser *p, const char *what, uint64_t *out)
{
    char *end;

    skip_blanks(p);
    if (!isxdigit((unsigned char)*p->at))
        return FAIL(p, "%s: a hexadecimal number is wanted before \"%.20s\"", what, p->at);
    errno = 0;
    *out = strtoull(p->at, &end, 16);
    if (errno)
        return FAIL(p, "%s: %.*s does not fit in 64 bits", what, (int)(end - p->at), p->at);
    p->at = end;
    return 0;
}

static int parse_char(struct parser *p, char c, const char *after)
{
    skip_blanks(p);
    if (*p->at != c)
        return FAIL(p, "'%c' is missing after %s, before \"%.20s\"", c, after, p->at);
    p->at++;
    return 0;
}

static int parse_quoted(struct parser *p, const char *what, char *out, size_t cap)
{
    const char *end;

    if (parse_char(p, '"', what))
        return -1;
    end = strchr(p->at, '"');
    if (!end)
        return FAIL(p, "%s: the closing quote is missing", what);
    if (end == p->at)
        return FAIL(p, "%s is empty", what);
    if ((size_t)(end - p->at) >= cap)
        return FAIL(p, "%s is too long: at most %zu characters", what, cap - 1);
    memcpy(out, p->at, (size_t)(end - p->at));
    out[end - p->at] = '\0';
    p->at = end + 1;
    return 0;
}

/* "(2c9000)" if present */
static int parse_paren_guid(struct parser *p, uint64_t *guid)
{
    skip_blanks(p);
    if (*p->at != '(')
        return 0;
    p->at++;
    if (parse_hex(p, "port GUID", guid) || parse_char(p, ')', "the port GUID"))
        return -1;
    return *guid ? 0 : FAIL(p, "the port GUID is 0");
}

/* "[3]", "[3][ext 7]" */
static int parse_net_port(struct parser *p, const char *what, unsigned *port)
{
    if (parse_char(p, '[', what) || parse_net_number(p, FABRIC_PORTS_MAX, "port number", port) ||
        parse_char(p, ']', "the port number"))
        return -1;
    if (*port == 0)
        return FAIL(p, "port number 0: cables end at ports 1 and up");
    if (!strncmp(p->at, "[ext", 4)) {
        const char *end = strchr(p->at, ']');

        if (!end)
            return FAIL(p, "']' is missing after \"%.20s\"", p->at);
        p->at = end + 1;
    }
    return 0;
}

static int parse_attribute(struct parser *p, const char *key, size_t len)
{
    struct netlist_node *n = &p->pending;
    uint64_t v, v2 = 0;

    if (parse_char(p, '=', "the attribute's name"))
        return -1;
    if (parse_hex(p, "value", &v) || parse_paren_guid(p, &v2))
        return -1;
    if (!at_end(p))
        return FAIL(p, "unexpected \"%.20s\" behind the value", p->at);
#define IS(name) (len == strlen(name) && !strncmp(key, name, len))
    if (IS("vendid") || IS("devid")) {
        if (v > UINT32_MAX)
            return FAIL(p, "%.*s: more than 32 bits", (int)len, key);
        *(IS("vendid") ? &n->vendor : &n->device) = (uint32_t)v;
    } else if (IS("sysimgguid")) {
        n->sys_guid = v;
    } else if (IS("switchguid") || IS("caguid") || IS("hcaguid") || IS("rtguid")) {
        if (!v)
            return FAIL(p, "%.*s is 0", (int)len, key);
        if (n->guid)
            return FAIL(p, "a second GUID for one node");
        n->guid = v;
        n->port0_guid = v2;
    } else {
        return FAIL(p, "unknown attribute \"%.*s\": vendid, devid, sysimgguid, switchguid, caguid or rtguid", (int)len,
                    key);
    }
#undef IS
    return 0;
}

/* behind a node's id: # "description" enhanced port 0 lid 6 lmc 0 */
static int parse_node_comment(struct parser *p, struct netlist_node *n)
{
    const char *end;

    if (*p->at != '#')
        return 0;
    p->at++;
    skip_blanks(p);
    if (*p->at != '"')
        return 0;
    end = strchr(p->at + 1, '"');
    if (!end)
        return FAIL(p, "description: the closing quote is missing");
    /* a map of names may have longer ones: a NodeDescription has 64 characters */
    snprintf(n->desc, sizeof n->desc, "%.*s", (int)(end - p->at - 1), p->at + 1);
    p->at = end + 1;
    n->enhanced_port0 = strstr(p->at, "enhanced port 0") != NULL;
    return 0;
}

static int parse_node(struct parser *p, enum node_kind kind)
{
    struct netlist_node *n = netlist_add_node(p->nl, p->line, p->err);

    if (!n)
        return -1;
    *n = p->pending;
    n->kind = kind;
    n->line = p->line;
    if (parse_net_number(p, FABRIC_PORTS_MAX, "port count", &n->num_ports))
        return -1;
    if (n->num_ports == 0)
        return FAIL(p, "a node without ports");
    if (parse_quoted(p, "node name", n->id, sizeof n->id))
        return -1;
    if (!at_end(p))
        return FAIL(p, "unexpected \"%.20s\" behind the node's name", p->at);
    if (parse_node_comment(p, n))
        return -1;
    memset(&p->pending, 0, sizeof p->pending);
    p->in_node = true;
    return 0;
}

/* The rate that ibnetdiscover adds behind the descriptions of a cable's comment: 4xSDR, perhaps not as the last word.
 */
static int parse_rate_comment(struct parser *p, struct netlist_link *l)
{
    const char *quote = strrchr(p->at, '"');

    for (const char *word = quote ? quote + 1 : p->at; *word;) {
        size_t len = strcspn(word, " \t");
        struct link_rate rate = {0};
        int rc = link_rate_parse(word, len, &rate);

        if (rc < 0)
            return FAIL(p, "unknown rate \"%.*s\": 1x, 2x, 4x, 8x or 12x of SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR",
                        (int)len, word);
        if (rc == 0)
            l->rate = rate;
        word += len + strspn(word + len, " \t");
    }
    return 0;
}

/* "w=4" and "s=SDR" (or ibsim's number: 1 2 4) behind a cable */
static int parse_link_option(struct parser *p, struct netlist_link *l)
{
    char key = *p->at;
    size_t len;
    unsigned v;

    if ((key != 'w' && key != 's') || p->at[1] != '=')
        return FAIL(p, "unexpected \"%.20s\" behind the cable: w=WIDTH or s=SPEED", p->at);
    p->at += 2;
    len = strcspn(p->at, " \t#");
    if (key == 's' && isalpha((unsigned char)*p->at)) {
        if (!link_speed_parse(p->at, len, &l->rate))
            return FAIL(p, "unknown speed \"%.*s\": SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR", (int)len, p->at);
        p->at += len;
        return 0;
    }
    if (parse_net_number(p, 12, key == 'w' ? "width" : "speed", &v))
        return -1;
    if (key == 'w' && !link_width_parse(v, &l->rate))
        return FAIL(p, "width %u: 1, 2, 4, 8 or 12", v);
    if (key == 's') {
        if (v != 1 && v != 2 && v != 4)
            return FAIL(p, "speed %u: 1 (SDR), 2 (DDR) or 4 (QDR)", v);
        l->rate.speed = (uint8_t)v;
    }
    return 0;
}

static int parse_link(struct parser *p)
{
    struct netlist_link *l;

    if (!p->in_node)
        return FAIL(p, "a cable outside of a node record: a Switch or Hca line must come first");
    l = netlist_add_link(p->nl, p->line, p->err);
    if (!l)
        return -1;
    l->node = p->nl->num_nodes - 1;
    if (parse_net_port(p, "the line's start", &l->port) || parse_paren_guid(p, &l->port_guid) ||
        parse_quoted(p, "peer's name", l->peer_id, sizeof l->peer_id) ||
        parse_net_port(p, "the peer's name", &l->peer_port) || parse_paren_guid(p, &l->peer_guid))
        return -1;
    while (!at_end(p))
        if (parse_link_option(p, l))
            return -1;
    return parse_rate_comment(p, l);
}

static int parse_line(struct parser *p)
{
    static const struct {
        const char *word;
        enum node_kind kind;
    } kinds[] = {
        {"Switch", NODE_SWITCH}, {"Hca", NODE_CA}, {"Ca", NODE_CA}, {"Rt", NODE_ROUTER}, {"Router", NODE_ROUTER}};
    const char *word;
    size_t len;
    int rc;

    if (at_end(p)) {
        if (*p->at == '\0')
            p->in_node = false;
        return 0;
    }
    if (*p->at == '[')
        return parse_link(p);
    rc = netlist_port_line(p->nl, p->at, p->line, p->err);
    if (rc <= 0)
        return rc;
    word = p->at;
    len = strcspn(word, " \t=\"#");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strlen(kinds[i].word) == len && !strncasecmp(word, kinds[i].word, len)) {
            p->at += len;
            return parse_node(p, kinds[i].kind);
        }
    }
    /* headings of ibnetdiscover -g */
    if (!strncmp(word, "Non-Chassis", 11) || !strncmp(word, "Chassis", 7) || !strncmp(word, "Hostname:", 9))
        return 0;
    if (len == 7 && !strncmp(word, "include", len))
        return FAIL(p, "include is not supported: put the records into one file");
    if (len == 2 && !strncmp(word, "do", len))
        return FAIL(p, "do is not supported: a netlist describes a fabric and runs nothing");
    p->at += len;
    skip_blanks(p);
    if (*p->at == '=')
        return parse_attribute(p, word, len);
    return FAIL(p, "\"%.*s\": a node (Switch, Ca, Hca, Rt), a cable ([port] \"node\"[port]) or an attribute is wanted",
                (int)(len > 40 ? 40 : len), word);
}

int netlist_parse(const char *path, struct netlist *nl, struct parse_error *err)
{
    struct parser p = {.nl = nl, .err = err};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;
    FILE *f;

    memset(nl, 0, sizeof *nl);
    nl->path = path;
    f = fopen(path, "re");
    if (!f) {
        snprintf(err->text, sizeof err->text, "%s: %s", path, strerror(errno));
        return -1;
    }
    while (rc == 0 && (errno = 0, n = getline(&line, &cap, f)) >= 0) {
        p.line++;
        if (memchr(line, '\0', (size_t)n)) {
            rc = FAIL(&p, "not a text file");
            break;
        }
        line[strcspn(line, "\r\n")] = '\0';
        p.at = line;
        rc = parse_line(&p);
    }
    if (rc == 0 && ferror(f)) {
        snprintf(err->text, sizeof err->text, "%s: %s", path, strerror(errno));
        rc = -1;
    }
    if (rc == 0 && nl->num_nodes == 0)
        rc = netlist_error(nl, p.line ? p.line : 1, err, "no nodes: a Switch, Ca or Hca record is wanted");
    free(line);
    fclose(f);
    return rc;
}
