/* SPDX-License-Identifier: BSD-3-Clause */
/* Assigned service levels become free again when nobody can still use them. */
#include "fabricd/daemon.h"
#include "fabricd/subscribers.h"

#include <errno.h>
#include <string.h>

static bool in_use(struct daemon *d, const struct lock_class *c, struct text *out)
{
    for (unsigned i = 0; i < d->jobs.n; i++)
        if (!strcmp(d->jobs.job[i]->class_name, c->name)) {
            text_printf(out, "job %s has class '%s'; fabricctl job set or job del first\n", d->jobs.job[i]->id,
                        c->name);
            return true;
        }
    unsigned processes = subscribers_with_levels(d, lock_levels(c));
    if (processes)
        text_printf(out, "%u processes of this host were given service levels of class '%s' and may still use them\n",
                    processes, c->name);
    return processes > 0;
}

int daemon_forget(struct daemon *d, const char *class_name, uint64_t client, struct text *out)
{
    const struct lock_class *c = lock_find(&d->current.lock, class_name);
    if (!c || (d->applying[0] && d->task_runs)) {
        text_printf(out, c ? "a policy is being put in force; try again\n" : "no class '%s' has service levels\n",
                    class_name);
        return c ? -EBUSY : -ENOENT;
    }
    return in_use(d, c, out) ? -EPERM : daemon_forget_levels(d, class_name, client);
}
