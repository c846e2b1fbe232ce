/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a model: tables give the field, the unit and the valid values of every key; the file (YAML: sections of
 * scalars, and lists of mappings) is walked against the tables. etc/models/KEYS.md documents the same keys.
 */
#include "simfab/engine/fabric/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model_value.h"

#define FIELD(f)  MODEL_FIELD(model, f)
#define NS        1000.0 /* _ps fields are written in nanoseconds */
#define SECOND_NS 1e9

static const struct model_key keys[] = {
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
    {"link", "switch_queues", KEY_QUEUES, FIELD(switch_queues), 0, 0, 0, "output"},
    {"link", "vl_buffer_bytes", KEY_U32, FIELD(vl_buffer_bytes), 1, 4352, 1 << 30, "16384"},
    {"link", "packet_overhead_bytes", KEY_U32, FIELD(packet_overhead_bytes), 1, 0, 256, "30"},

    {"hca", "post_ns", KEY_U64, FIELD(post_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "doorbell_ns", KEY_U64, FIELD(doorbell_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "wqe_ns", KEY_U64, FIELD(wqe_ps), NS, 0, SECOND_NS, "200"},
    {"hca", "wqe_inline_saves_ns", KEY_U64, FIELD(wqe_inline_saves_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "wqe_overlap_ns", KEY_U64, FIELD(wqe_overlap_ps), NS, 0, SECOND_NS, "0"},
    {"hca", "tx_packet_ns", KEY_U64, FIELD(tx_packet_ps), NS, 0, SECOND_NS, "20"},
    {"hca", "rx_packet_ns", KEY_U64, FIELD(rx_packet_ps), NS, 0, SECOND_NS, "20"},
    {"hca", "dma_latency_ns", KEY_U64, FIELD(dma_latency_ps), NS, 0, SECOND_NS, "200"},
    {"hca", "dma_write_ns", KEY_U64, FIELD(dma_write_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "ack_ns", KEY_U64, FIELD(ack_ps), NS, 0, SECOND_NS, "50"},
    {"hca", "ack_engine_ns", KEY_U64, FIELD(ack_engine_ps), NS, 0, SECOND_NS, "0"},
    {"hca", "cqe_ns", KEY_U64, FIELD(cqe_ps), NS, 0, SECOND_NS, "50"},
    {"hca", "bus_mbytes_per_s", KEY_U64, FIELD(bus_bps), 8e6, 0, 1e9, "0"},
    {"hca", "dma_read_mbytes_per_s", KEY_U64, FIELD(dma_read_bps), 8e6, 0, 1e9, "0"},
    {"hca", "dma_write_mbytes_per_s", KEY_U64, FIELD(dma_write_bps), 8e6, 0, 1e9, "0"},
    {"hca", "bus_overhead_bytes", KEY_U32, FIELD(bus_overhead_bytes), 1, 0, 4096, "0"},
    {"hca", "per_bus", KEY_U32, FIELD(hcas_per_bus), 1, 1, 32, "1"},
    {"hca", "qp_cache_entries", KEY_U32, FIELD(qp_cache_entries), 1, 0, 1 << 20, "0"},
    {"hca", "qp_cache_miss_ns", KEY_U64, FIELD(qp_cache_miss_ps), NS, 0, SECOND_NS, "1000"},
    {"hca", "event_ns", KEY_U64, FIELD(event_ps), NS, 0, SECOND_NS, "3000"},
    {"hca", "reg_mr_ns", KEY_U64, FIELD(reg_mr_ps), NS, 0, SECOND_NS, "10000"},
    {"hca", "reg_mr_page_ns", KEY_U64, FIELD(reg_mr_page_ps), NS, 0, SECOND_NS, "100"},
    {"hca", "dereg_mr_ns", KEY_U64, FIELD(dereg_mr_ps), NS, 0, SECOND_NS, "5000"},
    {"hca", "dereg_mr_page_ns", KEY_U64, FIELD(dereg_mr_page_ps), NS, 0, SECOND_NS, "20"},
    {"hca", "max_inline_bytes", KEY_U32, FIELD(max_inline_bytes), 1, 0, 1024, "256"},
    {"hca", "max_sge", KEY_U32, FIELD(max_sge), 1, 1, 64, "30"},
    {"hca", "max_qp", KEY_U32, FIELD(max_qp), 1, 1, 1 << 20, "1048576"},
    {"hca", "max_cq", KEY_U32, FIELD(max_cq), 1, 1, 1 << 24, "65536"},
    {"hca", "max_mr", KEY_U32, FIELD(max_mr), 1, 1, 1 << 24, "16777216"},
    {"hca", "max_qp_wr", KEY_U32, FIELD(max_qp_wr), 1, 1, 1 << 16, "32768"},
    {"hca", "max_cqe", KEY_U32, FIELD(max_cqe), 1, 1, 1 << 22, "4194303"},
    {"hca", "max_srq_wr", KEY_U32, FIELD(max_srq_wr), 1, 1, 1 << 16, "32767"},
    {"hca", "odp", KEY_BOOL, FIELD(odp), 0, 0, 0, "false"},
    {"hca", "uc_srq", KEY_BOOL, FIELD(uc_srq), 0, 0, 0, "true"},
    {"hca", "answers_first", KEY_BOOL, FIELD(answers_first), 0, 0, 0, "false"},
    {"hca", "uc_recovers", KEY_BOOL, FIELD(uc_recovers), 0, 0, 0, "true"},
    {"hca", "max_rd_atomic", KEY_U32, FIELD(max_rd_atomic), 1, 1, 255, "16"},
    {"hca", "vendor_part_id", KEY_U32, FIELD(vendor_part_id), 1, 1, 65535, "4123"},
    {"hca", "fw_ver", KEY_TEXT, FIELD(fw_ver), 0, 0, 0, "1.0.0"},

    {"host", "memory_mbytes_per_s", KEY_U64, FIELD(memory_bps), 8e6, 0, 1e9, "0"},

    {"program", "clock_read_ns", KEY_U64, FIELD(clock_read_ps), NS, 0, SECOND_NS, "25"},
    {"program", "poll_ns", KEY_U64, FIELD(poll_ps), NS, 0, SECOND_NS, "50"},
    {"program", "poll_empty_ns", KEY_U64, FIELD(poll_empty_ps), NS, 0, SECOND_NS, "20"},
    {"program", "copy_mbytes_per_s", KEY_U32, FIELD(copy_mbytes_per_s), 1, 0, 1e6, "0"},
    {"program", "cpu_factor", KEY_U32, FIELD(cpu_factor_milli), 1000, 0, 1000, "0"},

    {"fault", "loss", KEY_REAL, FIELD(loss), 1, 0, 1, "0"},
    {"fault", "seed", KEY_U64, FIELD(seed), 1, 0, 9e15, "1"},
};

#define NUM_KEYS (sizeof keys / sizeof *keys)

/* A section that is a list of mappings: each becomes an item of an array that the model owns. */
struct list {
    const char *name;
    const struct model_key *keys;
    size_t num_keys, item_size; /* an item begins with its struct model_place */
    size_t items_at, num_at;    /* in struct model: the pointer to the items, and their number (uint32_t) */
};

#define PORT(f) MODEL_FIELD(model_port, f)

static const struct model_key port_keys[] = {
    {"ports", "node", KEY_TEXT, PORT(node), 0, 0, 0, NULL},
    {"ports", "port", KEY_U32, PORT(port), 1, 1, FABRIC_PORTS_MAX, "all"},
    {"ports", "width", KEY_WIDTH, PORT(width), 0, 0, 0, ""},
    {"ports", "speed", KEY_SPEED, PORT(speed), 0, 0, 0, ""},
    {"ports", "mtu", KEY_MTU, PORT(mtu), 0, 0, 0, ""},
    {"ports", "vls", KEY_VLS, PORT(vl_cap), 0, 0, 0, ""},
    {"ports", "vlarb_entries", KEY_U32, PORT(vlarb_cap), 1, 1, FABRIC_VLARB_MAX, ""},
    {"ports", "vl_buffer_bytes", KEY_U32, PORT(vl_buffer_bytes), 1, 4352, 1 << 30, ""},
};

#define FAULT(f) MODEL_FIELD(model_fault, f)
#define MS       1e9 /* _ps fields are written in milliseconds */
#define DAY_MS   86400e3

static const struct model_key fault_keys[] = {
    {"faults", "link", KEY_TEXT, FAULT(link), 0, 0, 0, ""},
    {"faults", "port", KEY_U32, FAULT(port), 1, 1, FABRIC_PORTS_MAX, "all"},
    {"faults", "node", KEY_TEXT, FAULT(node), 0, 0, 0, ""},
    {"faults", "host", KEY_TEXT, FAULT(host), 0, 0, 0, ""},
    {"faults", "set", KEY_TEXT, FAULT(set), 0, 0, 0, NULL},
    {"faults", "at_ms", KEY_U64, FAULT(at_ps), MS, 0, DAY_MS, "0"},
    {"faults", "for_ms", KEY_U64, FAULT(for_ps), MS, 0, DAY_MS, "0"},
};

#define FLOW(f) MODEL_FIELD(model_flow, f)

static const struct model_key flow_keys[] = {
    {"flows", "from", KEY_TEXT, FLOW(from), 0, 0, 0, NULL},
    {"flows", "from_port", KEY_U32, FLOW(from_port), 1, 1, FABRIC_PORTS_MAX, "first"},
    {"flows", "to", KEY_TEXT, FLOW(to), 0, 0, 0, NULL},
    {"flows", "to_port", KEY_U32, FLOW(to_port), 1, 1, FABRIC_PORTS_MAX, "first"},
    {"flows", "sl", KEY_U32, FLOW(sl), 1, 0, 15, "0"},
    {"flows", "path", KEY_U32, FLOW(path), 1, 0, 127, "0"},
    {"flows", "mtu", KEY_MTU, FLOW(mtu), 0, 0, 0, ""},
    {"flows", "size_bytes", KEY_U64, FLOW(size), 1, 1, 2147483648.0, "65536"},
    {"flows", "rate_mbytes_per_s", KEY_REAL, FLOW(rate_mbps), 1, 0, 1e9, "0"},
    {"flows", "at_ms", KEY_U64, FLOW(at_ps), MS, 0, DAY_MS, "0"},
    {"flows", "for_ms", KEY_U64, FLOW(for_ps), MS, 0, DAY_MS, "0"},
};

#define LIST(name, keys, type, items, num)                                                                             \
    {                                                                                                                  \
        name, keys, sizeof keys / sizeof *keys, sizeof(struct type), offsetof(struct model, items),                    \
            offsetof(struct model, num)                                                                                \
    }

static const struct list lists[] = {
    LIST("ports", port_keys, model_port, ports, num_ports),
    LIST("faults", fault_keys, model_fault, faults, num_faults),
    LIST("flows", flow_keys, model_flow, flows, num_flows),
};

#define NUM_LISTS     (sizeof lists / sizeof *lists)
#define LIST_KEYS_MAX 32
#define ITEMS_MAX     65536

struct reader {
    const char *path;
    yaml_document_t doc;
    struct parse_error *err;
    bool seen[NUM_KEYS];
    bool list_seen[NUM_LISTS];
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

/* A "key: value" line: into base, by the key of this name in the section. */
static int read_scalar(struct reader *r, void *base, const struct model_key *list, size_t num, bool *seen,
                       const char *section, const yaml_node_t *name, const yaml_node_t *value)
{
    const char *key = (const char *)name->data.scalar.value, *text = (const char *)value->data.scalar.value;
    char wanted[128];

    for (size_t i = 0; i < num; i++) {
        const struct model_key *k = &list[i];

        if (strcmp(k->section, section) || strcmp(k->name, key))
            continue;
        if (seen[i])
            return fail(r, &name->start_mark, "%s is given twice", key);
        seen[i] = true;
        if (value->type != YAML_SCALAR_NODE)
            return fail(r, &value->start_mark, "%s wants one value", key);
        if (strlen(text) != value->data.scalar.length)
            return fail(r, &value->start_mark, "%s: a zero byte", key);
        switch (model_value_set(base, k, text)) {
        case VALUE_OK:
            return 0;
        case VALUE_WRONG:
            model_value_wanted(k, wanted, sizeof wanted);
            return fail(r, &value->start_mark, "%s: \"%.40s\" is not %s", key, text, wanted);
        case VALUE_OUT_OF_RANGE:
            if (k->type == KEY_TEXT)
                return fail(r, &value->start_mark, "%s is too long: at most %zu characters", key, k->size - 1);
            return fail(r, &value->start_mark, "%s: %.40s is out of range: %.15g to %.15g", key, text, k->min, k->max);
        }
    }
    return fail(r, &name->start_mark, *section ? "unknown key \"%.40s\" in %s" : "unknown key \"%.40s\"%s", key,
                section);
}

/* The pair's name; NULL with err filled if it is no plain word. */
static const char *key_name(struct reader *r, const yaml_node_t *map, const yaml_node_pair_t *p,
                            const yaml_node_t **name, const yaml_node_t **value)
{
    *name = yaml_document_get_node(&r->doc, p->key);
    *value = yaml_document_get_node(&r->doc, p->value);
    if (*name && *value && (*name)->type == YAML_SCALAR_NODE)
        return (const char *)(*name)->data.scalar.value;
    fail(r, &map->start_mark, "a key must be a plain word");
    return NULL;
}

static int read_item(struct reader *r, void *item, const struct list *l, const yaml_node_t *map)
{
    bool seen[LIST_KEYS_MAX] = {false};
    const yaml_node_t *name, *value;

    _Static_assert(sizeof port_keys / sizeof *port_keys <= LIST_KEYS_MAX, "a list with too many keys");
    if (map->type != YAML_MAPPING_NODE)
        return fail(r, &map->start_mark, "an item of %s is a mapping: \"{key: value, ...}\"", l->name);
    *(struct model_place *)item =
        (struct model_place){(unsigned)map->start_mark.line + 1, (unsigned)map->start_mark.column + 1};
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (!key_name(r, map, p, &name, &value) ||
            read_scalar(r, item, l->keys, l->num_keys, seen, l->name, name, value))
            return -1;
    for (size_t i = 0; i < l->num_keys; i++)
        if (!seen[i] && !l->keys[i].def)
            return fail(r, &map->start_mark, "an item of %s wants a %s", l->name, l->keys[i].name);
    return 0;
}

static int read_list(struct reader *r, struct model *m, const struct list *l, const yaml_node_t *seq)
{
    void **items = (void **)((char *)m + l->items_at);
    uint32_t *num = (uint32_t *)((char *)m + l->num_at);
    size_t n;

    if (seq->type != YAML_SEQUENCE_NODE)
        return fail(r, &seq->start_mark, "%s is a list: indented \"- {key: value, ...}\" lines are wanted", l->name);
    n = (size_t)(seq->data.sequence.items.top - seq->data.sequence.items.start);
    if (n > ITEMS_MAX)
        return fail(r, &seq->start_mark, "%s: %zu items, at most %d", l->name, n, ITEMS_MAX);
    *items = calloc(n ? n : 1, l->item_size);
    if (!*items)
        return fail(r, &seq->start_mark, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const yaml_node_t *item = yaml_document_get_node(&r->doc, seq->data.sequence.items.start[i]);

        if (!item || read_item(r, (char *)*items + i * l->item_size, l, item))
            return item ? -1 : fail(r, &seq->start_mark, "%s: an item is missing", l->name);
        *num = (uint32_t)i + 1;
    }
    return 0;
}

static bool is_section(const char *name)
{
    for (size_t i = 0; i < NUM_KEYS; i++)
        if (*keys[i].section && !strcmp(keys[i].section, name))
            return true;
    return false;
}

static const struct list *find_list(const char *name)
{
    for (size_t i = 0; i < NUM_LISTS; i++)
        if (!strcmp(lists[i].name, name))
            return &lists[i];
    return NULL;
}

static int read_section(struct reader *r, struct model *m, const char *section, const yaml_node_t *map)
{
    const yaml_node_t *name, *value;

    if (map->type != YAML_MAPPING_NODE)
        return fail(r, &map->start_mark, "%s is a section: indented \"key: value\" lines are wanted", section);
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (!key_name(r, map, p, &name, &value) || read_scalar(r, m, keys, NUM_KEYS, r->seen, section, name, value))
            return -1;
    return 0;
}

static int read_top(struct reader *r, struct model *m, const yaml_node_t *map)
{
    const yaml_node_t *name, *value;

    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const char *key = key_name(r, map, p, &name, &value);
        const struct list *l = key ? find_list(key) : NULL;
        int rc;

        if (!key)
            return -1;
        if (l && r->list_seen[l - lists])
            return fail(r, &name->start_mark, "%s is given twice", key);
        if (l)
            r->list_seen[l - lists] = true;
        rc = l                 ? read_list(r, m, l, value)
             : is_section(key) ? read_section(r, m, key, value)
                               : read_scalar(r, m, keys, NUM_KEYS, r->seen, "", name, value);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_model_file(struct reader *r, struct model *m)
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
            rc = read_top(r, m, root);
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
        model_value_set(m, &keys[i], keys[i].def);
    snprintf(m->path, sizeof m->path, "%s", path ? path : "");
    if (path && read_model_file(&r, m)) {
        model_free(m);
        return NULL;
    }
    return m;
}

void model_free(struct model *m)
{
    for (size_t i = 0; m && i < NUM_LISTS; i++)
        free(*(void **)((char *)m + lists[i].items_at));
    free(m);
}

int model_error(const struct model *m, const struct model_place *at, struct parse_error *err, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(err->text, sizeof err->text, "%s:%u:%u: ", m->path, at->line, at->column);

    if (n > 0 && (size_t)n < sizeof err->text) {
        va_start(ap, fmt);
        vsnprintf(err->text + n, sizeof err->text - (size_t)n, fmt, ap);
        va_end(ap);
    }
    return -1;
}

bool model_key(size_t i, const char **section, const char **name, const char **def)
{
    const struct model_key *k = NULL;

    if (i < NUM_KEYS)
        k = &keys[i];
    i -= NUM_KEYS;
    for (size_t l = 0; !k && l < NUM_LISTS; i -= lists[l++].num_keys)
        if (i < lists[l].num_keys)
            k = &lists[l].keys[i];
    if (!k)
        return false;
    *section = k->section;
    *name = k->name;
    *def = k->def ? k->def : "required";
    return true;
}
