/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of a model: each item becomes the words of a command, so there is one grammar. */
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"

/* The item as the words of a command. False: not exactly one target. */
static bool item_words(const struct model_fault *m, struct text *t)
{
    const char *target = *m->link ? "link" : *m->node ? "node" : "host";
    const char *name = *m->link ? m->link : *m->node ? m->node : m->host;

    if (!!*m->link + !!*m->node + !!*m->host != 1)
        return false;
    text_say(t, "%s\n%s", target, name);
    if (m->port)
        text_say(t, "\n%u", m->port);
    for (const char *p = m->set + strspn(m->set, " "); *p; p += strspn(p, " ")) {
        int n = (int)strcspn(p, " ");

        text_say(t, "\n%.*s", n, p);
        p += n;
    }
    return true;
}

static bool item_parse(const struct sim *s, const struct model_fault *m, struct fault_cmd *c, struct text *wrong)
{
    struct text line = {0};
    bool ok = item_words(m, &line);

    if (!ok) {
        text_say(wrong, "an item of faults has one of link, node and host");
    } else if (m->port && !*m->link) {
        text_say(wrong, "port goes with link only");
        ok = false;
    } else {
        ok = fault_parse(line.buf, c, wrong) && fault_check(s, c, wrong);
    }
    text_free(&line);
    if (ok && (c->has & (FAULT_AT | FAULT_AFTER | FAULT_FOR))) {
        text_say(wrong, "use the keys at_ms and for_ms instead of at=, after= and for=");
        ok = false;
    } else if (ok && m->for_ps && (c->has & FAULT_UP)) {
        text_say(wrong, "for_ms says how long a fault lasts: it goes with no repair");
        ok = false;
    }
    return ok;
}

static int init_one(struct sim *s, const struct model_fault *m, struct parse_error *err)
{
    struct text wrong = {0};
    struct fault_cmd c;

    if (!item_parse(s, m, &c, &wrong)) {
        model_error(s->model, &m->at, err, "%s", wrong.buf);
        text_free(&wrong);
        return -1;
    }
    if (m->for_ps) {
        c.has |= FAULT_FOR;
        c.for_ps = m->for_ps;
    }
    c.has |= FAULT_AT;
    c.when_ps = m->at_ps;
    fault_apply_in_time(s, &c);
    return 0;
}

int faults_init(struct sim *s, struct parse_error *err)
{
    s->faults = xcalloc(1, sizeof *s->faults);
    for (uint32_t i = 0; i < s->model->num_faults; i++)
        if (init_one(s, &s->model->faults[i], err))
            return -1;
    return 0;
}
