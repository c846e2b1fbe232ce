/* SPDX-License-Identifier: BSD-3-Clause */
/* Service levels that were given out become free again, when nobody can still use them. */
#include "fabricd/daemon.h"
#include "fabricd/log.h"
#include "fabricd/store.h"
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

int daemon_forget(struct daemon *d, const char *class_name, struct text *out)
{
    struct policy_lock lock = d->current.lock;
    const struct lock_class *c = lock_find(&lock, class_name);
    struct diag diag = {.file = "policy"};
    struct qos_tables tables;
    if (!c || (d->applying[0] && d->task_runs)) {
        text_printf(out, c ? "a policy is being put in force; try again\n" : "no class '%s' has service levels\n",
                    class_name);
        return c ? -EBUSY : -ENOENT;
    }
    if (in_use(d, c, out))
        return -EPERM;
    if (!lock_forget(&lock, d->current.valid ? &d->current.policy : NULL, class_name)) {
        text_printf(out, "class '%s' is in the policy in force and uses all its service levels\n", class_name);
        return -EPERM;
    }
    struct policy_lock before = d->current.lock;
    d->current.lock = lock;
    int rc = store_save_lock(&d->conf, &d->current);
    if (rc) { /* the next start would not know of it */
        d->current.lock = before;
        text_printf(out, "%s: %s: the service levels stay as they are\n", d->conf.state, strerror(-rc));
        return rc;
    }
    log_info("the service levels of class %s are free", class_name);
    if (d->current.valid && policy_compile(&d->current.policy, &lock, &tables, &diag) &&
        !tables_equal(&tables, &d->current.tables)) {
        d->current.tables = tables;
        text_printf(out, "the ports still have them with the class's bulk: fabricctl policy apply changes that\n");
        daemon_verify(d, 0);
    }
    text_free(&diag.out);
    return 0;
}
