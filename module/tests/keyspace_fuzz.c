/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Any bytes: a queue key that is read is written back the same, its keys share its slot, and no name that is accepted
 * leads out of its queue. */
#include <stdlib.h>
#include <string.h>

#include "keyspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    char key[EMQ_KEY_MAX];
    const char *name;
    size_t name_length;

    uint16_t slot = emq_slot(text, size);
    if (slot >= EMQ_SLOTS) abort();
    if (emq_queue_key_parse(text, size, &name, &name_length)) {
        if (!emq_queue_name_valid(name, name_length)) abort();
        if (emq_key_queue(key, name, name_length) != size || memcmp(key, text, size) != 0) abort();
        size_t length = emq_key_fixed(key, text, size, "metrics:completed");
        if (emq_slot(key, length) != slot || emq_slot(name, name_length) != slot) abort();
    }

    static const char QUEUE[] = "emq:{orders}";
    uint16_t home = emq_slot(QUEUE, sizeof QUEUE - 1);
    if (emq_group_valid(text, size) && emq_slot(key, emq_key_lane(key, QUEUE, sizeof QUEUE - 1, text, size)) != home) abort();
    if (emq_repeat_name_valid(text, size) && emq_slot(key, emq_key_repeat(key, QUEUE, sizeof QUEUE - 1, text, size)) != home) abort();
    return 0;
}
