/* SPDX-License-Identifier: BSD-3-Clause */
/* When a link looks at its lanes again. link.c makes the look: link_dir.look. */
#include "simfab/engine/wire/look.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/wire/link.h"

/* A look at the lanes was due. A look that was put forward in the meantime does no harm. */
static void look_due(void *obj, uint64_t arg)
{
    struct link_dir *l = obj;

    if (l->kick_ps == arg)
        l->kick_ps = 0;
    l->look(l);
}

void link_look_at(struct link_dir *l, uint64_t t)
{
    if (l->kick_ps && l->kick_ps <= t)
        return;
    l->kick_ps = t;
    evq_push_quiet(&l->sim->q, t, look_due, l, t);
}
