/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Branded ids. An id is 14 bytes: three namespace letters A..Z and 11 base62 digits, the text of a 63-bit number that
 * holds milliseconds since 2024 (41 bits), the minting node (10) and a sequence (12). Within one namespace the byte order
 * of the texts is the order of the numbers, so a sorted set of ids is sorted by mint time.
 *
 * Nothing here allocates, reads a clock or keeps state: the caller owns the clock, the cell and the lock around it. */
#ifndef EMQ_ID_H
#define EMQ_ID_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

typedef enum {
    EMQ_ID_OK,
    EMQ_ID_LENGTH_ERROR,
    EMQ_ID_NAMESPACE_ERROR,
    EMQ_ID_CHARSET_ERROR,
    EMQ_ID_RANGE_ERROR
} emq_id_status;

/* Reads any branded id. Answers the first of length, namespace, charset and range that is wrong, and then leaves space and
 * value alone. space receives three letters without a terminator. */
emq_id_status emq_id_decode(const char *text, size_t length, char space[EMQ_ID_SPACE_LENGTH], uint64_t *value);

/* Writes 14 bytes without a terminator, or nothing when value exceeds 63 bits (range) or space is not A..Z (namespace). */
emq_id_status emq_id_encode(const char space[EMQ_ID_SPACE_LENGTH], uint64_t value, char text[EMQ_ID_LENGTH]);

typedef enum {
    EMQ_JOB_ID_OK,
    EMQ_JOB_ID_SPACE, /* does not begin with JOB: EMQ_ERR_KIND_SPACE */
    EMQ_JOB_ID_SHAPE  /* begins with JOB but is no id: EMQ_ERR_KIND_SHAPE */
} emq_job_id_status;

/* The gate that every job id passes before any transition. */
emq_job_id_status emq_job_id_check(const char *text, size_t length);

/* Takes the next number of one process.
 *
 * cell is the process's only state: milliseconds since the epoch and sequence of the last number, at the start what
 * emq_id_mint_start answers. It never goes back, so a clock that does costs nothing, and a burst of more than 4096 in a
 * millisecond runs ahead of the clock until the clock has caught up. wall_ms is Unix time; a time before the epoch counts as the epoch. jitter, 0 to 1023,
 * moves the start of a fresh millisecond; it is 0 unless the node was drawn at random.
 *
 * Answers range, and leaves cell and value alone, when the result would not fit 41 bits of milliseconds or when node or
 * jitter is out of bounds. */
emq_id_status emq_id_mint_step(int64_t wall_ms, uint64_t *cell, uint32_t node, uint32_t jitter, uint64_t *value);

/* The cell of a process that has minted nothing yet: the given instant, or the epoch when that instant has no id. */
uint64_t emq_id_mint_start(int64_t wall_ms);

/* A placement hash for clients; no verb uses it. */
uint32_t emq_id_hash32(uint64_t value);

#endif
