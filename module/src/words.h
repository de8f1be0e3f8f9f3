/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Field names, states and other constant values as strings of the server, made once at load: what is written or asked for
 * by every command is never allocated by one. */
#ifndef EMQ_WORDS_H
#define EMQ_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "valkey_api.h"
#include "wire.h"

/* X(identifier, text): fields of a row, except the payload, which is never held. */
#define EMQ_ROW_FIELDS(X)               \
    X(EMQ_STATE, "state")               \
    X(EMQ_ATTEMPTS, "attempts")         \
    X(EMQ_GROUP, "group")               \
    X(EMQ_LAST_ERROR, "last_error")     \
    X(EMQ_PROGRESS, "progress")         \
    X(EMQ_REAPED, "reaped")             \
    X(EMQ_FLOOR, "floor")               \
    X(EMQ_PARENT, "parent")             \
    X(EMQ_PARENT_QUEUE, "parent_queue") \
    X(EMQ_PARENT_POLICY, "parent_policy")

typedef enum emq_field {
#define X(identifier, text) identifier,
    EMQ_ROW_FIELDS(X)
#undef X
    EMQ_FIELDS
} emq_field;

/* X(identifier, text): the other words. The first five are the states, in the order of the places in store.h. */
#define EMQ_CONSTANT_WORDS(X)                \
    X(EMQ_W_PENDING, "pending")              \
    X(EMQ_W_ACTIVE, "active")                \
    X(EMQ_W_SCHEDULED, "scheduled")          \
    X(EMQ_W_DEAD, "dead")                    \
    X(EMQ_W_HELD, "awaiting_children")       \
    X(EMQ_W_PAYLOAD, "payload")              \
    X(EMQ_W_PAUSED, "paused")                \
    X(EMQ_W_COUNT, "count")                  \
    X(EMQ_W_EVERY, "every_ms")               \
    X(EMQ_W_TEMPLATE, "template")            \
    X(EMQ_W_ZERO, "0")                       \
    X(EMQ_W_ONE, "1")                        \
    X(EMQ_W_NOTHING, "")                     \
    X(EMQ_W_EXPIRED, EMQ_LAST_ERROR_EXPIRED) \
    X(EMQ_W_REMOVED, EMQ_ERROR_REMOVED)      \
    X(EMQ_W_FENCE, EMQ_FENCE_KEY)

typedef enum emq_word_id {
#define X(identifier, text) identifier,
    EMQ_CONSTANT_WORDS(X)
#undef X
    EMQ_WORDS
} emq_word_id;

extern ValkeyModuleString *emq_fields[EMQ_FIELDS];
extern ValkeyModuleString *emq_words[EMQ_WORDS];

/* Whether a text is that word. */
bool emq_word_is(emq_word_id word, const char *text, size_t length);

void emq_words_make(void);
void emq_words_drop(void);

#endif
