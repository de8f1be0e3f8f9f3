/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <string.h>

ValkeyModuleString *emq_fields[EMQ_FIELDS];
ValkeyModuleString *emq_words[EMQ_WORDS];

#define X(identifier, text) text,
static const char *const field_texts[EMQ_FIELDS] = {EMQ_ROW_FIELDS(X)};
static const char *const word_texts[EMQ_WORDS] = {EMQ_CONSTANT_WORDS(X)};
#undef X

static ValkeyModuleString *make(const char *text) {
    return ValkeyModule_CreateString(NULL, text, strlen(text));
}

void emq_words_make(void) {
    for (int i = 0; i < EMQ_FIELDS; i++) emq_fields[i] = make(field_texts[i]);
    for (int i = 0; i < EMQ_WORDS; i++) emq_words[i] = make(word_texts[i]);
}
