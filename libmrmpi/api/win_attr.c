/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of windows (MPI-4.1 section 12.2.6). Their keys are in attr.c. */
#include "libmrmpi/api/api.h"

#include <string.h>

#include "libmrmpi/api/attr.h"

/* MPI's value for a key (MPI-4.1 section 12.2.6): C's form, and Fortran's form. */
struct told {
    void *pointer;
    intptr_t number;
};

static bool win_predefined(struct mr_win *w, int keyval, struct told *out)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        *out = (struct told){w->base, (intptr_t)w->base};
        return true;
    case MPI_WIN_SIZE:
        *out = (struct told){&w->size, (intptr_t)w->size};
        return true;
    case MPI_WIN_DISP_UNIT:
        w->attr.disp_unit = (int)w->disp_unit;
        *out = (struct told){&w->attr.disp_unit, w->disp_unit};
        return true;
    case MPI_WIN_CREATE_FLAVOR:
        w->attr.flavor = abi_flavor(w->flavor);
        *out = (struct told){&w->attr.flavor, w->attr.flavor};
        return true;
    case MPI_WIN_MODEL:
        w->attr.model = MPI_WIN_UNIFIED;
        *out = (struct told){&w->attr.model, MPI_WIN_UNIFIED};
        return true;
    default:
        return false;
    }
}

enum mr_err api_win_attr_set(struct mr_win *w, int keyval, void *value, enum abi_attr_kind as)
{
    struct told told;
    if (win_predefined(w, as == ABI_ATTR_POINTER ? keyval : keyval - 1, &told))
        return mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be set");
    return api_attr_set(&w->attrs, w, keyval, MR_KEYVAL_WIN, value, as);
}

enum mr_err api_win_attr_get(struct mr_win *w, int keyval, void *value, int *flag, enum abi_attr_kind as)
{
    struct told told;
    if (!win_predefined(w, as == ABI_ATTR_POINTER ? keyval : keyval - 1, &told))
        return api_attr_get(w->attrs, keyval, MR_KEYVAL_WIN, value, flag, as);
    intptr_t word = as == ABI_ATTR_POINTER ? (intptr_t)told.pointer : told.number;
    memcpy(value, &word, sizeof(word));
    *flag = 1;
    return MR_SUCCESS;
}

MPI_FN(int, Win_set_attr, (MPI_Win win, int keyval, void *value))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    err = api_win_attr_set(w, keyval, value, ABI_ATTR_POINTER);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_get_attr, (MPI_Win win, int keyval, void *value, int *flag))
{
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    NOT_NULL(value);
    NOT_NULL(flag);
    err = api_win_attr_get(w, keyval, value, flag, ABI_ATTR_POINTER);
    API_LEAVE_WIN(w);
}

MPI_FN(int, Win_delete_attr, (MPI_Win win, int keyval))
{
    struct told told;
    struct mr_win *w = NULL;
    API_ENTER();
    CHECK(api_win(win, &w));
    if (win_predefined(w, keyval, &told))
        CHECK(mr_fail(MR_ERR_KEYVAL, "the attribute belongs to MPI: it cannot be deleted"));
    err = api_attr_delete(&w->attrs, w, keyval, MR_KEYVAL_WIN);
    API_LEAVE_WIN(w);
}
