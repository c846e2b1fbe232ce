/* SPDX-License-Identifier: BSD-3-Clause */
/* Data representations: see datarep.h. */
#include "libmrmpi/io/datarep.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

enum { UNKNOWN = -1 };

struct mr_datarep {
    const char *name;
    const struct mr_file_form *form; /* NULL: as in memory */
    struct mr_datarep *next;
    /* of a program: */
    struct mr_file_form own_form;
    struct mr_datarep_calls calls;
    int64_t size[MR_NUM_BASICS];
    char own_name[];
};

static struct mr_datarep external32 = {.name = "external32", .form = &mr_external32};
static struct mr_datarep internal = {.name = "internal", .next = &external32};
static struct mr_datarep native = {.name = "native", .next = &internal};
const struct mr_datarep *const mr_datarep_native = &native;

/* ---- the list ---------------------------------------------------------------------------------------------------- */

const struct mr_datarep *mr_datarep_find(const char *name)
{
    const struct mr_datarep *d = &native;

    while (d && strcmp(d->name, name))
        d = d->next;
    return d;
}

static size_t measured_size(const struct mr_file_form *form, int basic)
{
    const struct mr_datarep *d = container_of(form, struct mr_datarep, own_form);

    return (size_t)d->size[basic];
}

enum mr_err mr_datarep_register(const char *name, const struct mr_datarep_calls *calls)
{
    const size_t len = strlen(name) + 1;
    struct mr_datarep *d;

    if (mr_datarep_find(name))
        return mr_fail(MR_ERR_DUP_DATAREP, "there is a data representation \"%s\" already", name);
    d = calloc(1, sizeof(*d) + len);
    if (!d)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the data representation \"%s\"", name);
    memcpy(d->own_name, name, len);
    d->name = d->own_name;
    d->calls = *calls;
    d->own_form.size = measured_size;
    d->form = calls->read || calls->write ? &d->own_form : NULL;
    for (int i = 0; i < MR_NUM_BASICS; i++)
        d->size[i] = mr_type_basic[i].size ? UNKNOWN : 0;
    d->next = external32.next;
    external32.next = d;
    return MR_SUCCESS;
}

void mr_datarep_finalize(void)
{
    struct mr_datarep *next;

    for (struct mr_datarep *d = external32.next; d; d = next) {
        next = d->next;
        free(d);
    }
    external32.next = NULL;
}

const char *mr_datarep_name(const struct mr_datarep *d)
{
    return d->name;
}

uint64_t mr_datarep_number(const struct mr_datarep *d)
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (const char *c = d->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    return hash;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static bool is_of_program(const struct mr_datarep *d)
{
    return d->form == &d->own_form;
}

static bool measure_basic(void *arg, int basic)
{
    struct mr_datarep *d = arg;
    int64_t bytes = UNKNOWN;
    int code;

    if (d->size[basic] != UNKNOWN)
        return true;
    code = d->calls.call_extent(&d->calls, &mr_type_basic[basic], &bytes);
    if (code)
        mr_error_detail("the extent function of \"%s\" gives error %d for %s", d->name, code,
                        mr_type_name(&mr_type_basic[basic]));
    else if (bytes < 0)
        mr_error_detail("the extent function of \"%s\" gives %s %lld bytes", d->name,
                        mr_type_name(&mr_type_basic[basic]), (long long)bytes);
    else
        d->size[basic] = bytes;
    return d->size[basic] != UNKNOWN;
}

enum mr_err mr_datarep_measure(const struct mr_datarep *d, const struct mr_type *t)
{
    if (!is_of_program(d) || mr_type_all_basics(t, measure_basic, (void *)(uintptr_t)d))
        return MR_SUCCESS;
    return MR_ERR_CONVERSION;
}

size_t mr_datarep_size(const struct mr_datarep *d, const struct mr_type *t)
{
    return d->form ? mr_file_form_size(d->form, t) : t->size;
}

struct mr_type *mr_datarep_type(const struct mr_datarep *d, struct mr_type *t)
{
    return d->form ? mr_file_form_type(d->form, t) : mr_type_get(t);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

bool mr_datarep_converts(const struct mr_datarep *d)
{
    return d->form;
}

/* Without a function for this direction: the standard's native representation. */
static enum mr_err keep(const struct mr_datarep *d, bool write, const struct mr_type *t)
{
    if (mr_file_form_keeps(d->form, t))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_CONVERSION, "\"%s\" has no function for %s, and other sizes than memory", d->name,
                   write ? "writing" : "reading");
}

/* In calls of as many whole elements as a function's count can tell. */
static enum mr_err call_program(const struct mr_datarep *d, bool write, void *buf, size_t count, struct mr_type *t,
                                char *file)
{
    const size_t size = mr_datarep_size(d, t), per_call = (size_t)d->calls.items_most / t->elements;

    if (!per_call)
        return mr_fail(MR_ERR_CONVERSION,
                       "a datatype of %zu entries is too long for \"%s\": use MPI_Register_datarep_c", t->elements,
                       d->name);
    for (size_t done = 0, n; done < count; done += n) {
        int code;

        n = count - done < per_call ? count - done : per_call;
        code = d->calls.call_convert(&d->calls, write, buf, t, (int64_t)(n * t->elements), file + done * size,
                                     (int64_t)(done * t->elements));
        if (code)
            return mr_fail(MR_ERR_CONVERSION, "the function of \"%s\" for %s gives error %d", d->name,
                           write ? "writing" : "reading", code);
    }
    return MR_SUCCESS;
}

enum mr_err mr_datarep_to_file(const struct mr_datarep *d, const void *buf, size_t count, struct mr_type *t, char *file)
{
    enum mr_err err = MR_SUCCESS;

    if (!t->size)
        return MR_SUCCESS;
    if (!is_of_program(d))
        mr_external_pack(buf, count, t, file);
    else if (d->calls.write)
        return call_program(d, true, (void *)(uintptr_t)buf, count, t, file);
    else if (!(err = keep(d, true, t)))
        mr_type_pack(buf, count, t, 0, file, count * t->size);
    return err;
}

enum mr_err mr_datarep_from_file(const struct mr_datarep *d, void *buf, size_t count, struct mr_type *t,
                                 const char *file)
{
    enum mr_err err = MR_SUCCESS;

    if (!t->size)
        return MR_SUCCESS;
    if (!is_of_program(d))
        mr_external_unpack(buf, count, t, file);
    else if (d->calls.read)
        return call_program(d, false, buf, count, t, (char *)(uintptr_t)file);
    else if (!(err = keep(d, false, t)))
        mr_type_unpack(buf, count, t, 0, file, count * t->size);
    return err;
}
