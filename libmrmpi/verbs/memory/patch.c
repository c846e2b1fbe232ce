/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/verbs/memory/patch.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define LINE 16u /* functions begin at multiples of this */
#define MOST 20u /* bytes of the longest jump */

/* ---- the jump ---------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* The instruction that marks a target of indirect calls stays. Returns the bytes that differ, from the start. */
static size_t make_jump(const uint8_t *at, uint8_t code[MOST], void *to)
{
    static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    size_t n = memcmp(at, endbr64, 4) ? 0 : 4;
    uint64_t target = (uintptr_t)to;
    int64_t distance = (int64_t)(target - (uintptr_t)(at + n + 5));
    int32_t near = (int32_t)distance;

    if (near == distance) {
        code[n++] = 0xe9; /* jmp near */
        memcpy(code + n, &near, 4);
        return n + 4;
    }
    code[n++] = 0x49; /* movabs $target, %r11 */
    code[n++] = 0xbb;
    memcpy(code + n, &target, 8);
    n += 8;
    code[n++] = 0x41; /* jmp *%r11 */
    code[n++] = 0xff;
    code[n++] = 0xe3;
    return n;
}

/* Other threads see all of a line or nothing of it: processors with AVX store 16 aligned bytes at once. */
static void store_code(uint8_t *at, const uint8_t code[MOST], size_t len)
{
    if (len > LINE)
        memcpy(at + LINE, code + LINE, len - LINE);
    if ((uintptr_t)at % LINE)
        memcpy(at, code, len < LINE ? len : LINE);
    else
        _mm_store_si128((__m128i *)at, _mm_loadu_si128((const __m128i *)code));
}
#elif defined(__aarch64__)
static size_t make_jump(const uint8_t *at, uint8_t code[MOST], void *to)
{
    static const uint8_t bti[4] = {0x5f, 0x24, 0x03, 0xd5};
    static const uint32_t far[2] = {0x58000051, 0xd61f0220}; /* ldr x17, .+8; br x17 */
    size_t n = memcmp(at, bti, 4) ? 0 : 4;
    int64_t distance = ((intptr_t)to - (intptr_t)(at + n)) / 4;
    uint32_t near = 0x14000000u | ((uint32_t)distance & 0x03ffffffu); /* b */
    uint64_t target = (uintptr_t)to;

    if (distance >= -(1 << 25) && distance < 1 << 25) {
        memcpy(code + n, &near, 4);
        return n + 4;
    }
    memcpy(code + n, far, 8);
    memcpy(code + n + 8, &target, 8);
    return n + 16;
}

static void store_code(uint8_t *at, const uint8_t code[MOST], size_t len)
{
    for (size_t i = len; i >= 4; i -= 4) { /* the first instruction last */
        uint32_t word;

        memcpy(&word, code + i - 4, 4);
        __atomic_store_n((uint32_t *)(at + i - 4), word, __ATOMIC_RELEASE);
    }
    __builtin___clear_cache((char *)at, (char *)at + len);
}
#else
static size_t make_jump(const uint8_t *at, uint8_t code[MOST], void *to)
{
    return SIZE_MAX;
}

static void store_code(uint8_t *at, const uint8_t code[MOST], size_t len)
{
}
#endif

/* ---- writing code ------------------------------------------------------------------------------------------------ */

/* As debuggers write: the kernel makes the page this process's own, and asks nobody whether code may be writable. */
static bool store_as_debuggers(uint8_t *at, const uint8_t *code, size_t len)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    bool done = fd >= 0 && pwrite(fd, code, len, (off_t)(uintptr_t)at) == (ssize_t)len;

    if (fd >= 0)
        close(fd);
    return done;
}

bool mr_patch_function(void *function, size_t size, void *to)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)function & ~(page - 1);
    size_t span = ((uintptr_t)function + MOST - first + page - 1) & ~(page - 1), len;
    uint8_t code[MOST], *at = function;

    memcpy(code, at, sizeof code);
    len = make_jump(at, code, to);
    if (len > size)
        return false;
    if (!memcmp(at, code, len))
        return true;
    if (!mprotect((void *)first, span, PROT_READ | PROT_WRITE | PROT_EXEC)) {
        store_code(at, code, len);
        mprotect((void *)first, span, PROT_READ | PROT_EXEC);
    } else {
        store_as_debuggers(at, code, len);
    }
    return !memcmp(at, code, len);
}
