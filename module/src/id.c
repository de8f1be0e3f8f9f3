/* SPDX-License-Identifier: BSD-3-Clause */
#include "id.h"

#include <stdbool.h>
#include <string.h>

#define BASE 62
#define MS_BITS 41
#define MS_MAX ((UINT64_C(1) << MS_BITS) - 1)

static const char DIGITS[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The digits of 2^63 - 1. Eleven digits reach beyond 64 bits, so the range is tested on the text. */
static const char LARGEST[] = "AzL8n0Y58m7";

/* The value of a digit plus 1; 0 for every other byte. */
/* clang-format off */
static const unsigned char VALUES[256] = {
    ['0'] =  1,  2,  3,  4,  5,  6,  7,  8,  9, 10,
    ['A'] = 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
    ['a'] = 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
};
/* clang-format on */

static bool is_namespace(const char *space) {
    for (int i = 0; i < EMQ_ID_SPACE_LENGTH; i++) {
        if (space[i] < 'A' || space[i] > 'Z') return false;
    }
    return true;
}

emq_id_status emq_id_decode(const char *text, size_t length, char space[EMQ_ID_SPACE_LENGTH], uint64_t *value) {
    if (length != EMQ_ID_LENGTH) return EMQ_ID_LENGTH_ERROR;
    if (!is_namespace(text)) return EMQ_ID_NAMESPACE_ERROR;

    const char *digits = text + EMQ_ID_SPACE_LENGTH;
    uint64_t sum = 0; /* wraps for a text out of range, which is refused below */
    for (int i = 0; i < EMQ_ID_DIGITS; i++) {
        unsigned digit = VALUES[(unsigned char)digits[i]];
        if (digit == 0) return EMQ_ID_CHARSET_ERROR;
        sum = sum * BASE + digit - 1;
    }
    if (memcmp(digits, LARGEST, EMQ_ID_DIGITS) > 0) return EMQ_ID_RANGE_ERROR;

    memcpy(space, text, EMQ_ID_SPACE_LENGTH);
    *value = sum;
    return EMQ_ID_OK;
}

emq_id_status emq_id_encode(const char space[EMQ_ID_SPACE_LENGTH], uint64_t value, char text[EMQ_ID_LENGTH]) {
    if (value > INT64_MAX) return EMQ_ID_RANGE_ERROR;
    if (!is_namespace(space)) return EMQ_ID_NAMESPACE_ERROR;

    memcpy(text, space, EMQ_ID_SPACE_LENGTH);
    for (int i = EMQ_ID_LENGTH - 1; i >= EMQ_ID_SPACE_LENGTH; i--) {
        text[i] = DIGITS[value % BASE];
        value /= BASE;
    }
    return EMQ_ID_OK;
}

emq_job_id_status emq_job_id_check(const char *text, size_t length) {
    if (length < EMQ_ID_SPACE_LENGTH || memcmp(text, EMQ_JOB_SPACE, EMQ_ID_SPACE_LENGTH) != 0) return EMQ_JOB_ID_SPACE;
    if (length != EMQ_ID_LENGTH) return EMQ_JOB_ID_SHAPE;

    const char *digits = text + EMQ_ID_SPACE_LENGTH;
    for (int i = 0; i < EMQ_ID_DIGITS; i++) {
        if (VALUES[(unsigned char)digits[i]] == 0) return EMQ_JOB_ID_SHAPE;
    }
    return memcmp(digits, LARGEST, EMQ_ID_DIGITS) <= 0 ? EMQ_JOB_ID_OK : EMQ_JOB_ID_SHAPE;
}

/* Milliseconds since the epoch, which may exceed MS_MAX. */
static uint64_t since_epoch(int64_t wall_ms) {
    return wall_ms > EMQ_ID_EPOCH_MS ? (uint64_t)(wall_ms - EMQ_ID_EPOCH_MS) : 0;
}

emq_id_status emq_id_mint_step(int64_t wall_ms, uint64_t *cell, uint32_t node, uint32_t jitter, uint64_t *value) {
    if (node > EMQ_ID_NODE_MAX || jitter > EMQ_ID_JITTER_MAX) return EMQ_ID_RANGE_ERROR;

    uint64_t ms = since_epoch(wall_ms);
    if (ms > MS_MAX || *cell >> EMQ_ID_SEQUENCE_BITS > MS_MAX) return EMQ_ID_RANGE_ERROR;
    uint64_t next = ms << EMQ_ID_SEQUENCE_BITS;
    next = next > *cell ? next + jitter : *cell + 1;

    ms = next >> EMQ_ID_SEQUENCE_BITS; /* the carry of a full millisecond */
    if (ms > MS_MAX) return EMQ_ID_RANGE_ERROR;
    *cell = next;
    *value = ms << (EMQ_ID_NODE_BITS + EMQ_ID_SEQUENCE_BITS) | (uint64_t)node << EMQ_ID_SEQUENCE_BITS | (next & EMQ_ID_SEQUENCE_MAX);
    return EMQ_ID_OK;
}

uint64_t emq_id_mint_start(int64_t wall_ms) {
    uint64_t ms = since_epoch(wall_ms);
    return ms > MS_MAX ? 0 : ms << EMQ_ID_SEQUENCE_BITS;
}

uint32_t emq_id_hash32(uint64_t value) {
    value ^= value >> 33;
    value *= UINT64_C(0xFF51AFD7ED558CCD);
    value ^= value >> 33;
    return (uint32_t)value;
}
