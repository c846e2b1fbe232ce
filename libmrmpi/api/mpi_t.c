/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tool information interface: life, control variables, enumerations, categories (MPI-4.0 sections 15.3.1 to 15.3.6
 * and 15.3.9). Control variables are the rows of the settings' table; a category is a topic of settings and counters,
 * and one category holds all the others.
 */
#include "libmrmpi/api/mpi_t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/verbs/verbs.h"

/* ---- life ---- */

MPI_FN(int, T_init_thread, (int required, int *provided))
{
    int code = MPI_SUCCESS;
    api_t_lock();
    T_CHECK(mr_config_early() == 0, MEMORY);
    api_t_users++;
    T_TELL(provided, abi_thread_levels[api_thread_level_of(required)]);
    T_LEAVE();
}

static void cvar_finalize(void);

MPI_FN(int, T_finalize, (void))
{
    T_ENTER();
    if (--api_t_users == 0) {
        cvar_finalize();
        api_t_pvar_finalize();
    }
    T_LEAVE();
}

/* ---- enumerations: the one of settings that are switched on or off ---- */

struct abi_t_enum {
    const char *name;
    int num;
    const char *items[2]; /* their values count from 0 */
};
static struct abi_t_enum truth = {"truth", 2, {"no", "yes"}};

MPI_FN(int, T_enum_get_info, (MPI_T_enum enumtype, int *num, char *name, int *name_len))
{
    T_ENTER();
    T_CHECK(enumtype == &truth, INVALID_HANDLE);
    T_TELL(num, enumtype->num);
    api_t_string(name, name_len, enumtype->name);
    T_LEAVE();
}

MPI_FN(int, T_enum_get_item, (MPI_T_enum enumtype, int index, int *value, char *name, int *name_len))
{
    T_ENTER();
    T_CHECK(enumtype == &truth, INVALID_HANDLE);
    T_CHECK(index >= 0 && index < enumtype->num, INVALID_INDEX);
    T_TELL(value, index);
    api_t_string(name, name_len, enumtype->items[index]);
    T_LEAVE();
}

/* ---- control variables ---- */

/* A switch that may change at run time is a truth value of C, and keeps the written number. */
static bool enumerated(const struct mr_setting *s)
{
    return s->kind == MR_SETTING_BOOL && !s->live;
}

_Static_assert(sizeof(unsigned long) == sizeof(size_t), "as the control variables of sizes say");
struct abi_t_cvar_handle {
    int index;
    struct abi_t_cvar_handle *next;
};
static struct abi_t_cvar_handle *cvars;

static void cvar_finalize(void)
{
    while (cvars) {
        struct abi_t_cvar_handle *h = cvars;
        cvars = h->next;
        free(h);
    }
}

/* The place in the list, of NULL if the handle is not there: freed, or never one. */
static struct abi_t_cvar_handle **find_cvar(MPI_T_cvar_handle handle)
{
    struct abi_t_cvar_handle **at = &cvars;
    while (*at && *at != handle)
        at = &(*at)->next;
    return at;
}

enum { STRING_COUNT = 1024 }; /* characters of a setting that is a string, with its end */

/* After the settings comes a read-only value: the present rails, in the order of their performance variables. */
static const struct mr_setting rails = {
    .name = "MRMPI_RAILS",
    .help = "the rails in use, in the order in which performance variables have elements for them; can only be read",
    .unit = "",
    .standard = "",
    .kind = MR_SETTING_STRING,
    .topic = MR_TOPIC_RAILS,
    .fixed = true,
};

static int num_cvars(void)
{
    return (int)mr_config_count() + 1;
}

static bool setting(int index, struct mr_setting *s)
{
    if (index == num_cvars() - 1)
        *s = rails;
    return index >= 0 && (index == num_cvars() - 1 || mr_config_setting((size_t)index, s));
}

static void name_rails(char *out)
{
    size_t used = 0;
    *out = 0;
    for (unsigned i = 0; i < mr_verbs_num_rails() && used < STRING_COUNT; i++) {
        const struct mr_rail_addr *a = &mr_verbs_rail(i)->addr;
        used += (size_t)snprintf(out + used, STRING_COUNT - used, "%s%.*s:%u", i ? "," : "", (int)sizeof(a->device),
                                 a->device, a->port);
    }
}

MPI_FN(int, T_cvar_get_num, (int *num_cvar))
{
    T_ENTER();
    T_CHECK(num_cvar, INVALID);
    *num_cvar = num_cvars();
    T_LEAVE();
}

MPI_FN(int, T_cvar_get_info,
       (int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype, MPI_T_enum *enumtype,
        char *desc, int *desc_len, int *bind, int *scope))
{
    static const MPI_Datatype types[] = {[MR_SETTING_SIZE] = MPI_UNSIGNED_LONG,
                                         [MR_SETTING_INT] = MPI_INT,
                                         [MR_SETTING_BOOL] = MPI_INT,
                                         [MR_SETTING_STRING] = MPI_CHAR};
    struct mr_setting s;
    T_ENTER();
    T_CHECK(setting(cvar_index, &s), INVALID_INDEX);
    api_t_string(name, name_len, s.name);
    T_TELL(verbosity, s.topic == MR_TOPIC_JOB        ? MPI_T_VERBOSITY_USER_BASIC
                      : s.topic == MR_TOPIC_MESSAGES ? MPI_T_VERBOSITY_TUNER_BASIC
                                                     : MPI_T_VERBOSITY_TUNER_DETAIL);
    T_TELL(datatype, types[s.kind]);
    T_TELL(enumtype, enumerated(&s) ? &truth : MPI_T_ENUM_NULL);
    api_t_string(desc, desc_len, s.help);
    T_TELL(bind, MPI_T_BIND_NO_OBJECT);
    T_TELL(scope, s.fixed ? MPI_T_SCOPE_READONLY : MPI_T_SCOPE_LOCAL);
    T_LEAVE();
}

MPI_FN(int, T_cvar_get_index, (const char *name, int *cvar_index))
{
    struct mr_setting s;
    T_ENTER();
    T_CHECK(name && cvar_index, INVALID);
    int i = 0;
    while (setting(i, &s) && strcmp(s.name, name))
        i++;
    T_CHECK(i < num_cvars(), INVALID_NAME);
    *cvar_index = i;
    T_LEAVE();
}

MPI_FN(int, T_cvar_handle_alloc, (int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count))
{
    struct mr_setting s;
    T_ENTER();
    T_CHECK(handle && count, INVALID);
    T_CHECK(setting(cvar_index, &s), INVALID_INDEX);
    struct abi_t_cvar_handle *h = malloc(sizeof(*h));
    T_CHECK(h, OUT_OF_HANDLES);
    *h = (struct abi_t_cvar_handle){cvar_index, cvars};
    cvars = h;
    *handle = h;
    *count = s.kind == MR_SETTING_STRING ? STRING_COUNT : 1;
    T_LEAVE();
}

MPI_FN(int, T_cvar_handle_free, (MPI_T_cvar_handle * handle))
{
    T_ENTER();
    T_CHECK(handle, INVALID);
    struct abi_t_cvar_handle **at = find_cvar(*handle), *h = *at;
    T_CHECK(h, INVALID_HANDLE);
    *at = h->next;
    free(h);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    T_LEAVE();
}

MPI_FN(int, T_cvar_read, (MPI_T_cvar_handle handle, void *buf))
{
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_cvar(handle), INVALID_HANDLE);
    if (handle->index == num_cvars() - 1)
        name_rails(buf);
    else
        mr_config_get((size_t)handle->index, buf, STRING_COUNT); /* a size_t is an unsigned long */
    T_LEAVE();
}

/* The value in the environment's notation, so that one place checks it. */
static bool as_text(const struct mr_setting *s, const void *buf, char *text)
{
    switch (s->kind) {
    case MR_SETTING_SIZE:
        snprintf(text, STRING_COUNT, "%lu", *(const unsigned long *)buf);
        return true;
    case MR_SETTING_INT:
    case MR_SETTING_BOOL:
        snprintf(text, STRING_COUNT, "%d", *(const int *)buf);
        return true;
    case MR_SETTING_STRING:
        if (!memchr(buf, 0, STRING_COUNT))
            return false;
        snprintf(text, STRING_COUNT, "%s", (const char *)buf);
        return true;
    }
    return false;
}

MPI_FN(int, T_cvar_write, (MPI_T_cvar_handle handle, const void *buf))
{
    struct mr_setting s;
    char text[STRING_COUNT];
    T_ENTER();
    T_CHECK(buf, INVALID);
    T_CHECK(*find_cvar(handle) && setting(handle->index, &s), INVALID_HANDLE);
    T_CHECK(!s.fixed, CVAR_SET_NEVER);
    T_CHECK(!enumerated(&s) || *(const int *)buf == 0 || *(const int *)buf == 1, INVALID);
    T_CHECK(as_text(&s, buf, text), INVALID);
    int err = mr_config_set((size_t)handle->index, text);
    T_CHECK(err != -EPERM, CVAR_SET_NEVER); /* MPI_Init has come meanwhile */
    T_CHECK(!err, INVALID);
    T_LEAVE();
}

/* ---- categories: 0 is all of it, then one for each topic ---- */

static const struct {
    const char *name, *help;
} categories[1 + MR_TOPIC_COUNT] = {
    {"mrmpi", "settings and counters of the library"},
    [1 + MR_TOPIC_JOB] = {"job", "the process and its job: checks, messages to the user, fabricd"},
    [1 + MR_TOPIC_MESSAGES] = {"messages", "protocols of messages, and those inside a node"},
    [1 + MR_TOPIC_RAILS] = {"rails", "adapters, striping, registration"},
    [1 + MR_TOPIC_CONNECTIONS] = {"connections", "queue pairs: how they connect and when they give up"},
};
enum { CATEGORIES = 1 + MR_TOPIC_COUNT };

static bool category(int index)
{
    return index >= 0 && index < CATEGORIES;
}

/* The members of a category: the first len go to indices; returns the number of all. */
static int settings_of(int cat, int len, int *indices)
{
    struct mr_setting s;
    int found = 0;
    for (int i = 0; setting(i, &s); i++)
        if ((int)s.topic == cat - 1 && found++ < len)
            indices[found - 1] = i;
    return found;
}

static int counters_of(int cat, int len, int *indices)
{
    return cat > 0 ? api_t_pvars_of((enum mr_topic)(cat - 1), len, indices) : 0;
}

MPI_FN(int, T_category_get_num, (int *num_cat))
{
    T_ENTER();
    T_CHECK(num_cat, INVALID);
    *num_cat = CATEGORIES;
    T_LEAVE();
}

MPI_FN(int, T_category_get_info,
       (int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars, int *num_pvars,
        int *num_categories))
{
    T_ENTER();
    T_CHECK(category(cat_index), INVALID_INDEX);
    api_t_string(name, name_len, categories[cat_index].name);
    api_t_string(desc, desc_len, categories[cat_index].help);
    T_TELL(num_cvars, settings_of(cat_index, 0, NULL));
    T_TELL(num_pvars, counters_of(cat_index, 0, NULL));
    T_TELL(num_categories, cat_index == 0 ? MR_TOPIC_COUNT : 0);
    T_LEAVE();
}

MPI_FN(int, T_category_get_index, (const char *name, int *cat_index))
{
    T_ENTER();
    T_CHECK(name && cat_index, INVALID);
    int i = 0;
    while (i < CATEGORIES && strcmp(categories[i].name, name))
        i++;
    T_CHECK(i < CATEGORIES, INVALID_NAME);
    *cat_index = i;
    T_LEAVE();
}

MPI_FN(int, T_category_get_cvars, (int cat_index, int len, int indices[]))
{
    T_ENTER();
    T_CHECK(category(cat_index), INVALID_INDEX);
    settings_of(cat_index, len, indices);
    T_LEAVE();
}

MPI_FN(int, T_category_get_pvars, (int cat_index, int len, int indices[]))
{
    T_ENTER();
    T_CHECK(category(cat_index), INVALID_INDEX);
    counters_of(cat_index, len, indices);
    T_LEAVE();
}

MPI_FN(int, T_category_get_categories, (int cat_index, int len, int indices[]))
{
    T_ENTER();
    T_CHECK(category(cat_index), INVALID_INDEX);
    for (int i = 0; cat_index == 0 && i < MR_TOPIC_COUNT && i < len; i++)
        indices[i] = 1 + i;
    T_LEAVE();
}

/* Nothing is ever added. */
MPI_FN(int, T_category_changed, (int *update_number))
{
    T_ENTER();
    T_CHECK(update_number, INVALID);
    *update_number = 0;
    T_LEAVE();
}

MPI_FN(int, T_category_get_num_events, (int cat_index, int *num_events))
{
    T_ENTER();
    T_CHECK(num_events, INVALID);
    T_CHECK(category(cat_index), INVALID_INDEX);
    *num_events = 0;
    T_LEAVE();
}

MPI_FN(int, T_category_get_events, (int cat_index, int len, int indices[]))
{
    T_ENTER();
    T_CHECK(category(cat_index), INVALID_INDEX);
    T_LEAVE();
}
