/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command table, and what the server is told from it. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "call.h"

#define SINCE "0.1.0"
#define ACL_CATEGORY "emq"

/* Words of the grammar. The first argument is the member of emq_args that receives the value. */
#define ID(member) {EMQ_WORD_ID, EMQ_ONCE, #member, NULL, 0, offsetof(emq_args, member)}
#define BYTES(member) {EMQ_WORD_BYTES, EMQ_ONCE, #member, NULL, 0, offsetof(emq_args, member)}
#define NUMBER(member, name, rule) {EMQ_WORD_NUMBER, EMQ_ONCE, name, NULL, rule, offsetof(emq_args, member)}
#define WHEN {EMQ_WORD_WHEN, EMQ_ONCE, "when", NULL, 0, offsetof(emq_args, when_ms)}
#define OPTION_BYTES(member, name, keyword) {EMQ_WORD_BYTES, EMQ_OPTIONAL, name, keyword, 0, offsetof(emq_args, member)}
#define OPTION_NUMBER(member, name, keyword, rule) {EMQ_WORD_NUMBER, EMQ_OPTIONAL, name, keyword, rule, offsetof(emq_args, member)}
#define MANY(kind, name) {kind, EMQ_MANY, name, NULL, 0, 0}

#define LEASE NUMBER(lease_ms, "lease", EMQ_N_LEASE)
#define LIMIT OPTION_NUMBER(limit, "limit", "LIMIT", EMQ_N_LIMIT)
#define MAX OPTION_NUMBER(max, "max", "MAX", EMQ_N_MAX)

#define K(key) (UINT32_C(1) << (key))
#define PLACES (K(EMQ_PENDING) | K(EMQ_ACTIVE) | K(EMQ_SCHEDULE) | K(EMQ_DEAD) | K(EMQ_HELD))

/* An identifier for each row of the table. */
typedef enum verb_index {
#define X(verb) VERB_##verb,
    EMQ_COMMANDS(X)
#undef X
        VERBS
} verb_index;

#define VERB(verb, text) [VERB_##verb] = {.name = text, .handler = cmd_##verb, .revision = 1

static const emq_command commands[VERBS] = {
    /* clang-format off */
    VERB(enqueue, "emq.enqueue"), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(payload)}, .keys = K(EMQ_PENDING),
        .summary = "Admits a job that waits for a claim. Replies 1, or 0 when the id is known already.",
        .complexity = "O(log(N)) with N jobs waiting"},
    VERB(schedule, "emq.schedule"), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(payload), WHEN}, .keys = K(EMQ_SCHEDULE),
        .summary = "Admits a job that becomes due later. Replies 1, or 0 when the id is known already.",
        .complexity = "O(log(N)) with N jobs scheduled"},
    VERB(claim, "emq.claim"), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {LEASE}, .keys = K(EMQ_META) | K(EMQ_PENDING) | K(EMQ_ACTIVE),
        .summary = "Takes the oldest waiting job under a lease. Replies id, payload and token, or an empty array.",
        .complexity = "O(log(N)) with N jobs waiting or active"},
    VERB(complete, "emq.complete"), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), OPTION_BYTES(result, "result", "RESULT")},
        .keys = K(EMQ_ACTIVE) | K(EMQ_PENDING) | K(EMQ_COMPLETED),
        .summary = "Ends a claimed job as done and deletes it. Replies 1, or 0 when there is no such job.",
        .complexity = "O(log(N)) with N jobs active"},
    VERB(retry, "emq.retry"), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), NUMBER(delay_ms, "delay", EMQ_N_DELAY), NUMBER(max, "max", EMQ_N_MAX), BYTES(error)},
        .keys = K(EMQ_ACTIVE) | K(EMQ_PENDING) | K(EMQ_SCHEDULE) | K(EMQ_DEAD) | K(EMQ_FAILED),
        .summary = "Ends a run as failed: the job is scheduled again, or dead when max runs are used up.",
        .complexity = "O(log(N)) with N jobs active, scheduled or dead"},
    VERB(delay, "emq.delay"), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), WHEN}, .keys = K(EMQ_ACTIVE) | K(EMQ_PENDING) | K(EMQ_SCHEDULE),
        .summary = "Puts a claimed job off without counting the run.",
        .complexity = "O(log(N)) with N jobs active or scheduled"},
    VERB(extend, "emq.extend"), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), LEASE}, .keys = K(EMQ_ACTIVE),
        .summary = "Sets a new deadline for a lease. Replies 1, or -1 when there is no such job.",
        .complexity = "O(log(N)) with N jobs active"},
    VERB(promote, "emq.promote"), .flags = EMQ_WRITES,
        .words = {LIMIT}, .keys = K(EMQ_SCHEDULE) | K(EMQ_PENDING),
        .summary = "Moves scheduled jobs that are due to where they wait. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs scheduled or waiting"},
    VERB(reap, "emq.reap"), .flags = EMQ_WRITES,
        .words = {LIMIT, MAX}, .keys = K(EMQ_ACTIVE) | K(EMQ_PENDING) | K(EMQ_DEAD) | K(EMQ_FAILED),
        .summary = "Takes jobs back whose lease has lapsed; with MAX, jobs that used up their runs are dead. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs active or waiting"},
    VERB(state, "emq.state"), .flags = EMQ_FAST,
        .words = {ID(id)}, .keys = PLACES,
        .summary = "Where a job is: pending, active, scheduled, dead, awaiting_children, absent or unknown.",
        .complexity = "O(1)"},
    VERB(counts, "emq.counts"),
        .keys = PLACES | K(EMQ_LANES) | K(EMQ_COMPLETED) | K(EMQ_FAILED),
        .summary = "Numbers of jobs by state, and of those completed and failed so far.",
        .complexity = "O(G) with G lanes"},
    VERB(peek, "emq.peek"), .flags = EMQ_FAST,
        .words = {ID(id)},
        .summary = "All fields of a job, or null.",
        .complexity = "O(1)"},
    VERB(version, "emq.version"), .flags = EMQ_FAST, .queue = EMQ_QUEUE_OPTIONAL,
        .summary = "What the module is, and which executor the node's fence names.",
        .complexity = "O(1)"},
    VERB(capabilities, "tra.capabilities"), .flags = EMQ_FAST, .queue = EMQ_NO_QUEUE,
        .words = {MANY(EMQ_WORD_BYTES, "name")},
        .summary = "The verbs that are served, with their revisions; or 1 or 0 for each name given.",
        .complexity = "O(N) with N verbs"},
    /* clang-format on */
};

#define X(verb)                                                                                                                            \
    static int run_##verb(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {                                                     \
        return emq_call_run(&commands[VERB_##verb], ctx, argv, argc);                                                                      \
    }
EMQ_COMMANDS(X)
#undef X

#define X(verb) run_##verb,
static int (*const runners[VERBS])(ValkeyModuleCtx *, ValkeyModuleString **, int) = {EMQ_COMMANDS(X)};
#undef X

const emq_command *emq_commands_at(size_t i) {
    return i < VERBS ? &commands[i] : NULL;
}

/* Arguments as COMMAND DOCS shows them: the queue and the words, then the words of one member; zeroed entries end both. */
typedef struct documented {
    ValkeyModuleCommandArg args[EMQ_WORDS_MAX + 2];
    ValkeyModuleCommandArg member[EMQ_WORDS_MAX + 1];
} documented;

static const ValkeyModuleCommandArg when_args[] = {
    {.name = "in", .type = VALKEYMODULE_ARG_TYPE_INTEGER, .key_spec_index = -1, .token = "IN"},
    {.name = "at", .type = VALKEYMODULE_ARG_TYPE_INTEGER, .key_spec_index = -1, .token = "AT"},
    {.name = NULL},
};

static ValkeyModuleCommandArg document_word(const emq_word *word) {
    ValkeyModuleCommandArg arg = {.name = word->name, .type = VALKEYMODULE_ARG_TYPE_STRING, .key_spec_index = -1, .token = word->keyword};
    switch (word->kind) {
    case EMQ_WORD_NUMBER: arg.type = VALKEYMODULE_ARG_TYPE_INTEGER; break;
    case EMQ_WORD_FLAG: arg.type = VALKEYMODULE_ARG_TYPE_PURE_TOKEN; break;
    case EMQ_WORD_WHEN:
        arg.type = VALKEYMODULE_ARG_TYPE_ONEOF;
        arg.subargs = when_args;
        break;
    default: break;
    }
    if (word->presence == EMQ_OPTIONAL) arg.flags = VALKEYMODULE_CMD_ARG_OPTIONAL;
    return arg;
}

static void document(const emq_command *command, documented *docs) {
    ValkeyModuleCommandArg *arg = docs->args, *member = docs->member;
    if (command->queue != EMQ_NO_QUEUE) {
        int flags = command->queue == EMQ_QUEUE_OPTIONAL ? VALKEYMODULE_CMD_ARG_OPTIONAL : VALKEYMODULE_CMD_ARG_NONE;
        *arg++ = (ValkeyModuleCommandArg){.name = "queue", .type = VALKEYMODULE_ARG_TYPE_KEY, .flags = flags};
    }
    for (const emq_word *word = command->words; word->kind != EMQ_WORD_END; word++) {
        if (word->presence == EMQ_MANY) {
            *member++ = document_word(word);
        } else {
            *arg++ = document_word(word);
        }
    }
    int flags = VALKEYMODULE_CMD_ARG_MULTIPLE | (command->flags & EMQ_CAPPED ? 0 : VALKEYMODULE_CMD_ARG_OPTIONAL);
    if (member == docs->member + 1) {
        *arg = docs->member[0];
        arg->flags = flags;
    } else if (member > docs->member) {
        *arg = (ValkeyModuleCommandArg){
            .name = "member", .type = VALKEYMODULE_ARG_TYPE_BLOCK, .key_spec_index = -1, .flags = flags, .subargs = docs->member};
    }
}

static bool describe(ValkeyModuleCommand *registered, const emq_command *command) {
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

static bool create(ValkeyModuleCtx *ctx, verb_index verb) {
    const emq_command *command = &commands[verb];
    char flags[64], categories[64];
    const char *access = command->flags & EMQ_WRITES ? "write" : "readonly";
    bool fast = command->flags & EMQ_FAST;
    snprintf(flags, sizeof flags, "%s%s%s%s", access, command->flags & EMQ_GROWS ? " deny-oom" : "", fast ? " fast" : "",
             command->queue == EMQ_QUEUE ? "" : " no-mandatory-keys");
    snprintf(categories, sizeof categories, "%s %s " ACL_CATEGORY, command->flags & EMQ_WRITES ? "write" : "read", fast ? "fast" : "slow");
    int first = command->queue == EMQ_NO_QUEUE ? 0 : 1;

    if (ValkeyModule_CreateCommand(ctx, command->name, runners[verb], flags, first, first, first) != VALKEYMODULE_OK) return false;
    ValkeyModuleCommand *registered = ValkeyModule_GetCommand(ctx, command->name);
    return registered && describe(registered, command) && ValkeyModule_SetCommandACLCategories(registered, categories) == VALKEYMODULE_OK;
}

bool emq_commands_register(ValkeyModuleCtx *ctx) {
    /* The category of an earlier load of this server's life is still there, and serves. */
    if (ValkeyModule_AddACLCategory(ctx, ACL_CATEGORY) != VALKEYMODULE_OK && errno != EBUSY) {
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq: the server refuses the ACL category " ACL_CATEGORY);
        return false;
    }
    for (int i = 0; i < VERBS; i++) {
        if (create(ctx, (verb_index)i)) continue;
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq: the server refuses the command %s", commands[i].name);
        return false;
    }
    return true;
}
