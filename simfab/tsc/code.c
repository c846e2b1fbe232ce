/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two steps. First a search for the bytes, at memory speed, because nearly all code has none of them. Then a decoding
 * of the function around a match, instruction by instruction, because the same bytes may be part of an address or a
 * constant.
 */
#include "simfab/tsc/code.h"

#include <Zydis/Zydis.h>
#include <emmintrin.h>
#include <stdbool.h>
#include <stddef.h>

enum { STEP = sizeof(__m128i) };

/* A segment of code may hold data, and the address sanitizer's gaps between data may be read here. */
#define READS_ALL __attribute__((no_sanitize_address))

READS_ALL static bool is_candidate(const uint8_t *at, size_t left)
{
    return left >= 2 && at[0] == 0x0f && (at[1] == 0x31 || (left >= 3 && at[1] == 0x01 && at[2] == 0xf9));
}

/* A mask of the 16 bytes at AT that are 0f, before 31 or 01. */
READS_ALL static unsigned escapes(const uint8_t *at)
{
    const __m128i first = _mm_loadu_si128((const __m128i *)at), second = _mm_loadu_si128((const __m128i *)(at + 1));
    const __m128i either =
        _mm_or_si128(_mm_cmpeq_epi8(second, _mm_set1_epi8(0x31)), _mm_cmpeq_epi8(second, _mm_set1_epi8(0x01)));

    return (unsigned)_mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(first, _mm_set1_epi8(0x0f)), either));
}

READS_ALL const uint8_t *code_candidate(const uint8_t *from, const uint8_t *to)
{
    for (; to - from > STEP; from += STEP)
        for (unsigned found = escapes(from); found; found &= found - 1) {
            const uint8_t *at = from + __builtin_ctz(found);

            if (is_candidate(at, (size_t)(to - at)))
                return at;
        }
    for (; from < to; from++)
        if (is_candidate(from, (size_t)(to - from)))
            return from;
    return to;
}

const uint8_t *code_instruction(const uint8_t **at, const uint8_t *to, const uint8_t *candidate)
{
    ZydisDecodedInstruction i;
    ZydisDecoder decoder;

    /* minimal: only the mnemonic and the length */
    if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        ZYAN_FAILED(ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)))
        return NULL;
    for (; *at <= candidate; *at += i.length) {
        if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, *at, (ZyanUSize)(to - *at), &i)))
            return NULL;
        if (candidate < *at + i.length)
            return i.mnemonic == ZYDIS_MNEMONIC_RDTSC || i.mnemonic == ZYDIS_MNEMONIC_RDTSCP ? *at : NULL;
    }
    return NULL;
}
