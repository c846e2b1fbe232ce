/* SPDX-License-Identifier: BSD-3-Clause */
/* See the ELF specification and its processor supplements. */
#include "libmrmpi/verbs/memory/image.h"

#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

struct mr_image mr_image_loaded(const struct dl_phdr_info *info)
{
    return (struct mr_image){.base = info->dlpi_addr, .headers = info->dlpi_phdr, .num_headers = info->dlpi_phnum};
}

bool mr_image_of_file(const void *file, size_t bytes, struct mr_image *out)
{
    const ElfW(Ehdr) *h = file;

    if (bytes < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_machine != MACHINE || h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phoff > bytes ||
        h->e_phnum > (bytes - h->e_phoff) / sizeof(ElfW(Phdr)))
        return false;
    *out = (struct mr_image){.base = (uintptr_t)file,
                             .file_bytes = bytes,
                             .headers = (const void *)((uintptr_t)file + h->e_phoff),
                             .num_headers = h->e_phnum};
    return true;
}

bool mr_image_contains(const struct mr_image *m, uintptr_t start, uintptr_t end)
{
    for (int i = 0; i < m->num_headers; i++) {
        const ElfW(Phdr) *p = &m->headers[i];

        if (p->p_type == PT_LOAD && start < m->base + p->p_vaddr + p->p_memsz && end > m->base + p->p_vaddr)
            return true;
    }
    return false;
}

/* ---- places in an image ------------------------------------------------------------------------------------------ */

struct span {
    const uint8_t *at; /* NULL: not there */
    size_t bytes;
};

/* From an address as the image has it to the end of its segment. */
static struct span locate(const struct mr_image *m, ElfW(Addr) vaddr)
{
    for (int i = 0; i < m->num_headers; i++) {
        const ElfW(Phdr) *p = &m->headers[i];
        ElfW(Xword) in = vaddr - p->p_vaddr;

        if (p->p_type != PT_LOAD || in >= p->p_filesz)
            continue;
        if (!m->file_bytes)
            return (struct span){(const uint8_t *)(m->base + vaddr), p->p_filesz - in};
        if (p->p_offset > m->file_bytes || p->p_filesz > m->file_bytes - p->p_offset)
            break;
        return (struct span){(const uint8_t *)(m->base + p->p_offset + in), p->p_filesz - in};
    }
    return (struct span){NULL, 0};
}

/* The loader of the C library has most addresses of loaded images' tables relocated, but not all. */
static struct span locate_pointer(const struct mr_image *m, ElfW(Addr) value)
{
    return locate(m, !m->file_bytes && value >= m->base ? value - m->base : value);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

struct symbols {
    struct span symbols, names, gnu_hash, hash;
};

static void read_dynamic(const struct mr_image *m, struct span table, struct symbols *out)
{
    const ElfW(Dyn) *d = (const void *)table.at;

    for (size_t i = 0; i < table.bytes / sizeof *d && d[i].d_tag != DT_NULL; i++)
        switch (d[i].d_tag) {
        case DT_SYMTAB:
            out->symbols = locate_pointer(m, d[i].d_un.d_ptr);
            break;
        case DT_STRTAB:
            out->names = locate_pointer(m, d[i].d_un.d_ptr);
            break;
        case DT_GNU_HASH:
            out->gnu_hash = locate_pointer(m, d[i].d_un.d_ptr);
            break;
        case DT_HASH:
            out->hash = locate_pointer(m, d[i].d_un.d_ptr);
            break;
        default:
            break;
        }
}

static bool is_definition(const struct symbols *s, size_t i, const char *name)
{
    const ElfW(Sym) *sym = (const void *)s->symbols.at;
    size_t len = strlen(name) + 1;

    if (i >= s->symbols.bytes / sizeof *sym)
        return false;
    sym += i;
    return sym->st_shndx != SHN_UNDEF && sym->st_name < s->names.bytes && s->names.bytes - sym->st_name >= len &&
           !memcmp(s->names.at + sym->st_name, name, len);
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

/* Words: buckets, first symbol, filter words (of two words each), shift; filter, buckets, chains. */
static bool in_gnu_hash(const struct symbols *s, const char *name)
{
    const uint32_t *w = (const void *)s->gnu_hash.at, hash = gnu_hash_of(name);
    size_t words = s->gnu_hash.bytes / sizeof *w, buckets, chains;

    if (words < 4 || !w[0])
        return false;
    buckets = 4 + 2 * (size_t)w[2];
    chains = buckets + w[0];
    if (chains > words)
        return false;
    for (size_t i = w[buckets + hash % w[0]]; i >= w[1] && i && chains + i - w[1] < words; i++) {
        uint32_t entry = w[chains + i - w[1]];

        if ((entry | 1) == (hash | 1) && is_definition(s, i, name))
            return true;
        if (entry & 1)
            return false;
    }
    return false;
}

/* Words: buckets, symbols; buckets, chains. */
static bool in_hash(const struct symbols *s, const char *name)
{
    const uint32_t *w = (const void *)s->hash.at;
    size_t words = s->hash.bytes / sizeof *w;

    for (size_t i = 1; words > 2 && i < w[1]; i++)
        if (is_definition(s, i, name))
            return true;
    return false;
}

bool mr_image_defines(const struct mr_image *m, const char *function)
{
    struct symbols s = {.symbols = {NULL, 0}};

    for (int i = 0; i < m->num_headers; i++)
        if (m->headers[i].p_type == PT_DYNAMIC)
            read_dynamic(m, locate(m, m->headers[i].p_vaddr), &s);
    if (!s.symbols.at || !s.names.at)
        return false;
    return s.gnu_hash.at ? in_gnu_hash(&s, function) : s.hash.at && in_hash(&s, function);
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

#define WITHIN 32u /* bytes before the instruction that loads its number */

static bool unmaps(uint32_t number)
{
    return number == SYS_munmap || number == SYS_mmap || number == SYS_mremap || number == SYS_madvise ||
           number == SYS_shmdt || number == SYS_brk;
}

#if defined(__x86_64__)
static bool calls_to_unmap(struct span code)
{
    const uint8_t *end = code.at + code.bytes, *at = code.at;

    while ((at = memmem(at, (size_t)(end - at), "\x0f\x05", 2))) { /* syscall */
        const uint8_t *from = (size_t)(at - code.at) < WITHIN ? code.at : at - WITHIN;

        for (const uint8_t *p = from; p + 5 <= at; p++) {
            uint32_t number;

            memcpy(&number, p + 1, 4);
            if (*p == 0xb8 && unmaps(number)) /* mov $number, %eax */
                return true;
        }
        at += 2;
    }
    return false;
}
#elif defined(__aarch64__)
static bool calls_to_unmap(struct span code)
{
    const uint32_t *w = (const void *)code.at;

    for (size_t i = 0; i < code.bytes / 4; i++)
        for (size_t k = 1; w[i] == 0xd4000001 && k <= WITHIN / 4 && k <= i; k++)         /* svc 0 */
            if ((w[i - k] & 0x7fe0001f) == 0x52800008 && unmaps(w[i - k] >> 5 & 0xffff)) /* mov x8, number */
                return true;
    return false;
}
#else
static bool calls_to_unmap(struct span code)
{
    return true;
}
#endif

bool mr_image_unmaps(const struct mr_image *m)
{
    for (int i = 0; i < m->num_headers; i++) {
        const ElfW(Phdr) *p = &m->headers[i];
        struct span code = p->p_type == PT_LOAD && p->p_flags & PF_X ? locate(m, p->p_vaddr) : (struct span){NULL, 0};

        if (code.at && calls_to_unmap(code))
            return true;
    }
    return false;
}
