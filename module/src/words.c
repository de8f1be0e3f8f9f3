/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

ValkeyModuleString *emq_fields[EMQ_FIELDS];
ValkeyModuleString *emq_words[EMQ_WORDS];

typedef struct literal {
    const char *text;
    size_t length;
} literal;

#define X(identifier, text) {text, sizeof text - 1},
static const literal fields[EMQ_FIELDS] = {EMQ_ROW_FIELDS(X)};
static const literal words[EMQ_WORDS] = {EMQ_CONSTANT_WORDS(X)};
#undef X

static ValkeyModuleString *make(const literal *word) {
    return ValkeyModule_CreateString(NULL, word->text, word->length);
}

void emq_words_make(void) {
    for (int i = 0; i < EMQ_FIELDS; i++) emq_fields[i] = make(&fields[i]);
    for (int i = 0; i < EMQ_WORDS; i++) emq_words[i] = make(&words[i]);
}

void emq_words_drop(void) {
    for (int i = 0; i < EMQ_FIELDS; i++) ValkeyModule_FreeString(NULL, emq_fields[i]);
    for (int i = 0; i < EMQ_WORDS; i++) ValkeyModule_FreeString(NULL, emq_words[i]);
}

bool emq_word_is(emq_word_id word, const char *text, size_t length) {
    return length == words[word].length && memcmp(text, words[word].text, length) == 0;
}
