/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes: the gate accepts exactly the JOB ids that the decoder reads, and what is read is written back the same. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    char space[EMQ_ID_SPACE_LENGTH], again[EMQ_ID_LENGTH];
    uint64_t value;

    emq_id_status status = emq_id_decode(text, size, space, &value);
    bool job = size >= 3 && memcmp(text, EMQ_JOB_SPACE, 3) == 0;
    emq_job_id_status gate = emq_job_id_check(text, size);
    if (gate != (!job ? EMQ_JOB_ID_SPACE : status == EMQ_ID_OK ? EMQ_JOB_ID_OK : EMQ_JOB_ID_SHAPE)) abort();
    if (status == EMQ_ID_OK) {
        if (emq_id_encode(space, value, again) != EMQ_ID_OK || memcmp(again, text, EMQ_ID_LENGTH) != 0) abort();
    }

    /* The same bytes as a clock and a cell: a step either goes forward or refuses. */
    int64_t wall_ms = 0;
    uint64_t cell = 0;
    memcpy(&wall_ms, data, size < 8 ? size : 8);
    if (size > 8) memcpy(&cell, data + 8, size < 16 ? size - 8 : 8);
    uint64_t before = cell;
    status = emq_id_mint_step(wall_ms, &cell, (uint32_t)(size & EMQ_ID_NODE_MAX), 0, &value);
    if (status == EMQ_ID_OK ? cell <= before || value > INT64_MAX : cell != before) abort();
    return 0;
}
