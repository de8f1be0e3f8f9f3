/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include <string.h>

emq_stats emq_counted;

void emq_count_refusal(const char *text) {
    static const char *const words[] = {
#define X(class, word) word,
        EMQ_REFUSALS(X)
#undef X
    };
    int class = 0;
    while (strncmp(text, words[class], strlen(words[class])) != 0) class ++; /* the last word begins every text */
    emq_counted.refused[class]++;
}

uint64_t emq_stats_calls(void) {
    uint64_t all = 0;
    for (int i = 0; i < EMQ_COMMAND_COUNT; i++) all += emq_counted.calls[i];
    return all;
}

void emq_stats_info(ValkeyModuleInfoCtx *info) {
    ValkeyModule_InfoAddSection(info, "calls");
#define X(verb) ValkeyModule_InfoAddFieldULongLong(info, "calls_" #verb, emq_counted.calls[EMQ_COMMAND_##verb]);
    EMQ_COMMANDS(X)
#undef X
    ValkeyModule_InfoAddSection(info, "refusals");
#define X(class, word) ValkeyModule_InfoAddFieldULongLong(info, "refused_" #class, emq_counted.refused[EMQ_REFUSED_##class]);
    EMQ_REFUSALS(X)
#undef X
}
