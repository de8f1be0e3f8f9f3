/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <string.h>
#include <strings.h>

#include "call.h"
#include "endings.h"
#include "id.h"
#include "stats.h"

/* A word of argv and what it has to be. */
typedef struct bound_word {
    const emq_word *word;
    ValkeyModuleString *value;
    bool at; /* of a WHEN: AT, not IN */
} bound_word;

typedef struct bound_words {
    bound_word list[EMQ_WORDS_MAX];
    int count;
} bound_words;

typedef struct number_rule {
    const char *refusal;
    int64_t low, high;
    bool from_now; /* now + value must fit, too */
} number_rule;

static const number_rule number_rules[] = {
    [EMQ_N_LEASE] = {EMQ_ERR_LEASE, 1, EMQ_MAX_INTEGER, true},
    [EMQ_N_DELAY] = {EMQ_ERR_DELAY, 0, EMQ_MAX_INTEGER, true},
    [EMQ_N_IN] = {EMQ_ERR_IN, 0, EMQ_MAX_INTEGER, true},
    [EMQ_N_AT] = {EMQ_ERR_AT, 0, EMQ_MAX_INTEGER, false},
    [EMQ_N_MAX] = {EMQ_ERR_MAX, 1, EMQ_MAX_MAX, false},
    [EMQ_N_LIMIT] = {EMQ_ERR_LIMIT, 1, EMQ_LIMIT_MAX, false},
    [EMQ_N_KEEP] = {EMQ_ERR_KEEP, 1, EMQ_KEEP_MAX, false},
    [EMQ_N_COUNT] = {EMQ_ERR_COUNT, 1, EMQ_COUNT_MAX, false},
    [EMQ_N_EVERY] = {EMQ_ERR_EVERY, 1, EMQ_MAX_INTEGER, true},
    [EMQ_N_NEXT] = {EMQ_ERR_NEXT, 0, EMQ_MAX_INTEGER, false},
    [EMQ_N_CEILING] = {EMQ_ERR_CEILING, 0, EMQ_CEILING_MAX, false},
    [EMQ_N_WEIGHT] = {EMQ_ERR_WEIGHT, 0, EMQ_WEIGHT_MAX, false},
    [EMQ_N_BLOCK] = {EMQ_ERR_BLOCK, 1, EMQ_BLOCK_MAX, false},
    [EMQ_N_PROMOTE] = {EMQ_ERR_PROMOTE, 0, EMQ_SWEEP_MAX, false},
    [EMQ_N_REAP] = {EMQ_ERR_REAP, 0, EMQ_SWEEP_MAX, false},
    [EMQ_N_SETTLE] = {EMQ_ERR_SETTLE, 1, EMQ_SETTLE_MAX, false},
};

static void *target(emq_call *call, const emq_word *word) {
    return (char *)&call->args + word->at;
}

bool emq_args_says(ValkeyModuleString *string, const char *keyword) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(string, &length);
    return length == strlen(keyword) && strncasecmp(text, keyword, length) == 0;
}

bool emq_args_decimal(ValkeyModuleString *string, size_t most_digits, int64_t *number) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(string, &length);
    bool negative = length > 1 && text[0] == '-';
    size_t digits = length - negative;
    if (length == 0 || digits > most_digits) return false;
    if (text[negative] == '0' && length > 1) return false;

    int64_t value = 0;
    for (size_t i = negative; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = 10 * value + (text[i] - '0');
    }
    *number = negative ? -value : value;
    return true;
}

int emq_args_arity(const emq_command *command) {
    int least = command->queue == EMQ_QUEUE ? 2 : 1;
    bool fixed = command->queue != EMQ_QUEUE_OPTIONAL;
    for (const emq_word *word = command->words; word->kind != EMQ_WORD_END; word++) {
        if (word->presence == EMQ_ONCE) least += word->kind == EMQ_WORD_WHEN || word->keyword ? 2 : 1;
        if (word->presence == EMQ_MANY && command->flags & EMQ_CAPPED) least += 1; /* a member or more */
        if (word->presence != EMQ_ONCE) fixed = false;
    }
    return fixed ? least : -least;
}

/* FLAT or LANES, or both; each at most once. */
static bool bind_from(emq_call *call, int *at) {
    static const char *const names[] = {[EMQ_FLAT] = "FLAT", [EMQ_LANE] = "LANES"};
    emq_args *args = &call->args;
    for (args->sources = 0; args->sources < EMQ_SOURCES && *at < call->argc; ++*at) {
        emq_source source = EMQ_FLAT;
        while (source < EMQ_SOURCES && !emq_args_says(call->argv[*at], names[source])) source++;
        if (source == EMQ_SOURCES) break;
        if (args->sources > 0 && args->from[0] == source) return emq_refuse(call, EMQ_ERR_SYNTAX);
        args->from[args->sources++] = source;
    }
    return args->sources > 0 || emq_refuse(call, EMQ_ERR_SYNTAX);
}

/* The endings behind their number. A number that is none, or too large, is refused when it is its turn. */
static bool bind_endings(emq_call *call, ValkeyModuleString *number, int *at) {
    int64_t said, found;
    call->args.endings = *at;
    if (!emq_endings_bind(call, at, &found)) return false;
    bool legal = emq_args_decimal(number, EMQ_STORED_DIGITS_MAX, &said) && said >= 1 && said <= EMQ_SETTLE_MAX;
    return !legal || said == found || emq_refuse(call, EMQ_ERR_SYNTAX);
}

/* Reads one fixed word, or keyword and value, at argv[*at]. */
static bool bind(emq_call *call, bound_words *bounds, const emq_word *word, int *at) {
    bound_word *bound = &bounds->list[bounds->count];
    *bound = (bound_word){.word = word};
    if (word->kind == EMQ_WORD_WHEN) {
        bound->at = emq_args_says(call->argv[*at], "AT");
        if (!bound->at && !emq_args_says(call->argv[*at], "IN")) return emq_refuse(call, EMQ_ERR_SYNTAX);
        ++*at;
    } else if (word->keyword) {
        if (!emq_args_says(call->argv[*at], word->keyword)) return emq_refuse(call, EMQ_ERR_SYNTAX);
        ++*at;
    }
    if (word->kind == EMQ_WORD_FLAG) {
        *(bool *)target(call, word) = true;
    } else if (word->kind == EMQ_WORD_FROM) {
        if (!bind_from(call, at)) return false;
    } else {
        if (*at >= call->argc) return emq_refuse(call, EMQ_ERR_SYNTAX);
        bound->value = call->argv[(*at)++];
    }
    if (word->kind == EMQ_WORD_ENDINGS && !bind_endings(call, bound->value, at)) return false;
    bounds->count++;
    return true;
}

static bool bind_option(emq_call *call, bound_words *bounds, int *at) {
    for (const emq_word *word = call->command->words; word->kind != EMQ_WORD_END; word++) {
        if (word->presence != EMQ_OPTIONAL || !emq_args_says(call->argv[*at], word->keyword)) continue;
        for (int i = 0; i < bounds->count; i++) {
            if (bounds->list[i].word == word) return emq_refuse(call, EMQ_ERR_SYNTAX);
        }
        return bind(call, bounds, word, at);
    }
    return emq_refuse(call, EMQ_ERR_SYNTAX);
}

static bool refuse_arity(emq_call *call) {
    ValkeyModule_WrongArity(call->ctx);
    emq_counted.refused[EMQ_REFUSED_other]++;
    return false;
}

static bool bind_members(emq_call *call, int at, int width) {
    call->args.members = call->argv + at;
    call->args.member_width = width;
    call->args.member_count = (call->argc - at) / width;
    if ((call->argc - at) % width != 0) return refuse_arity(call);
    bool capped = call->command->flags & EMQ_CAPPED;
    return !capped || call->args.member_count <= EMQ_MEMBERS || emq_refuse(call, EMQ_ERR_MEMBERS);
}

/* Step 1. */
static bool bind_all(emq_call *call, bound_words *bounds) {
    const emq_command *command = call->command;
    int at = command->queue == EMQ_NO_QUEUE ? 1 : 2, width = 0;
    for (const emq_word *word = command->words; word->kind != EMQ_WORD_END; word++) {
        if (word->presence == EMQ_ONCE && !bind(call, bounds, word, &at)) return false;
        if (word->presence == EMQ_MANY) width++;
    }
    if (width > 0) return bind_members(call, at, width);
    if (at < call->argc && command->queue == EMQ_QUEUE_OPTIONAL) return refuse_arity(call); /* the server knows only the least */
    while (at < call->argc) {
        if (!bind_option(call, bounds, &at)) return false;
    }
    return true;
}

static bool check_name(emq_call *call, emq_word_kind kind, ValkeyModuleString *value) {
    if (kind != EMQ_WORD_GROUP && kind != EMQ_WORD_REPEAT) return true;
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(value, &length);
    if (kind == EMQ_WORD_GROUP) return emq_group_valid(text, length) || emq_refuse(call, EMQ_ERR_GROUP);
    return emq_repeat_name_valid(text, length) || emq_refuse(call, EMQ_ERR_REPEAT_NAME);
}

bool emq_args_number(emq_call *call, emq_number number, ValkeyModuleString *text, int64_t *value) {
    const number_rule *rule = &number_rules[number];
    int64_t high = rule->from_now ? rule->high - call->now_ms : rule->high;
    if (!emq_args_decimal(text, EMQ_STORED_DIGITS_MAX, value) || *value < rule->low || *value > high) {
        return emq_refuse(call, rule->refusal);
    }
    if (number == EMQ_N_IN) *value += call->now_ms;
    return true;
}

static bool check_number(emq_call *call, const bound_word *bound) {
    emq_number number = bound->word->kind == EMQ_WORD_WHEN ? (bound->at ? EMQ_N_AT : EMQ_N_IN) : bound->word->number;
    return emq_args_number(call, number, bound->value, target(call, bound->word));
}

static bool is_number(const emq_word *word) {
    return word->kind == EMQ_WORD_NUMBER || word->kind == EMQ_WORD_WHEN || word->kind == EMQ_WORD_ENDINGS;
}

/* Applies check to every repeated word of a kind, left to right. */
static bool check_members(emq_call *call, bool (*check)(emq_call *, emq_word_kind, ValkeyModuleString *)) {
    if (call->args.member_count == 0) return true;
    const emq_word *first = call->command->words;
    while (first->presence != EMQ_MANY) first++;
    for (int i = 0; i < call->args.member_count * call->args.member_width; i++) {
        if (!check(call, first[i % call->args.member_width].kind, call->args.members[i])) return false;
    }
    return true;
}

bool emq_args_parse(emq_call *call) {
    call->args.limit = EMQ_LIMIT_DEFAULT;
    call->args.count = EMQ_COUNT_DEFAULT;
    call->args.promote = call->args.reap = EMQ_SWEEP_DEFAULT;
    call->args.sources = EMQ_SOURCES;
    call->args.from[1] = EMQ_LANE;
    call->args.when_ms = EMQ_UNSAID;
    bound_words bounds = {.count = 0};
    if (!bind_all(call, &bounds)) return false;

    const char *name;
    size_t length;
    if (call->queue && !emq_queue_key_parse(call->queue, call->queue_length, &name, &length)) {
        return emq_refuse(call, EMQ_ERR_QUEUE_KEY);
    }
    for (int i = 0; i < bounds.count; i++) {
        if (!check_name(call, bounds.list[i].word->kind, bounds.list[i].value)) return false;
    }
    if (!check_members(call, check_name)) return false;
    for (int i = 0; i < bounds.count; i++) {
        const bound_word *bound = &bounds.list[i];
        if (is_number(bound->word)) {
            if (!check_number(call, bound)) return false;
        } else if (bound->value) {
            *(ValkeyModuleString **)target(call, bound->word) = bound->value;
        }
    }
    return emq_endings_check_numbers(call);
}

bool emq_args_check_id(emq_call *call, ValkeyModuleString *id) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(id, &length);
    switch (emq_job_id_check(text, length)) {
    case EMQ_JOB_ID_OK: return true;
    case EMQ_JOB_ID_SPACE: return emq_refuse(call, EMQ_ERR_KIND_SPACE);
    default: return emq_refuse(call, EMQ_ERR_KIND_SHAPE);
    }
}

static bool check_id(emq_call *call, emq_word_kind kind, ValkeyModuleString *value) {
    return kind != EMQ_WORD_ID || emq_args_check_id(call, value);
}

bool emq_args_check_ids(emq_call *call) {
    if (call->args.id && !emq_args_check_id(call, call->args.id)) return false;
    return check_members(call, check_id) && emq_endings_check_ids(call);
}
