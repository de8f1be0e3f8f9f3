/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiters.h"

#include <stdio.h>

#include "bridge.h"
#include "lines.h"

#define MOST_DEFAULT 10000
#define MOST_MAX 1000000

typedef struct emq_waiter {
    emq_stander stander;
    uint64_t alarm; /* a timer, 0 when there is none */
    const emq_command *command;
    emq_args args; /* the numbers; strings are not kept */
    emq_verdicts verdicts;
} emq_waiter;

static long long most = MOST_DEFAULT;

/* The server ends waits when it looks at the clock, which on an idle one is not often; an alarm makes it look. */
static void on_alarm(ValkeyModuleCtx *ctx, void *data);

static void set_alarm(ValkeyModuleCtx *ctx, emq_waiter *waiter) {
    int64_t left_ms = waiter->stander.cut_ms - ValkeyModule_Milliseconds();
    waiter->alarm = ValkeyModule_CreateTimer(ctx, left_ms > 0 ? left_ms : 1, on_alarm, waiter);
}

static void on_alarm(ValkeyModuleCtx *ctx, void *data) {
    set_alarm(ctx, data); /* in case the clock that ends the wait is not there yet */
}

static void leave(ValkeyModuleCtx *ctx, emq_waiter *waiter, bool given_up) {
    if (waiter->alarm) ValkeyModule_StopTimer(ctx, waiter->alarm, NULL);
    waiter->alarm = 0;
    emq_lines_leave(ctx, &waiter->stander, given_up);
}

typedef struct looking {
    emq_waiter *waiter;
    bool answered;
} looking;

/* Whether the server would let the client write now, had it just asked: that a slot is not on its way to another node, that
 * there are enough replicas, that the disk works. */
static bool may_write(emq_call *call) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(call->ctx, "ZREM", "DSss", call->argv[1], call->argv[1]); /* a dry run */
    bool refused = reply && ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ERROR;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return !refused;
}

/* Who may not write is told nothing, asks again, and is refused or sent on by the server itself. */
static void look(emq_call *call, void *data) {
    looking *looks = data;
    call->args = looks->waiter->args;
    if (may_write(call)) {
        looks->answered = emq_next_again(call, looks->waiter->stander.cut_ms, &looks->waiter->verdicts);
    } else {
        emq_next_nothing(call, &looks->waiter->verdicts);
        looks->answered = true;
    }
    if (looks->answered) leave(call->ctx, looks->waiter, false);
}

static int on_signal(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    looking looks = {.waiter = ValkeyModule_GetBlockedClientPrivateData(ctx)};
    if (!looks.waiter->stander.queue || !emq_lines_may_look(ctx, &looks.waiter->stander)) return VALKEYMODULE_ERR;
    emq_call_resume(looks.waiter->command, ctx, argv, argc, look, &looks);
    return looks.answered ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

static int on_time_out(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    emq_waiter *waiter = ValkeyModule_GetBlockedClientPrivateData(ctx);
    emq_call call = {.ctx = ctx};
    emq_next_nothing(&call, &waiter->verdicts);
    leave(ctx, waiter, true);
    return VALKEYMODULE_OK;
}

static void on_gone(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *client) {
    (void)client;
    leave(ctx, ValkeyModule_GetBlockedClientPrivateData(ctx), true);
}

static void on_free(ValkeyModuleCtx *ctx, void *data) {
    emq_waiter *waiter = data;
    leave(ctx, waiter, false);
    emq_verdicts_free(&waiter->verdicts);
    ValkeyModule_FreeString(NULL, waiter->stander.key);
    ValkeyModule_Free(waiter);
}

/* A name that is never stored, in the slot of the queue. */
static ValkeyModuleString *name_key(emq_call *call) {
    static unsigned long long number;
    char suffix[32], text[EMQ_KEY_MAX];
    snprintf(suffix, sizeof suffix, "waiter:%llu", ++number);
    return ValkeyModule_CreateString(NULL, text, emq_key_fixed(text, call->queue, call->queue_length, suffix));
}

static bool may_wait(emq_call *call) {
    static const int hindrances = VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING | VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                                  VALKEYMODULE_CTX_FLAGS_REPLICATED | VALKEYMODULE_CTX_FLAGS_REPLICA | VALKEYMODULE_CTX_FLAGS_LOADING |
                                  VALKEYMODULE_CTX_FLAGS_ASYNC_LOADING;
    return emq_lines.waiters < (uint64_t)most && !(ValkeyModule_GetContextFlags(call->ctx) & hindrances);
}

static unsigned wants_of(const emq_args *args) {
    unsigned wants = args->promote > 0 ? EMQ_READY_DUE : 0;
    for (int i = 0; i < args->sources; i++) wants |= EMQ_READY(args->from[i]);
    return wants;
}

bool emq_wait(emq_call *call, int64_t cut_ms, emq_verdicts *verdicts) {
    if (!may_wait(call)) return false;
    emq_waiter *waiter = ValkeyModule_Calloc(1, sizeof *waiter);
    waiter->stander.wants = wants_of(&call->args);
    waiter->stander.cut_ms = cut_ms;
    waiter->command = call->command;
    waiter->args = call->args;
    waiter->stander.key = name_key(call);

    /* The server ends a wait a millisecond after its time-out. No time at all would be for ever. */
    int64_t left_ms = cut_ms - ValkeyModule_Milliseconds() - 1;
    ValkeyModuleBlockedClient *client =
        ValkeyModule_BlockClientOnKeysWithFlags(call->ctx, on_signal, on_time_out, on_free, left_ms > 0 ? left_ms : 1, &waiter->stander.key,
                                                1, waiter, VALKEYMODULE_BLOCK_UNBLOCK_DELETED);
    if (!client) {
        ValkeyModule_FreeString(NULL, waiter->stander.key);
        ValkeyModule_Free(waiter);
        return false;
    }
    ValkeyModule_SetDisconnectCallback(client, on_gone);
    emq_bridge_open(call->ctx);
    waiter->verdicts = *verdicts;
    *verdicts = (emq_verdicts){NULL, 0};
    emq_lines_join(call, &waiter->stander);
    set_alarm(call->ctx, waiter);
    return true;
}

long long emq_waiters_most(void) {
    return most;
}

static long long get_most(const char *name, void *data) {
    (void)name, (void)data;
    return most;
}

static int set_most(const char *name, long long value, void *data, ValkeyModuleString **error) {
    (void)name, (void)data, (void)error;
    most = value;
    return VALKEYMODULE_OK;
}

bool emq_waiters_load(ValkeyModuleCtx *ctx) {
    return ValkeyModule_RegisterNumericConfig(ctx, "max-waiters", MOST_DEFAULT, VALKEYMODULE_CONFIG_DEFAULT, 0, MOST_MAX, get_most,
                                              set_most, NULL, NULL) == VALKEYMODULE_OK &&
           ValkeyModule_LoadConfigs(ctx) == VALKEYMODULE_OK;
}
