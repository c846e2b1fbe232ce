/* SPDX-License-Identifier: BSD-3-Clause */
/* Redirecting calls: relocations that name a function are done again. See the ELF specification and its processor
 * supplements. */
#include "libmrmpi/api/rebind.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
static bool is_slot(uint64_t type)
{
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
}
#elif defined(__aarch64__)
static bool is_slot(uint64_t type)
{
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}
#else
#define RELOCATIONS_UNKNOWN 1
static bool is_slot(uint64_t type)
{
    return false;
}
#endif

struct object {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * table[2]; /* calls; data */
    size_t entries[2];
    uintptr_t sealed, sealed_end; /* pages that the loader has made read-only when it was done; empty: none */
};

struct work {
    const struct rebinding *list;
    size_t n;
    bool failed;
};

/* The loader of the C library has most addresses in this table relocated, but not in every object. */
static uintptr_t address(const struct object *o, ElfW(Addr) value)
{
    return value < o->base ? o->base + value : value;
}

static void read_dynamic(struct object *o, const ElfW(Dyn) * d)
{
    for (; d->d_tag != DT_NULL; d++)
        switch (d->d_tag) {
        case DT_SYMTAB:
            o->symbols = (void *)address(o, d->d_un.d_ptr);
            break;
        case DT_STRTAB:
            o->names = (void *)address(o, d->d_un.d_ptr);
            break;
        case DT_JMPREL:
            o->table[0] = (void *)address(o, d->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            o->entries[0] = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            o->table[1] = (void *)address(o, d->d_un.d_ptr);
            break;
        case DT_RELASZ:
            o->entries[1] = d->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
}

static void read_headers(struct object *o, const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    *o = (struct object){.base = info->dlpi_addr};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type == PT_DYNAMIC)
            read_dynamic(o, (void *)(o->base + p->p_vaddr));
        if (p->p_type == PT_GNU_RELRO) {
            o->sealed = (o->base + p->p_vaddr) & ~(page - 1);
            o->sealed_end = (o->base + p->p_vaddr + p->p_memsz) & ~(page - 1);
        }
    }
}

static void *wanted(const struct work *w, const char *name)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->list[i].name, name) == 0)
            return w->list[i].to;
    return NULL;
}

static bool set_slot(const struct object *o, void **slot, void *to)
{
    uintptr_t at = (uintptr_t)slot;
    bool sealed = at >= o->sealed && at < o->sealed_end;

    if (__atomic_load_n(slot, __ATOMIC_RELAXED) == to)
        return true;
    if (sealed && mprotect((void *)o->sealed, o->sealed_end - o->sealed, PROT_READ | PROT_WRITE))
        return false;
    __atomic_store_n(slot, to, __ATOMIC_RELEASE);
    return !sealed || !mprotect((void *)o->sealed, o->sealed_end - o->sealed, PROT_READ);
}

static void rebind_table(struct work *w, const struct object *o, const ElfW(Rela) * r, size_t entries)
{
    for (const ElfW(Rela) *end = r + entries; r < end; r++) {
        const ElfW(Sym) *sym = &o->symbols[ELF64_R_SYM(r->r_info)];
        void *to;

        if (is_slot(ELF64_R_TYPE(r->r_info)) && sym->st_name && !r->r_addend &&
            (to = wanted(w, o->names + sym->st_name)))
            w->failed |= !set_slot(o, (void **)(o->base + r->r_offset), to);
    }
}

static bool contains(const struct dl_phdr_info *info, const void *p)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)p - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

/* The loader itself allocates in its own way until the C library is there: its calls are not looked at. */
static bool is_loader(const struct dl_phdr_info *info)
{
    return contains(info, (const void *)_r_debug.r_brk);
}

static int rebind_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct work *w = arg;
    struct object o;

    if (contains(info, w->list[0].to) || is_loader(info))
        return 0;
    read_headers(&o, info);
    for (int i = 0; o.symbols && o.names && i < 2; i++)
        if (o.table[i])
            rebind_table(w, &o, o.table[i], o.entries[i]);
    return 0;
}

bool rebind_all(const struct rebinding *list, size_t n)
{
    struct work w = {.list = list, .n = n};

#ifdef RELOCATIONS_UNKNOWN
    return false;
#endif
    dl_iterate_phdr(rebind_object, &w);
    return !w.failed;
}

static int read_count(struct dl_phdr_info *info, size_t size, void *count)
{
    *(unsigned long long *)count = info->dlpi_adds;
    return 1;
}

unsigned long long rebind_objects_loaded(void)
{
    unsigned long long count = 0;

    dl_iterate_phdr(read_count, &count);
    return count;
}
