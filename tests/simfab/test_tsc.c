/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simfab/tsc: instructions that read the time stamp counter are found in machine code, and nothing else is; and bytes
 * of code are replaced. The machine code is this program's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simfab/tsc/code.h"
#include "simfab/tsc/image.h"
#include "simfab/tsc/tsc.h"
#include "simfab/tsc/write.h"
#include "tests/check.h"

/* Code with tables for unwinding; code with only a symbol; and code without either, behind it in its section. */
__asm__(".pushsection .text.tsc_test, \"ax\", @progbits\n"
        ".globl with_frame, no_frame, no_symbol, end_of_all\n"
        ".type with_frame, @function\n"
        "with_frame: .cfi_startproc\n"
        "    mov $0x0000310f, %eax\n" /* rdtsc's bytes in a constant */
        "    rdtsc\n"
        "    .byte 0x66\n"
        "    rdtsc\n"
        "    rdtscp\n"
        "    mov $0xf9010f, %eax\n" /* rdtscp's */
        "    ret\n"
        "    .cfi_endproc\n"
        ".size with_frame, . - with_frame\n"
        ".type no_frame, @function\n"
        "no_frame: nop\n"
        "    rdtsc\n"
        "    ret\n"
        ".size no_frame, . - no_frame\n"
        "no_symbol: nop\n"
        "    rdtscp\n"
        "    ret\n"
        "end_of_all:\n"
        ".popsection\n");
extern const uint8_t with_frame[], no_frame[], no_symbol[], end_of_all[];

/* The first object is the program. */
static int find_own(struct dl_phdr_info *info, size_t size, void *arg)
{
    *(struct image *)arg = (struct image){info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, "/proc/self/exe"};
    return 1;
}

static struct image own_image(void)
{
    struct image image = {0};

    dl_iterate_phdr(find_own, &image);
    return image;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static size_t naive(const uint8_t *bytes, size_t from, size_t to)
{
    for (; from < to; from++) {
        if (to - from >= 2 && bytes[from] == 0x0f && bytes[from + 1] == 0x31)
            break;
        if (to - from >= 3 && bytes[from] == 0x0f && bytes[from + 1] == 0x01 && bytes[from + 2] == 0xf9)
            break;
    }
    return from;
}

START_TEST(candidates_are_found_wherever_they_are)
{
    static const uint8_t likely[] = {0x0f, 0x31, 0x01, 0xf9, 0x90};
    unsigned found = 0;

    for (unsigned round = 0; round < 2000; round++) {
        size_t size = (size_t)(rand() % 80);
        uint8_t *bytes = malloc(size + 1); /* exact length: a sanitizer detects reads beyond */

        for (size_t i = 0; i < size; i++)
            bytes[i] = likely[rand() % (int)sizeof likely];
        for (size_t at = 0; at < size; at++) {
            ck_assert_uint_eq((size_t)(code_candidate(bytes + at, bytes + size) - bytes), naive(bytes, at, size));
            found += naive(bytes, at, size) < size;
        }
        free(bytes);
    }
    ck_assert_uint_gt(found, 1000);
}
END_TEST

START_TEST(only_instructions_are_taken)
{
    static const size_t wanted[] = {5, 7, 10}; /* rdtsc, the same with a prefix, rdtscp */
    const uint8_t *at = with_frame, *place = with_frame, *instruction;
    size_t candidates = 0, n = 0;

    for (; (at = code_candidate(at, no_frame)) < no_frame; at++, candidates++) {
        instruction = code_instruction(&place, no_frame, at);
        if (!instruction)
            continue;
        ck_assert_uint_lt(n, 3);
        ck_assert_uint_eq((size_t)(instruction - with_frame), wanted[n++]);
    }
    ck_assert_uint_eq(candidates, 5);
    ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(what_is_no_code_is_left)
{
    static const uint8_t bad[] = {0x90, 0x06, 0x0f, 0x31}; /* there is no instruction 06 */
    const uint8_t *place = bad;

    ck_assert_ptr_null(code_instruction(&place, bad + sizeof bad, bad + 2));
    ck_assert_ptr_eq(place, bad + 1);
    place = bad;
    ck_assert_ptr_null(code_instruction(&place, bad + 1, bad + 2)); /* the end comes before */
}
END_TEST

/* ---- functions --------------------------------------------------------------------------------------------------- */

START_TEST(tables_tell_functions)
{
    const struct image image = own_image();
    struct span f;
    uintptr_t end;

    ck_assert(frames_find(&image, (uintptr_t)with_frame + 7, &f, &end));
    ck_assert_uint_eq(f.from, (uintptr_t)with_frame);
    ck_assert_uint_eq(f.to, (uintptr_t)no_frame);
    ck_assert(frames_find(&image, (uintptr_t)own_image + 1, &f, &end));
    ck_assert_uint_eq(f.from, (uintptr_t)own_image);
    ck_assert(!frames_find(&image, (uintptr_t)no_frame + 1, &f, &end));
    ck_assert_uint_eq(end, (uintptr_t)no_frame);
    ck_assert(!frames_find(&image, 1, &f, &end));
}
END_TEST

START_TEST(the_file_tells_the_rest)
{
    struct image image = own_image();
    struct span f;

    ck_assert(symbols_find(&image, (uintptr_t)no_frame + 1, (uintptr_t)no_frame, &f));
    ck_assert_uint_eq(f.from, (uintptr_t)no_frame);
    ck_assert_uint_eq(f.to, (uintptr_t)no_symbol);
    ck_assert(symbols_find(&image, (uintptr_t)no_symbol + 1, (uintptr_t)no_symbol, &f));
    ck_assert_uint_eq(f.from, (uintptr_t)no_symbol);
    ck_assert_uint_ge(f.to, (uintptr_t)end_of_all);
    image.path = "/bin/sh"; /* not the loaded file */
    ck_assert(!symbols_find(&image, (uintptr_t)no_frame + 1, (uintptr_t)no_frame, &f));
    image.path = "/no/such/file";
    ck_assert(!symbols_find(&image, (uintptr_t)no_frame + 1, (uintptr_t)no_frame, &f));
}
END_TEST

/* Broken tables: for any value of a byte, only the object is read, and no function leaves the object. */
START_TEST(broken_tables_do_no_harm)
{
    const struct image whole = own_image();
    const ElfW(Phdr) *table = NULL;
    size_t size, page = (size_t)sysconf(_SC_PAGESIZE);
    ElfW(Phdr) phdr[3];
    uint8_t *copy;

    for (size_t i = 0; i < whole.num_phdrs; i++)
        if (whole.phdr[i].p_type == PT_GNU_EH_FRAME)
            table = &whole.phdr[i];
    ck_assert_ptr_nonnull(table);
    size = table->p_memsz;
    /* an object of one segment: the tables, at the end of readable memory */
    copy = mmap(NULL, (size / page + 2) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(copy, MAP_FAILED);
    ck_assert_int_eq(mprotect(copy + (size / page + 1) * page, page, PROT_NONE), 0);
    copy += (size / page + 1) * page - size / 4 * 4;
    size = size / 4 * 4;
    phdr[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = size, .p_memsz = size};
    phdr[1] = (ElfW(Phdr)){.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_filesz = size, .p_memsz = size};
    for (unsigned round = 0; round < 20000; round++) {
        const struct image image = {(uintptr_t)copy, phdr, 2, "/proc/self/exe"};
        struct span f;
        uintptr_t end;

        memcpy(copy, (const void *)(whole.base + table->p_vaddr), size);
        for (unsigned i = 0; i < 4; i++)
            copy[rand() % (int)size] = (uint8_t)rand();
        ((uint32_t *)copy)[2] = (uint32_t)rand() % (uint32_t)(size / 4); /* its count, mostly too much */
        if (frames_find(&image, (uintptr_t)copy + (size_t)rand() % size, &f, &end))
            ck_assert(image_holds(&image, f.from, f.to - f.from));
    }
}
END_TEST

START_TEST(segments_are_bounds)
{
    const struct image image = own_image();
    uint8_t on_stack;

    ck_assert(image_holds(&image, (uintptr_t)with_frame, 16));
    ck_assert(!image_holds(&image, (uintptr_t)with_frame, SIZE_MAX));
    ck_assert(!image_holds(&image, (uintptr_t)&on_stack, 1));
    ck_assert(!image_holds(&image, 0, 1));
}
END_TEST

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The protection of the page, and the file behind it. */
static void read_maps(char text[256], const void *at)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512], mode[8], file[200];
    unsigned long from, to;

    *text = 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %199s", &from, &to, mode, file) == 4 && from <= (uintptr_t)at &&
            (uintptr_t)at < to)
            snprintf(text, 256, "%s %s", mode, file);
    fclose(f);
}

static void rewrite(bool (*write)(void *at, uint8_t byte))
{
    char before[256], after[256];
    uint8_t *at = (uint8_t *)with_frame + 1; /* of the constant */
    volatile const uint8_t *seen = at;

    read_maps(before, at);
    ck_assert_ptr_nonnull(strstr(before, "r-xp "));
    if (!write(at, 0x77)) { /* some kernels allow only one of the methods, or none */
        ck_assert_msg(errno == EIO || errno == EACCES || errno == EPERM, "%s", strerror(errno));
        ck_assert_uint_eq(*seen, 0x0f);
        return;
    }
    ck_assert_uint_eq(*seen, 0x77);
    ck_assert(write(at, 0x0f));
    ck_assert_uint_eq(*seen, 0x0f);
    read_maps(after, at);
    ck_assert_str_eq(after, before);
    ck_assert(!write((void *)1, 0));
}

START_TEST(code_is_written_by_force)
{
    rewrite(write_forced);
}
END_TEST

START_TEST(code_is_written_where_it_is_unprotected)
{
    rewrite(write_unprotected);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");

    tcase_add_test(c, candidates_are_found_wherever_they_are);
    tcase_add_test(c, only_instructions_are_taken);
    tcase_add_test(c, what_is_no_code_is_left);
    tcase_add_test(c, tables_tell_functions);
    tcase_add_test(c, the_file_tells_the_rest);
    tcase_add_test(c, broken_tables_do_no_harm);
    tcase_add_test(c, segments_are_bounds);
    tcase_add_test(c, code_is_written_by_force);
    tcase_add_test(c, code_is_written_where_it_is_unprotected);
    return check_run(c, NULL);
}
