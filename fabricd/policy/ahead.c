/* SPDX-License-Identifier: BSD-3-Clause */
/* Ahead budgets: see ahead.h. */
#include "fabricd/policy/ahead.h"

void ahead_budgets(const struct qos_tables *t, double percent[POLICY_CLASSES_MAX])
{
    double all = 0, fit = 1;
    bool alone = t->num_classes < 2;
    for (unsigned i = 0; i < t->num_classes; i++) {
        double rest = 1 - t->classes[i].share / 100;
        percent[i] = 0;
        if (!alone && t->classes[i].num_ahead)
            percent[i] = rest * AHEAD_MOST > AHEAD_POINTS ? AHEAD_POINTS / rest : AHEAD_MOST;
        all += percent[i];
    }
    for (unsigned i = 0; i < t->num_classes; i++) {
        double off = t->classes[i].share / 100 * (all - percent[i]);
        if (off * fit > AHEAD_POINTS)
            fit = AHEAD_POINTS / off;
    }
    for (unsigned i = 0; i < t->num_classes; i++)
        percent[i] *= fit / (t->oversubscription ? t->oversubscription : 1);
}

uint16_t ahead_part(double percent, unsigned levels, unsigned sharers)
{
    if (!levels || percent <= 0)
        return 0;
    double part = percent / 100 * FD_AHEAD_ALL / levels / (sharers ? sharers : 1);
    return part < 1 ? 1 : part > UINT16_MAX ? UINT16_MAX : (uint16_t)part;
}
