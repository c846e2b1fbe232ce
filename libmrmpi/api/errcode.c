/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error classes, codes and strings (MPI-4.0 sections 9.4 and 9.5): the standard's, and the program's additions, which
 * stay until the process ends, because they may be used after MPI_Finalize. Everything is allowed at any time.
 */
#include "libmrmpi/api/errcode.h"

#include <stdio.h>
#include <stdlib.h>

#include "libmrmpi/api/api.h"

/* Classes that are no errors of core/. */
static const struct {
    int class;
    const char *name, *text;
} others[] = {
#define E(id, text)                                                                                                    \
    {                                                                                                                  \
        MPI_ERR_##id, "MPI_ERR_" #id, text                                                                             \
    }
    E(PORT, "invalid port"),
    E(SERVICE, "invalid service"),
    E(SPAWN, "process not started"),
    E(PROC_ABORTED, "a process was aborted"),
    E(VALUE_TOO_LARGE, "value does not fit"),
    E(ERRHANDLER, "invalid error handler"), /* programs built with an mpi.h before MPI-4.1 do not know it: ARG */
#undef E
/* of the tool information interface, without error handlers */
#define E(id, text)                                                                                                    \
    {                                                                                                                  \
        MPI_T_ERR_##id, "MPI_T_ERR_" #id, text                                                                         \
    }
    E(MEMORY, "out of memory"),
    E(NOT_INITIALIZED, "the tool interface is not initialized"),
    E(CANNOT_INIT, "the tool interface cannot be initialized now"),
    E(INVALID_INDEX, "invalid index"),
    E(INVALID_ITEM, "invalid item of an enumeration"),
    E(INVALID_HANDLE, "invalid handle of the tool interface"),
    E(OUT_OF_HANDLES, "no more handles"),
    E(OUT_OF_SESSIONS, "no more sessions"),
    E(INVALID_SESSION, "invalid session of the tool interface"),
    E(CVAR_SET_NOT_NOW, "the control variable cannot be set at this moment"),
    E(CVAR_SET_NEVER, "the control variable cannot be set any more"),
    E(PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    E(PVAR_NO_WRITE, "the performance variable cannot be written"),
    E(PVAR_NO_ATOMIC, "the performance variable cannot be read and reset in one"),
    E(INVALID_NAME, "there is no variable of this name"),
    E(INVALID, "invalid use of the tool interface"),
    E(NOT_SUPPORTED, "not supported by the tool interface"),
    E(NOT_ACCESSIBLE, "not accessible in the tool interface"),
#undef E
};

static bool core_class(int class, enum mr_err *e)
{
    for (int i = 0; i <= MR_ERR_LAST; i++) {
        *e = (enum mr_err)i;
        if (abi_error_of[i] == class)
            return true;
    }
    return false;
}

/* The name and the text of one of MPI's classes; false: none of them. */
static bool standard_class(int class, const char **name, const char **text)
{
    enum mr_err e;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].class == class) {
            *name = others[i].name;
            *text = others[i].text;
            return true;
        }
    }
    if (core_class(class, &e)) {
        *name = abi_error_name(e);
        *text = mr_err_text(e);
        return true;
    }
    return false;
}

/* ---- what the program adds: number ABI_USER_CLASS + i is item i; NULL: deleted, to be used again ---- */

static struct {
    int count, lowest_free;
    struct user_code {
        int class;
        char text[MPI_MAX_ERROR_STRING];
    } * *items;
} added;

int api_last_used_code(void)
{
    return added.count ? ABI_USER_CLASS + added.count - 1 : MPI_ERR_LASTCODE;
}

static struct user_code *user_code(int code)
{
    long i = (long)code - ABI_USER_CLASS;
    return i >= 0 && i < added.count ? added.items[i] : NULL;
}

void api_note_callback_code(int code)
{
    const char *name, *text;
    if (user_code(code) || (code != MPI_SUCCESS && standard_class(code, &name, &text)))
        api_callback_failed(code);
}

static enum mr_err add_code(int class, int *code)
{
    int i = added.lowest_free;
    while (i < added.count && added.items[i])
        i++;
    if (i == added.count) {
        struct user_code **items = realloc(added.items, ((size_t)i + 1) * sizeof(*items));
        if (!items)
            return MR_ERR_NO_MEM;
        added.items = items;
        added.items[added.count++] = NULL;
    }
    struct user_code *u = calloc(1, sizeof(*u));
    if (!u)
        return MR_ERR_NO_MEM;
    *code = ABI_USER_CLASS + i;
    u->class = class ? class : *code;
    added.items[i] = u;
    added.lowest_free = i + 1;
    return MR_SUCCESS;
}

static bool is_class(int class)
{
    const char *name, *text;
    const struct user_code *u = user_code(class);
    return u ? u->class == class : standard_class(class, &name, &text);
}

static enum mr_err needs_user_code(int code)
{
    return user_code(code) ? MR_SUCCESS
                           : mr_fail(MR_ERR_ARG, "%d is not an error class or code that the program added", code);
}

MPI_FN(int, Add_error_class, (int *errorclass))
{
    API_ENTER_ANY();
    NOT_NULL(errorclass);
    err = add_code(0, errorclass);
    API_LEAVE_ANY();
}

MPI_FN(int, Add_error_code, (int errorclass, int *errorcode))
{
    API_ENTER_ANY();
    NOT_NULL(errorcode);
    if (!is_class(errorclass))
        CHECK(mr_fail(MR_ERR_ARG, "%d is not an error class", errorclass));
    err = add_code(errorclass, errorcode);
    API_LEAVE_ANY();
}

MPI_FN(int, Add_error_string, (int errorcode, const char *string))
{
    API_ENTER_ANY();
    NOT_NULL(string);
    CHECK(needs_user_code(errorcode));
    struct user_code *u = user_code(errorcode);
    snprintf(u->text, sizeof(u->text), "%s", string);
    API_LEAVE_ANY();
}

static void forget_code(int code)
{
    int i = code - ABI_USER_CLASS;
    free(added.items[i]);
    added.items[i] = NULL;
    if (i < added.lowest_free)
        added.lowest_free = i;
}

enum mr_err api_remove_class(int class)
{
    enum mr_err err = needs_user_code(class);
    if (err)
        return err;
    if (user_code(class)->class != class)
        return mr_fail(MR_ERR_ARG, "%d is an error code, not a class", class);
    for (int i = 0; i < added.count; i++)
        if (added.items[i] && added.items[i]->class == class && ABI_USER_CLASS + i != class)
            return mr_fail(MR_ERR_ARG, "%d still has the code %d", class, ABI_USER_CLASS + i);
    forget_code(class);
    return MR_SUCCESS;
}

enum mr_err api_remove_code(int code)
{
    enum mr_err err = needs_user_code(code);
    if (err)
        return err;
    if (user_code(code)->class == code)
        return mr_fail(MR_ERR_ARG, "%d is an error class, not a code", code);
    forget_code(code);
    return MR_SUCCESS;
}

enum mr_err api_remove_string(int code)
{
    enum mr_err err = needs_user_code(code);
    if (!err)
        user_code(code)->text[0] = '\0';
    return err;
}

#define REMOVE(name, what, remove)                                                                                     \
    MPI_FN(int, name, (int what))                                                                                      \
    {                                                                                                                  \
        API_ENTER_ANY();                                                                                               \
        err = remove(what);                                                                                            \
        API_LEAVE_ANY();                                                                                               \
    }
REMOVE(Remove_error_class, errorclass, api_remove_class)
REMOVE(Remove_error_code, errorcode, api_remove_code)
REMOVE(Remove_error_string, errorcode, api_remove_string)

/* ---- asking ---- */

MPI_FN(int, Error_class, (int errorcode, int *errorclass))
{
    API_ENTER_ANY();
    NOT_NULL(errorclass);
    const struct user_code *u = user_code(errorcode);
    *errorclass = u ? u->class : is_class(errorcode) ? errorcode : MPI_ERR_UNKNOWN;
    API_LEAVE_ANY();
}

MPI_FN(int, Error_string, (int errorcode, char *string, int *resultlen))
{
    const char *name, *what;
    char text[128];
    API_ENTER_ANY();
    NOT_NULL(string);
    NOT_NULL(resultlen);
    const struct user_code *u = user_code(errorcode);
    const char *own = u ? u->text : api_last_error(errorcode);
    if (own) {
        api_string(string, MPI_MAX_ERROR_STRING, own, resultlen);
    } else {
        if (standard_class(errorcode, &name, &what))
            snprintf(text, sizeof(text), "%s (%s)", what, name);
        else
            snprintf(text, sizeof(text), "%d is not an error code", errorcode);
        api_string(string, MPI_MAX_ERROR_STRING, text, resultlen);
    }
    API_LEAVE_ANY();
}
