/* SPDX-License-Identifier: BSD-3-Clause */
#include "endings.h"

#include <string.h>

/* Words of an ending after its keyword: i id, t token, b bytes, d delay, m max, w IN or AT, n the number that follows it. */
static const struct form {
    const char *keyword, *words;
} forms[EMQ_ENDINGS] = {
    [EMQ_ENDS_COMPLETE] = {"COMPLETE", "it"},
    [EMQ_ENDS_RESULT] = {"RESULT", "itb"},
    [EMQ_ENDS_RETRY] = {"RETRY", "itdmb"},
    [EMQ_ENDS_DELAY] = {"DELAY", "itwn"},
};

/* The kind of ending whose keyword is argv[at], EMQ_ENDINGS when that is none. */
static emq_ending_kind kind_at(emq_call *call, int at) {
    emq_ending_kind kind = EMQ_ENDS_COMPLETE;
    while (kind < EMQ_ENDINGS && !emq_args_says(call->argv[at], forms[kind].keyword)) kind++;
    return kind;
}

bool emq_endings_bind(emq_call *call, int *at, int64_t *count) {
    for (*count = 0; *at < call->argc; ++*count) {
        emq_ending_kind kind = kind_at(call, *at);
        if (kind == EMQ_ENDINGS) return emq_refuse(call, EMQ_ERR_SYNTAX);
        const char *words = forms[kind].words, *when = strchr(words, 'w');
        int last = *at + (int)strlen(words);
        if (last >= call->argc) return emq_refuse(call, EMQ_ERR_SYNTAX);
        if (when) {
            ValkeyModuleString *word = call->argv[*at + 1 + (int)(when - words)];
            if (!emq_args_says(word, "IN") && !emq_args_says(word, "AT")) return emq_refuse(call, EMQ_ERR_SYNTAX);
        }
        *at = last + 1;
    }
    return true;
}

/* Reads one word. Answers false when it refused a number. */
static bool read(emq_call *call, char letter, ValkeyModuleString *word, emq_ending *ending, emq_number *when) {
    switch (letter) {
    case 'i': ending->id = word; break;
    case 't': ending->token = word; break;
    case 'b': ending->bytes = word; break;
    case 'w': *when = emq_args_says(word, "AT") ? EMQ_N_AT : EMQ_N_IN; break;
    case 'd': return emq_args_number(call, EMQ_N_DELAY, word, &ending->delay_ms);
    case 'm': return emq_args_number(call, EMQ_N_MAX, word, &ending->max);
    default: return emq_args_number(call, *when, word, &ending->when_ms);
    }
    return true;
}

bool emq_endings_next(emq_call *call, int *at, emq_ending *ending) {
    if (*at == 0 || *at >= call->argc) return false;
    *ending = (emq_ending){.kind = kind_at(call, *at)};
    emq_number when = EMQ_N_IN;
    for (const char *letter = forms[ending->kind].words; *letter; letter++) {
        if (!read(call, *letter, call->argv[++*at], ending, &when)) return false;
    }
    ++*at;
    return true;
}

bool emq_endings_check_numbers(emq_call *call) {
    emq_ending ending;
    int at = call->args.endings;
    while (emq_endings_next(call, &at, &ending)) continue;
    return at == 0 || at == call->argc;
}

bool emq_endings_check_ids(emq_call *call) {
    emq_ending ending;
    int at = call->args.endings;
    while (emq_endings_next(call, &at, &ending)) {
        if (!emq_args_check_id(call, ending.id)) return false;
    }
    return true;
}
