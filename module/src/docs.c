/* SPDX-License-Identifier: BSD-3-Clause */
#include "docs.h"

#include "args.h"

#define SINCE "0.1.0"

/* Arguments have the names that refusals use; what people are shown says the unit, too. */
#define MILLISECONDS "milliseconds"
#define INSTANT "unix-time-milliseconds"
#define LEASE "lease-milliseconds"
#define DELAY "delay-milliseconds"

static const char *const units[EMQ_NUMBERS] = {
    [EMQ_N_LEASE] = LEASE,        [EMQ_N_DELAY] = DELAY,  [EMQ_N_IN] = MILLISECONDS,    [EMQ_N_AT] = INSTANT,
    [EMQ_N_EVERY] = MILLISECONDS, [EMQ_N_NEXT] = INSTANT, [EMQ_N_BLOCK] = MILLISECONDS,
};

/* Parts of the grammar that are the same wherever they stand. */
#define END \
    { .name = NULL }
#define STRING(text) \
    { .name = text, .type = VALKEYMODULE_ARG_TYPE_STRING, .key_spec_index = -1 }
#define INTEGER(text, keyword, shown) \
    { .name = text, .type = VALKEYMODULE_ARG_TYPE_INTEGER, .key_spec_index = -1, .token = keyword, .display_text = shown }
#define TOKEN(text, keyword) \
    { .name = text, .type = VALKEYMODULE_ARG_TYPE_PURE_TOKEN, .key_spec_index = -1, .token = keyword }
#define ONE_OF(text, choices, how) \
    { .name = text, .type = VALKEYMODULE_ARG_TYPE_ONEOF, .key_spec_index = -1, .flags = how, .subargs = choices }
#define BLOCK(text, keyword, parts) \
    { .name = text, .type = VALKEYMODULE_ARG_TYPE_BLOCK, .key_spec_index = -1, .token = keyword, .subargs = parts }
#define ALWAYS VALKEYMODULE_CMD_ARG_NONE
#define OPTIONAL VALKEYMODULE_CMD_ARG_OPTIONAL
#define MULTIPLE VALKEYMODULE_CMD_ARG_MULTIPLE

typedef const ValkeyModuleCommandArg arguments[];

static arguments when_args = {INTEGER("in", "IN", MILLISECONDS), INTEGER("at", "AT", INSTANT), END};

static arguments source_args = {TOKEN("flat", "FLAT"), TOKEN("lanes", "LANES"), END};
static arguments from_args = {ONE_OF("first", source_args, ALWAYS), ONE_OF("second", source_args, OPTIONAL), END};

static arguments complete_args = {STRING("id"), STRING("token"), END};
static arguments result_args = {STRING("id"), STRING("token"), STRING("result"), END};
static arguments retry_args = {STRING("id"), STRING("token"), INTEGER("delay", NULL, DELAY), INTEGER("max", NULL, NULL), STRING("error"),
                               END};
static arguments delay_args = {STRING("id"), STRING("token"), ONE_OF("when", when_args, ALWAYS), END};
static arguments ending_args = {BLOCK("complete", "COMPLETE", complete_args), BLOCK("with-result", "RESULT", result_args),
                                BLOCK("retry", "RETRY", retry_args), BLOCK("delay", "DELAY", delay_args), END};
static arguments settle_args = {INTEGER("count", NULL, NULL), ONE_OF("ending", ending_args, MULTIPLE), END};

static ValkeyModuleCommandArg document_word(const emq_word *word) {
    ValkeyModuleCommandArg arg = {.name = word->name, .type = VALKEYMODULE_ARG_TYPE_STRING, .key_spec_index = -1, .token = word->keyword};
    if (word->presence == EMQ_OPTIONAL) arg.flags = OPTIONAL;
    switch (word->kind) {
    case EMQ_WORD_NUMBER:
        arg.type = VALKEYMODULE_ARG_TYPE_INTEGER;
        arg.display_text = units[word->number];
        break;
    case EMQ_WORD_FLAG: arg.type = VALKEYMODULE_ARG_TYPE_PURE_TOKEN; break;
    case EMQ_WORD_WHEN:
        arg.type = VALKEYMODULE_ARG_TYPE_ONEOF;
        arg.subargs = when_args;
        break;
    case EMQ_WORD_FROM:
        arg.type = VALKEYMODULE_ARG_TYPE_BLOCK;
        arg.subargs = from_args;
        break;
    case EMQ_WORD_ENDINGS:
        arg.type = VALKEYMODULE_ARG_TYPE_BLOCK;
        arg.subargs = settle_args;
        break;
    default: break;
    }
    return arg;
}

/* The queue and the words, then the words of one member; zeroed entries end both. */
typedef struct documented {
    ValkeyModuleCommandArg args[EMQ_WORDS_MAX + 2];
    ValkeyModuleCommandArg member[EMQ_WORDS_MAX + 1];
} documented;

static void document(const emq_command *command, documented *docs) {
    ValkeyModuleCommandArg *arg = docs->args, *member = docs->member;
    if (command->queue != EMQ_NO_QUEUE) {
        int flags = command->queue == EMQ_QUEUE_OPTIONAL ? OPTIONAL : ALWAYS;
        *arg++ = (ValkeyModuleCommandArg){.name = "queue", .type = VALKEYMODULE_ARG_TYPE_KEY, .flags = flags};
    }
    for (const emq_word *word = command->words; word->kind != EMQ_WORD_END; word++) {
        if (word->presence == EMQ_MANY) {
            *member++ = document_word(word);
        } else {
            *arg++ = document_word(word);
        }
    }
    int flags = MULTIPLE | (command->flags & EMQ_CAPPED ? 0 : OPTIONAL);
    if (member == docs->member + 1) {
        *arg = docs->member[0];
        arg->flags = flags;
    } else if (member > docs->member) {
        *arg = (ValkeyModuleCommandArg)BLOCK("member", NULL, docs->member);
        arg->flags = flags;
    }
}

bool emq_describe(ValkeyModuleCommand *registered, const emq_command *command) {
    documented docs = {.args = {{.name = NULL}}};
    document(command, &docs);
    /* The queue key itself never exists: the command has no access to its content, only rights over the queue. */
    uint64_t rights = command->flags & EMQ_WRITES ? VALKEYMODULE_CMD_KEY_RW | VALKEYMODULE_CMD_KEY_ACCESS | VALKEYMODULE_CMD_KEY_UPDATE
                                                  : VALKEYMODULE_CMD_KEY_RO | VALKEYMODULE_CMD_KEY_ACCESS;
    ValkeyModuleCommandKeySpec keys[] = {
        {.flags = rights, .begin_search_type = VALKEYMODULE_KSPEC_BS_INDEX, .bs.index.pos = 1},
        {.begin_search_type = VALKEYMODULE_KSPEC_BS_INVALID},
    };
    ValkeyModuleCommandInfo info = {
        .version = VALKEYMODULE_COMMAND_INFO_VERSION,
        .summary = command->summary,
        .complexity = command->complexity,
        .since = SINCE,
        .arity = emq_args_arity(command),
        .key_specs = command->queue == EMQ_NO_QUEUE ? NULL : keys,
        .args = docs.args[0].name ? docs.args : NULL,
    };
    return ValkeyModule_SetCommandInfo(registered, &info) == VALKEYMODULE_OK;
}
