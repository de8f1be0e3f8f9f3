/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command table, and its registration. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "docs.h"
#include "stats.h"
#include "transitions.h"

/* ACL categories: of all commands, and of those that a role needs. */
static const struct category {
    const char *name;
    unsigned roles;
} categories[] = {
    {"emq", EMQ_PRODUCES | EMQ_CONSUMES | EMQ_OPERATES},
    {"emq_produce", EMQ_PRODUCES},
    {"emq_consume", EMQ_CONSUMES},
    {"emq_operate", EMQ_OPERATES},
};

#define CATEGORIES (sizeof categories / sizeof *categories)

/* Words of the grammar. The first argument is the member of emq_args that receives the value. */
#define ID(member) \
    { EMQ_WORD_ID, EMQ_ONCE, #member, NULL, 0, offsetof(emq_args, member) }
#define BYTES_AS(member, name) \
    { EMQ_WORD_BYTES, EMQ_ONCE, name, NULL, 0, offsetof(emq_args, member) }
#define BYTES(member) BYTES_AS(member, #member)
#define NUMBER(member, name, rule) \
    { EMQ_WORD_NUMBER, EMQ_ONCE, name, NULL, rule, offsetof(emq_args, member) }
#define WHEN \
    { EMQ_WORD_WHEN, EMQ_ONCE, "when", NULL, 0, offsetof(emq_args, when_ms) }
#define GROUP \
    { EMQ_WORD_GROUP, EMQ_ONCE, "group", NULL, 0, offsetof(emq_args, group) }
#define REPEAT_NAME \
    { EMQ_WORD_REPEAT, EMQ_ONCE, "name", NULL, 0, offsetof(emq_args, name) }
#define EVERY \
    { EMQ_WORD_NUMBER, EMQ_ONCE, "every", "EVERY", EMQ_N_EVERY, offsetof(emq_args, every_ms) }
#define FLAG(member, keyword) \
    { EMQ_WORD_FLAG, EMQ_OPTIONAL, #member, keyword, 0, offsetof(emq_args, member) }
#define OPTION_BYTES(member, name, keyword) \
    { EMQ_WORD_BYTES, EMQ_OPTIONAL, name, keyword, 0, offsetof(emq_args, member) }
#define OPTION_NUMBER(member, name, keyword, rule) \
    { EMQ_WORD_NUMBER, EMQ_OPTIONAL, name, keyword, rule, offsetof(emq_args, member) }
#define FROM \
    { EMQ_WORD_FROM, EMQ_OPTIONAL, "source", "FROM", 0, 0 }
#define SETTLE \
    { EMQ_WORD_ENDINGS, EMQ_OPTIONAL, "settle", "SETTLE", EMQ_N_SETTLE, offsetof(emq_args, settle) }
#define MANY(kind, name) \
    { kind, EMQ_MANY, name, NULL, 0, 0 }

#define LEASE NUMBER(lease_ms, "lease", EMQ_N_LEASE)
#define LIMIT OPTION_NUMBER(limit, "limit", "LIMIT", EMQ_N_LIMIT)
#define MAX OPTION_NUMBER(max, "max", "MAX", EMQ_N_MAX)

#define K EMQ_BIT
#define PLACES (K(EMQ_PENDING) | K(EMQ_ACTIVE) | K(EMQ_SCHEDULE) | K(EMQ_DEAD) | K(EMQ_HELD))

/* Who needs a command. */
#define PRODUCE EMQ_PRODUCES
#define CONSUME EMQ_CONSUMES
#define OPERATE EMQ_OPERATES
#define ANYBODY (EMQ_PRODUCES | EMQ_CONSUMES | EMQ_OPERATES)

#define VERB(verb, text, whose) [EMQ_COMMAND_##verb] = {.name = text, .handler = cmd_##verb, .roles = whose, .revision = 1

static const emq_command commands[EMQ_COMMAND_COUNT] =
    {
        /* clang-format off */
    VERB(enqueue, "emq.enqueue", PRODUCE), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(payload)}, .keys = K(EMQ_PENDING),
        .summary = "Admits a job that waits for a claim. Replies 1, or 0 when the id is known already.",
        .complexity = "O(log(N)) with N jobs waiting"},
    VERB(schedule, "emq.schedule", PRODUCE), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(payload), WHEN}, .keys = K(EMQ_SCHEDULE),
        .summary = "Admits a job that becomes due later. Replies 1, or 0 when the id is known already.",
        .complexity = "O(log(N)) with N jobs scheduled"},
    VERB(claim, "emq.claim", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {LEASE}, .keys = EMQ_SEES_CLAIM,
        .summary = "Takes the oldest waiting job under a lease. Replies id, payload and token, or an empty array.",
        .complexity = "O(log(N)) with N jobs waiting or active"},
    VERB(complete, "emq.complete", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), OPTION_BYTES(result, "result", "RESULT")},
        .keys = EMQ_SEES_COMPLETE,
        .summary = "Ends a claimed job as done and deletes it. Replies 1, or 0 when there is no such job.",
        .complexity = "O(log(N)) with N jobs active"},
    VERB(retry, "emq.retry", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), NUMBER(delay_ms, "delay", EMQ_N_DELAY), NUMBER(max, "max", EMQ_N_MAX), BYTES(error)},
        .keys = EMQ_SEES_RETRY,
        .summary = "Ends a run as failed: the job is scheduled again, or dead when max runs are used up.",
        .complexity = "O(log(N)) with N jobs active, scheduled or dead"},
    VERB(delay, "emq.delay", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), WHEN}, .keys = EMQ_SEES_DELAY,
        .summary = "Puts a claimed job off without counting the run.",
        .complexity = "O(log(N)) with N jobs active or scheduled"},
    VERB(extend, "emq.extend", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), BYTES(token), LEASE}, .keys = K(EMQ_ACTIVE),
        .summary = "Sets a new deadline for a lease. Replies 1, or -1 when there is no such job.",
        .complexity = "O(log(N)) with N jobs active"},
    VERB(promote, "emq.promote", CONSUME | OPERATE), .flags = EMQ_WRITES,
        .words = {LIMIT}, .keys = EMQ_SEES_PROMOTE,
        .summary = "Moves scheduled jobs that are due to where they wait. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs scheduled or waiting"},
    VERB(reap, "emq.reap", CONSUME | OPERATE), .flags = EMQ_WRITES,
        .words = {LIMIT, MAX}, .keys = EMQ_SEES_REAP,
        .summary = "Takes jobs back whose lease has lapsed; with MAX, jobs that used up their runs are dead. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs active or waiting"},
    VERB(state, "emq.state", ANYBODY), .flags = EMQ_FAST,
        .words = {ID(id)}, .keys = PLACES,
        .summary = "Where a job is: pending, active, scheduled, dead, awaiting_children, absent or unknown.",
        .complexity = "O(1)"},
    VERB(counts, "emq.counts", ANYBODY),
        .keys = PLACES | K(EMQ_LANES) | K(EMQ_COMPLETED) | K(EMQ_FAILED),
        .summary = "Numbers of jobs by state, and of those completed and failed so far.",
        .complexity = "O(G) with G lanes"},
    VERB(peek, "emq.peek", CONSUME | OPERATE), .flags = EMQ_FAST,
        .words = {ID(id)},
        .summary = "All fields of a job, or null.",
        .complexity = "O(1)"},
    VERB(menqueue, "emq.menqueue", PRODUCE), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_CAPPED,
        .words = {MANY(EMQ_WORD_ID, "id"), MANY(EMQ_WORD_BYTES, "payload")}, .keys = K(EMQ_PENDING),
        .summary = "Admits many jobs. Replies 1 or 0 for each, as EMQ.ENQUEUE does.",
        .complexity = "O(M*log(N)) with M jobs and N jobs waiting"},
    VERB(mclaim, "emq.mclaim", CONSUME), .flags = EMQ_WRITES,
        .words = {LEASE, NUMBER(count, "count", EMQ_N_COUNT)}, .keys = EMQ_SEES_CLAIM,
        .summary = "Takes up to count waiting jobs, oldest first, under one deadline.",
        .complexity = "O(M*log(N)) with M jobs taken and N jobs waiting or active"},
    VERB(mcomplete, "emq.mcomplete", CONSUME), .flags = EMQ_WRITES | EMQ_CAPPED,
        .words = {MANY(EMQ_WORD_ID, "id"), MANY(EMQ_WORD_BYTES, "token")},
        .keys = EMQ_SEES_COMPLETE,
        .summary = "Ends many claimed jobs as done. Replies 1 for each, 0 when there is none, -1 when its lease is lost.",
        .complexity = "O(M*log(N)) with M jobs and N jobs active"},
    VERB(mextend, "emq.mextend", CONSUME), .flags = EMQ_WRITES | EMQ_CAPPED,
        .words = {LEASE, MANY(EMQ_WORD_ID, "id"), MANY(EMQ_WORD_BYTES, "token")}, .keys = K(EMQ_ACTIVE),
        .summary = "Sets one new deadline for many leases. Replies the ids whose lease is lost.",
        .complexity = "O(M*log(N)) with M jobs and N jobs active"},
    VERB(genqueue, "emq.genqueue", PRODUCE), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {GROUP, ID(id), BYTES(payload)}, .lane = true,
        .summary = "Admits a job of a group, which waits in the group's lane. Replies 1, or 0 when the id is known already.",
        .complexity = "O(log(N)) with N jobs in the lane"},
    VERB(gclaim, "emq.gclaim", CONSUME), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {LEASE}, .keys = EMQ_SEES_GCLAIM,
        .summary = "Takes the oldest job of the lane whose turn it is. Replies id, payload, token and group, or an empty array.",
        .complexity = "O(log(N)) with N jobs in the lane or active"},
    VERB(gwclaim, "emq.gwclaim", CONSUME), .flags = EMQ_WRITES,
        .words = {LEASE}, .keys = EMQ_SEES_GCLAIM | K(EMQ_GWEIGHT),
        .summary = "Takes as many jobs of the lane whose turn it is as its weight says.",
        .complexity = "O(M*log(N)) with M jobs taken and N jobs in the lane or active"},
    VERB(gmclaim, "emq.gmclaim", CONSUME), .flags = EMQ_WRITES,
        .words = {LEASE, NUMBER(count, "count", EMQ_N_COUNT)}, .keys = EMQ_SEES_GCLAIM,
        .summary = "Takes up to count jobs of the lane whose turn it is.",
        .complexity = "O(M*log(N)) with M jobs taken and N jobs in the lane or active"},
    VERB(gpause, "emq.gpause", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {GROUP}, .keys = K(EMQ_GWEIGHT), .lane = true,
        .summary = "Parks a group: its jobs wait, running ones go on.",
        .complexity = "O(R) with R lanes in the ring"},
    VERB(gresume, "emq.gresume", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {GROUP}, .keys = K(EMQ_GWEIGHT), .lane = true,
        .summary = "Ends the parking of a group.",
        .complexity = "O(R) with R lanes in the ring"},
    VERB(glimit, "emq.glimit", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {GROUP, NUMBER(ceiling, "ceiling", EMQ_N_CEILING)}, .keys = K(EMQ_GWEIGHT), .lane = true,
        .summary = "Sets how many jobs of a group may be active at once; 0 is no ceiling.",
        .complexity = "O(R) with R lanes in the ring"},
    VERB(gweight, "emq.gweight", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {GROUP, NUMBER(weight, "weight", EMQ_N_WEIGHT)}, .keys = K(EMQ_GWEIGHT), .lane = true,
        .summary = "Sets how many jobs EMQ.GWCLAIM takes of a group at once; 0 is the default of 1.",
        .complexity = "O(1)"},
    VERB(greassign, "emq.greassign", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), GROUP}, .lane = true,
        .summary = "Moves a waiting job to another group. Replies 1, 0 in that group already, -1 no such job or no group, -2 not waiting.",
        .complexity = "O(log(N)) with N jobs in either lane"},
    VERB(gdrain, "emq.gdrain", OPERATE), .flags = EMQ_WRITES,
        .words = {GROUP, LIMIT}, .lane = true,
        .summary = "Deletes waiting jobs of a group. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs in the lane"},
    VERB(greap, "emq.greap", CONSUME | OPERATE), .flags = EMQ_WRITES,
        .words = {GROUP, LIMIT, MAX}, .keys = EMQ_SEES_REAP, .lane = true,
        .summary = "Takes jobs of a group back whose lease has lapsed, as EMQ.REAP does.",
        .complexity = "O(S+L*log(N)) with S lapsed leases looked at, limit L and N jobs active or waiting"},
    VERB(gcounts, "emq.gcounts", ANYBODY),
        .words = {MANY(EMQ_WORD_GROUP, "group")}, .keys = K(EMQ_LANES) | K(EMQ_GACTIVE),
        .summary = "Group, waiting and active jobs of each group named, or of every group that has any.",
        .complexity = "O(G*log(G)) with G groups"},
    VERB(pause, "emq.pause", OPERATE), .flags = EMQ_WRITES | EMQ_FAST, .keys = K(EMQ_META),
        .summary = "Stops claims; everything else goes on.",
        .complexity = "O(1)"},
    VERB(resume, "emq.resume", OPERATE), .flags = EMQ_WRITES | EMQ_FAST, .keys = K(EMQ_META),
        .summary = "Lets claims go on.",
        .complexity = "O(1)"},
    VERB(drain, "emq.drain", OPERATE), .flags = EMQ_WRITES,
        .words = {FLAG(scheduled, "SCHEDULED"), LIMIT}, .keys = K(EMQ_PENDING) | K(EMQ_SCHEDULE),
        .summary = "Deletes waiting jobs that have no group, and on request scheduled ones. Replies their number.",
        .complexity = "O(L*log(N)) with limit L and N jobs waiting or scheduled"},
    VERB(obliterate, "emq.obliterate", OPERATE), .flags = EMQ_WRITES,
        .words = {FLAG(force, "FORCE"), LIMIT},
        .keys = K(EMQ_META) | PLACES | K(EMQ_LANES) | K(EMQ_REPEAT) | K(EMQ_OUTBOX) | K(EMQ_FAILED),
        .summary = "Deletes a paused queue, step by step. Replies 1 when there is more, 0 when nothing is left.",
        .complexity = "O(G+L*log(N)) with G lanes, limit L and N jobs"},
    VERB(remove, "emq.remove", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id), FLAG(force, "FORCE")}, .keys = PLACES,
        .summary = "Deletes a job; only by force when it is active or marked as locked. Replies 1, or -1 when there is none.",
        .complexity = "O(log(N)) with N jobs in its place"},
    VERB(reprocess, "emq.reprocess", OPERATE), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {ID(id)}, .keys = K(EMQ_DEAD) | K(EMQ_PENDING),
        .summary = "Gives a dead job new runs. Replies 1, or -1 when there is no such job.",
        .complexity = "O(log(N)) with N jobs dead or waiting"},
    VERB(update, "emq.update", PRODUCE | OPERATE), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(payload)},
        .summary = "Replaces the payload of a job. Replies 1, or -1 when there is none.",
        .complexity = "O(1)"},
    VERB(progress, "emq.progress", CONSUME), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES(text)},
        .summary = "Stores and publishes how far a job is. Replies 1, or -1 when there is none.",
        .complexity = "O(N) with N subscribers"},
    VERB(log, "emq.log", CONSUME), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {ID(id), BYTES_AS(text, "line"), OPTION_NUMBER(keep, "keep", "KEEP", EMQ_N_KEEP)},
        .summary = "Adds a line to the log of a job. Replies the number of lines, or -1 when there is no such job.",
        .complexity = "O(1), or O(N) with N lines dropped"},
    VERB(repeat, "emq.repeat", ANYBODY), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {REPEAT_NAME, EVERY, BYTES_AS(payload, "template"), OPTION_NUMBER(when_ms, "first", "AT", EMQ_N_AT)},
        .keys = K(EMQ_REPEAT),
        .summary = "Names a job that recurs. Replies 1, or 0 when the name is taken.",
        .complexity = "O(log(N)) with N repeats"},
    VERB(unrepeat, "emq.unrepeat", ANYBODY), .flags = EMQ_WRITES | EMQ_FAST,
        .words = {REPEAT_NAME}, .keys = K(EMQ_REPEAT),
        .summary = "Ends a recurrence. Replies 1, or 0 when there is none of that name.",
        .complexity = "O(log(N)) with N repeats"},
    VERB(fire, "emq.fire", CONSUME), .flags = EMQ_WRITES | EMQ_GROWS | EMQ_FAST,
        .words = {REPEAT_NAME, NUMBER(next_ms, "next", EMQ_N_NEXT), ID(id)}, .keys = K(EMQ_REPEAT) | K(EMQ_PENDING),
        .summary = "Admits the job of a recurrence that is due, and advances it. Replies 1, or 0 when another pump was first.",
        .complexity = "O(log(N)) with N repeats or jobs waiting"},
    VERB(next, "emq.next", CONSUME), .flags = EMQ_WRITES | EMQ_BLOCKS,
        .words = {LEASE, OPTION_NUMBER(count, "count", "COUNT", EMQ_N_COUNT), FROM,
                  OPTION_NUMBER(block_ms, "block", "BLOCK", EMQ_N_BLOCK), OPTION_NUMBER(promote, "promote", "PROMOTE", EMQ_N_PROMOTE),
                  OPTION_NUMBER(reap, "reap", "REAP", EMQ_N_REAP), MAX, SETTLE},
        .summary = "A worker's round: settles jobs, promotes and reaps, takes the next jobs, and waits when there are none.",
        .complexity = "O((S+P+R+M)*log(N)) with S jobs settled, P promoted, R reaped, M taken and N jobs in any place"},
    VERB(version, "emq.version", ANYBODY), .flags = EMQ_FAST, .queue = EMQ_QUEUE_OPTIONAL,
        .summary = "What the module is, and which executor the node's fence names.",
        .complexity = "O(1)"},
    VERB(capabilities, "tra.capabilities", ANYBODY), .flags = EMQ_FAST, .queue = EMQ_NO_QUEUE,
        .words = {MANY(EMQ_WORD_BYTES, "name")},
        .summary = "The verbs that are served, with their revisions; or 1 or 0 for each name given.",
        .complexity = "O(N) with N verbs, or O(M*N) with M names given"},
/* clang-format on */
}
;

#define X(verb)                                                                        \
    static int run_##verb(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) { \
        emq_counted.calls[EMQ_COMMAND_##verb]++;                                       \
        return emq_call_run(&commands[EMQ_COMMAND_##verb], ctx, argv, argc);           \
    }
EMQ_COMMANDS(X)
#undef X

#define X(verb) run_##verb,
static int (*const runners[EMQ_COMMAND_COUNT])(ValkeyModuleCtx *, ValkeyModuleString **, int) = {EMQ_COMMANDS(X)};
#undef X

const emq_command *emq_commands_at(size_t i) {
    return i < EMQ_COMMAND_COUNT ? &commands[i] : NULL;
}

/* Categories of the server by what the command does, ours by who needs it. */
static bool categorize(ValkeyModuleCommand *registered, const emq_command *command) {
    char text[128];
    int length = snprintf(text, sizeof text, "%s %s%s", command->flags & EMQ_WRITES ? "write" : "read",
                          command->flags & EMQ_FAST ? "fast" : "slow", command->flags & EMQ_BLOCKS ? " blocking" : "");
    for (size_t i = 0; i < CATEGORIES; i++) {
        if (!(command->roles & categories[i].roles)) continue;
        length += snprintf(text + length, sizeof text - (size_t)length, " %s", categories[i].name);
    }
    return ValkeyModule_SetCommandACLCategories(registered, text) == VALKEYMODULE_OK;
}

static bool create(ValkeyModuleCtx *ctx, emq_command_index verb) {
    const emq_command *command = &commands[verb];
    char flags[64];
    snprintf(flags, sizeof flags, "%s%s%s%s%s", command->flags & EMQ_WRITES ? "write" : "readonly",
             command->flags & EMQ_GROWS ? " deny-oom" : "", command->flags & EMQ_FAST ? " fast" : "",
             command->flags & EMQ_BLOCKS ? " blocking" : "", command->queue == EMQ_QUEUE ? "" : " no-mandatory-keys");
    int first = command->queue == EMQ_NO_QUEUE ? 0 : 1;

    if (ValkeyModule_CreateCommand(ctx, command->name, runners[verb], flags, first, first, first) != VALKEYMODULE_OK) return false;
    ValkeyModuleCommand *registered = ValkeyModule_GetCommand(ctx, command->name);
    return registered && emq_describe(registered, command) && categorize(registered, command);
}

bool emq_commands_register(ValkeyModuleCtx *ctx) {
    for (size_t i = 0; i < CATEGORIES; i++) {
        /* Those of an earlier load of this server's life are still there, and serve. */
        if (ValkeyModule_AddACLCategory(ctx, categories[i].name) == VALKEYMODULE_OK || errno == EBUSY) continue;
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq: the server refuses the ACL category %s", categories[i].name);
        return false;
    }
    for (int i = 0; i < EMQ_COMMAND_COUNT; i++) {
        if (create(ctx, (emq_command_index)i)) continue;
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq: the server refuses the command %s", commands[i].name);
        return false;
    }
    return true;
}
