/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code without tables for unwinding (assembly, programs built without tables): the object's file gives the beginnings.
 * Its symbols name functions; otherwise the section of code is read from its beginning, or from the end of the function
 * before.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simfab/tsc/image.h"

struct file {
    const uint8_t *bytes;
    size_t size;
};

static const void *part(const struct file *f, uint64_t offset, uint64_t bytes)
{
    return offset <= f->size && bytes <= f->size - offset ? f->bytes + offset : NULL;
}

static bool map_file(const char *path, struct file *f)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *map = MAP_FAILED;

    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return false;
    *f = (struct file){map, (size_t)st.st_size};
    return true;
}

/* True if this is the loaded file, which may have been replaced since. */
static const ElfW(Ehdr) * header_of(const struct file *f, const struct image *image)
{
    const ElfW(Ehdr) *e = part(f, 0, sizeof *e);
    const void *phdr;

    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
        e->e_phentsize != sizeof(ElfW(Phdr)) || e->e_phnum != image->num_phdrs || e->e_shentsize != sizeof(ElfW(Shdr)))
        return NULL;
    phdr = part(f, e->e_phoff, (uint64_t)e->e_phnum * sizeof(ElfW(Phdr)));
    return phdr && !memcmp(phdr, image->phdr, image->num_phdrs * sizeof(ElfW(Phdr))) ? e : NULL;
}

static bool find_symbol(const struct file *f, const ElfW(Shdr) * table, ElfW(Addr) at, struct span *function)
{
    const ElfW(Sym) *s = part(f, table->sh_offset, table->sh_size);

    for (size_t n = s ? table->sh_size / sizeof *s : 0; n--; s++)
        if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_value <= at && at - s->st_value < s->st_size) {
            *function = (struct span){s->st_value, s->st_value + s->st_size};
            return true;
        }
    return false;
}

static bool in_section(const ElfW(Shdr) * s, ElfW(Addr) at)
{
    return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_EXECINSTR) && s->sh_addr <= at &&
           at - s->sh_addr < s->sh_size;
}

/* All addresses are the object's own. */
static bool search(const struct file *f, const ElfW(Ehdr) * e, ElfW(Addr) at, ElfW(Addr) prev_end,
                   struct span *function)
{
    const ElfW(Shdr) *s = part(f, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s);

    for (int i = 0; s && i < e->e_shnum; i++)
        if ((s[i].sh_type == SHT_SYMTAB || s[i].sh_type == SHT_DYNSYM) && find_symbol(f, &s[i], at, function))
            return true;
    for (int i = 0; s && i < e->e_shnum; i++)
        if (in_section(&s[i], at)) {
            *function = (struct span){s[i].sh_addr, s[i].sh_addr + s[i].sh_size};
            if (function->from < prev_end && prev_end <= at)
                function->from = prev_end;
            return true;
        }
    return false;
}

bool symbols_find(const struct image *image, uintptr_t at, uintptr_t prev_end, struct span *function)
{
    const ElfW(Ehdr) * e;
    struct file f;
    bool found;

    if (!map_file(image->path, &f))
        return false;
    e = header_of(&f, image);
    found = e && search(&f, e, at - image->base, prev_end ? prev_end - image->base : 0, function);
    munmap((void *)f.bytes, f.size);
    if (!found)
        return false;
    function->from += image->base;
    function->to += image->base;
    return image_holds(image, function->from, function->to - function->from);
}
