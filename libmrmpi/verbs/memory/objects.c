/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/verbs/memory/objects.h"

#include <stdio.h>
#include <string.h>

static void set_name(char name[MR_ALLOCATOR_NAME], const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(name, MR_ALLOCATOR_NAME, "%s", !*path ? "the program" : slash ? slash + 1 : path);
}

/* Loaders of some versions have a malloc for the time before the C library is there. */
void mr_allocators_add(struct mr_allocators *a, const struct mr_image *m, const char *path)
{
    bool c_library;

    if (!mr_image_defines(m, "malloc") || mr_image_defines(m, "_r_debug"))
        return;
    c_library = mr_image_defines(m, "gnu_get_libc_version");
    if (!*a->front) {
        set_name(a->front, path);
        a->c_library = c_library;
    }
    if (!c_library && !*a->unseen && mr_image_unmaps(m))
        set_name(a->unseen, path);
}

static int add_loaded(struct dl_phdr_info *info, size_t size, void *allocators)
{
    struct mr_image m = mr_image_loaded(info);

    mr_allocators_add(allocators, &m, info->dlpi_name ? info->dlpi_name : "");
    return 0;
}

void mr_objects_find_allocators(struct mr_allocators *out)
{
    *out = (struct mr_allocators){.c_library = false};
    dl_iterate_phdr(add_loaded, out);
}

static int read_count(struct dl_phdr_info *info, size_t size, void *count)
{
    *(struct mr_objects_count *)count = (struct mr_objects_count){info->dlpi_adds, info->dlpi_subs};
    return 1;
}

struct mr_objects_count mr_objects_count(void)
{
    struct mr_objects_count count = {0, 0};

    dl_iterate_phdr(read_count, &count);
    return count;
}

struct range {
    uintptr_t start, end;
    bool after_program; /* the program itself comes first and stays */
};

static int is_within(struct dl_phdr_info *info, size_t size, void *range)
{
    struct range *r = range;
    struct mr_image m = mr_image_loaded(info);
    bool library = r->after_program;

    r->after_program = true;
    return library && mr_image_contains(&m, r->start, r->end);
}

bool mr_objects_have(uintptr_t start, uintptr_t end)
{
    struct range r = {start, end, false};

    return dl_iterate_phdr(is_within, &r);
}
