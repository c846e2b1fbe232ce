/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a model: one table says of every key where it goes, in which unit it is written and what it may be; the
 * file (YAML: sections of scalars) is walked against it. etc/models/README.md documents the same keys.
 */
#include "simfab/engine/model.h"
#include "simfab/engine/netlist.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum key_type { KEY_TEXT, KEY_U32, KEY_U64, KEY_REAL, KEY_BOOL, KEY_WIDTH, KEY_SPEED, KEY_MTU, KEY_VLS };

struct key {
    const char *section; /* "": the top of the file */
    const char *name;
    enum key_type type;
    size_t offset, size; /* of the field; KEY_TEXT: its capacity */
    double scale;        /* numbers: field = written * scale */
    double min, max;     /* as written */
    const char *def;
};

#define FIELD(f)  offsetof(struct model, f), sizeof(((struct model *)0)->f)
#define NS        1000.0 /* _ps fields are written in nanoseconds */
#define SECOND_NS 1e9

static const struct key keys[] = {
    {"", "name", KEY_TEXT, FIELD(name), 0, 0, 0, "default"},
    {"", "description", KEY_TEXT, FIELD(description), 0, 0, 0, ""},

    {"link", "width", KEY_WIDTH, FIELD(width), 0, 0, 0, "4"},
    {"link", "speed", KEY_SPEED, FIELD(speed), 0, 0, 0, "QDR"},
    {"link", "mtu", KEY_MTU, FIELD(mtu), 0, 0, 0, "4096"},
    {"link", "vls", KEY_VLS, FIELD(vl_cap), 0, 0, 0, "8"},
    {"link", "vlarb_entries", KEY_U32, FIELD(vlarb_cap), 1, 1, FABRIC_VLARB_MAX, "8"},
    {"link", "propagation_ns", KEY_U64, FIELD(propagation_ps), NS, 0, SECOND_NS, "5"},
    {"link", "switch_delay_ns", KEY_U64, FIELD(switch_delay_ps), NS, 0, SECOND_NS, "100"},
    {"link", "cut_through", KEY_BOOL, FIELD(cut_through), 0, 0, 0, "true"},
    {"link", "vl_buffer_bytes", KEY_U32, FIELD(vl_buffer_bytes), 1, 4352, 1 << 30, "16384"},
    {"link", "packet_overhead_bytes", KEY_U32, FIELD(packet_overhead_bytes), 1, 0, 256, "30"},

    {"hca", "post_ns", KEY_U64, FIELD(post_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "doorbell_ns", KEY_U64, FIELD(doorbell_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "wqe_ns", KEY_U64, FIELD(wqe_ps), NS, 0, SECOND_NS, "200"},
    {"hca", "wqe_inline_saves_ns", KEY_U64, FIELD(wqe_inline_saves_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "tx_packet_ns", KEY_U64, FIELD(tx_packet_ps), NS, 0, SECOND_NS, "20"},
    {"hca", "rx_packet_ns", KEY_U64, FIELD(rx_packet_ps), NS, 0, SECOND_NS, "20"},
    {"hca", "dma_latency_ns", KEY_U64, FIELD(dma_latency_ps), NS, 0, SECOND_NS, "200"},
    {"hca", "dma_write_ns", KEY_U64, FIELD(dma_write_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "ack_ns", KEY_U64, FIELD(ack_ps), NS, 0, SECOND_NS, "50"},
    {"hca", "cqe_ns", KEY_U64, FIELD(cqe_ps), NS, 0, SECOND_NS, "50"},
    {"hca", "bus_mbytes_per_s", KEY_U64, FIELD(bus_bps), 8e6, 0, 1e9, "0"},
    {"hca", "dma_read_mbytes_per_s", KEY_U64, FIELD(dma_read_bps), 8e6, 0, 1e9, "0"},
    {"hca", "bus_overhead_bytes", KEY_U32, FIELD(bus_overhead_bytes), 1, 0, 4096, "0"},
    {"hca", "event_ns", KEY_U64, FIELD(event_ps), NS, 0, SECOND_NS, "3000"},
    {"hca", "reg_mr_ns", KEY_U64, FIELD(reg_mr_ps), NS, 0, SECOND_NS, "10000"},
    {"hca", "reg_mr_page_ns", KEY_U64, FIELD(reg_mr_page_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "max_inline_bytes", KEY_U32, FIELD(max_inline_bytes), 1, 0, 1024, "256"},
    {"hca", "max_sge", KEY_U32, FIELD(max_sge), 1, 1, 64, "30"},
    {"hca", "max_qp_wr", KEY_U32, FIELD(max_qp_wr), 1, 1, 1 << 16, "32768"},
    {"hca", "max_cqe", KEY_U32, FIELD(max_cqe), 1, 1, 1 << 22, "4194303"},
    {"hca", "max_srq_wr", KEY_U32, FIELD(max_srq_wr), 1, 1, 1 << 16, "32767"},
    {"hca", "max_rd_atomic", KEY_U32, FIELD(max_rd_atomic), 1, 1, 255, "16"},
    {"hca", "vendor_part_id", KEY_U32, FIELD(vendor_part_id), 1, 1, 65535, "4123"},

    {"program", "clock_read_ns", KEY_U64, FIELD(clock_read_ps), NS, 0, SECOND_NS, "25"},
    {"program", "poll_ns", KEY_U64, FIELD(poll_ps), NS, 0, SECOND_NS, "50"},
    {"program", "poll_empty_ns", KEY_U64, FIELD(poll_empty_ps), NS, 0, SECOND_NS, "20"},
    {"program", "cpu_factor", KEY_U32, FIELD(cpu_factor_milli), 1000, 0, 1000, "0"},

    {"fault", "loss", KEY_REAL, FIELD(loss), 1, 0, 1, "0"},
    {"fault", "seed", KEY_U64, FIELD(seed), 1, 0, 9e15, "1"},
};

#define NUM_KEYS (sizeof keys / sizeof *keys)

struct reader {
    const char *path;
    yaml_document_t doc;
    struct parse_error *err;
    bool seen[NUM_KEYS];
};

__attribute__((format(printf, 3, 4))) static int fail(struct reader *r, const yaml_mark_t *at, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(r->err->text, sizeof r->err->text, "%s:%zu:%zu: ", r->path, at->line + 1, at->column + 1);

    if (n > 0 && (size_t)n < sizeof r->err->text) {
        va_start(ap, fmt);
        vsnprintf(r->err->text + n, sizeof r->err->text - (size_t)n, fmt, ap);
        va_end(ap);
    }
    return -1;
}

/* "1, 2" or "a, b": what is allowed, for messages */
static const char *allowed(enum key_type type)
{
    switch (type) {
    case KEY_BOOL:
        return "true or false";
    case KEY_WIDTH:
        return "1, 2, 4, 8 or 12";
    case KEY_SPEED:
        return "SDR, DDR, QDR, FDR, EDR, HDR or NDR";
    case KEY_MTU:
        return "256, 512, 1024, 2048 or 4096";
    case KEY_VLS:
        return "1, 2, 4, 8 or 15";
    default:
        return "a number";
    }
}

static bool parse_plain(const char *text, double *out)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    return *text && *text != ' ' && !*end && !errno && isfinite(*out);
}

/* One of five codes 1..5 for a list of values; 0 when it is none of them. */
static uint8_t code_of(double v, const unsigned list[5])
{
    for (uint8_t i = 0; i < 5; i++)
        if (v == list[i])
            return i + 1;
    return 0;
}

static void store(struct model *m, const struct key *k, double v)
{
    char *at = (char *)m + k->offset;
    uint64_t u = (uint64_t)llround(v);

    if (k->type == KEY_REAL)
        memcpy(at, &v, sizeof v);
    else if (k->size == 8)
        memcpy(at, &u, 8);
    else if (k->size == 4)
        memcpy(at, &(uint32_t){(uint32_t)u}, 4);
    else
        *at = (char)u;
}

/* 0: stored; -1: not what the key wants; -2: out of range */
static int set_value(struct model *m, const struct key *k, const char *text)
{
    static const unsigned mtus[5] = {256, 512, 1024, 2048, 4096}, vls[5] = {1, 2, 4, 8, 15};
    struct link_rate rate = {0};
    double v = 0;

    if (k->type == KEY_TEXT) {
        if (strlen(text) >= k->size)
            return -2;
        strcpy((char *)m + k->offset, text);
        return 0;
    }
    if (k->type == KEY_SPEED) {
        if (!link_speed_parse(text, strlen(text), &rate))
            return -1;
        m->speed = rate.speed;
        m->ext_speed = rate.ext_speed;
        return 0;
    }
    if (k->type == KEY_BOOL) {
        if (strcmp(text, "true") && strcmp(text, "false"))
            return -1;
        store(m, k, *text == 't');
        return 0;
    }
    if (!parse_plain(text, &v))
        return -1;
    if (k->type == KEY_WIDTH) {
        if (v < 0 || v > 12 || v != floor(v) || !link_width_parse((unsigned)v, &rate))
            return -1;
        m->width = rate.width;
        return 0;
    }
    if (k->type == KEY_MTU || k->type == KEY_VLS) {
        uint8_t code = code_of(v, k->type == KEY_MTU ? mtus : vls);

        if (!code)
            return -1;
        store(m, k, code);
        return 0;
    }
    if (v < k->min || v > k->max)
        return -2;
    if (k->type != KEY_REAL && k->scale == 1 && v != floor(v))
        return -1;
    store(m, k, k->type == KEY_REAL ? v : v * k->scale);
    return 0;
}

static int read_scalar(struct reader *r, struct model *m, const char *section, const yaml_node_t *name,
                       const yaml_node_t *value)
{
    const char *key = (const char *)name->data.scalar.value;

    for (size_t i = 0; i < NUM_KEYS; i++) {
        const struct key *k = &keys[i];

        if (strcmp(k->section, section) || strcmp(k->name, key))
            continue;
        if (r->seen[i])
            return fail(r, &name->start_mark, "%s is given twice", key);
        r->seen[i] = true;
        if (value->type != YAML_SCALAR_NODE)
            return fail(r, &value->start_mark, "%s wants one value", key);
        if (strlen((const char *)value->data.scalar.value) != value->data.scalar.length)
            return fail(r, &value->start_mark, "%s: a zero byte", key);
        switch (set_value(m, k, (const char *)value->data.scalar.value)) {
        case -1:
            return fail(r, &value->start_mark, "%s: \"%.40s\" is not %s", key, value->data.scalar.value,
                        k->scale == 1 && k->type != KEY_REAL ? "a whole number" : allowed(k->type));
        case -2:
            if (k->type == KEY_TEXT)
                return fail(r, &value->start_mark, "%s is too long: at most %zu characters", key, k->size - 1);
            return fail(r, &value->start_mark, "%s: %.40s is out of range: %.15g to %.15g", key,
                        value->data.scalar.value, k->min, k->max);
        }
        return 0;
    }
    return fail(r, &name->start_mark, *section ? "unknown key \"%.40s\" in %s" : "unknown key \"%.40s\"%s", key,
                section);
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < NUM_KEYS; i++)
        if (*keys[i].section && !strcmp(keys[i].section, name))
            return true;
    return false;
}

static int read_mapping(struct reader *r, struct model *m, const char *section, const yaml_node_t *map)
{
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *name = yaml_document_get_node(&r->doc, p->key);
        const yaml_node_t *value = yaml_document_get_node(&r->doc, p->value);
        const char *key;

        if (!name || !value || name->type != YAML_SCALAR_NODE)
            return fail(r, &map->start_mark, "a key must be a plain word");
        key = (const char *)name->data.scalar.value;
        if (!*section && is_section(key)) {
            if (value->type != YAML_MAPPING_NODE)
                return fail(r, &value->start_mark, "%s is a section: indented \"key: value\" lines are wanted", key);
            if (read_mapping(r, m, key, value))
                return -1;
        } else if (read_scalar(r, m, section, name, value)) {
            return -1;
        }
    }
    return 0;
}

static int read_file(struct reader *r, struct model *m)
{
    yaml_parser_t parser;
    const yaml_node_t *root;
    FILE *f = fopen(r->path, "re");
    int rc;

    if (!f) {
        snprintf(r->err->text, sizeof r->err->text, "%s: %s", r->path, strerror(errno));
        return -1;
    }
    if (!yaml_parser_initialize(&parser)) {
        snprintf(r->err->text, sizeof r->err->text, "%s: out of memory", r->path);
        fclose(f);
        return -1;
    }
    yaml_parser_set_input_file(&parser, f);
    if (!yaml_parser_load(&parser, &r->doc)) {
        const yaml_mark_t *at = parser.problem_mark.line ? &parser.problem_mark : &parser.context_mark;

        rc = fail(r, at, "%s", parser.problem ? parser.problem : "not a YAML file");
    } else {
        root = yaml_document_get_root_node(&r->doc);
        if (!root)
            rc = fail(r, &(yaml_mark_t){0}, "the file is empty");
        else if (root->type != YAML_MAPPING_NODE)
            rc = fail(r, &root->start_mark, "\"key: value\" lines are wanted");
        else
            rc = read_mapping(r, m, "", root);
        yaml_document_delete(&r->doc);
    }
    yaml_parser_delete(&parser);
    fclose(f);
    return rc;
}

struct model *model_load(const char *path, struct parse_error *err)
{
    struct reader r = {.path = path, .err = err};
    struct model *m = calloc(1, sizeof *m);

    err->text[0] = '\0';
    if (!m) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < NUM_KEYS; i++)
        set_value(m, &keys[i], keys[i].def);
    if (path && read_file(&r, m)) {
        free(m);
        return NULL;
    }
    return m;
}

void model_free(struct model *m)
{
    free(m);
}

bool model_key(size_t i, const char **section, const char **name, const char **def)
{
    if (i >= NUM_KEYS)
        return false;
    *section = keys[i].section;
    *name = keys[i].name;
    *def = keys[i].def;
    return true;
}
