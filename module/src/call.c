/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <string.h>

#include "effects.h"
#include "fence.h"
#include "lanes.h"
#include "lines.h"
#include "stats.h"

bool emq_refuse(emq_call *call, const char *text) {
    EMQ_ASSERT(!call->changed);
    if (call->trying && call->fault) return false;
    if (call->trying) {
        call->fault = emq_store_keep(call, ValkeyModule_CreateString(NULL, text, strlen(text)));
    } else {
        ValkeyModule_ReplyWithError(call->ctx, text);
    }
    emq_count_refusal(text);
    return false;
}

bool emq_call_see(emq_call *call, uint32_t keys) {
    for (uint32_t left = keys; left; left &= left - 1) {
        if (!emq_store_see_key(call, (emq_queue_key)__builtin_ctz(left))) return false;
    }
    return true;
}

/* Step 7, as far as it does not depend on rows. */
static bool see_keys(emq_call *call) {
    if (!emq_call_see(call, call->command->keys)) return false;
    return !call->command->lane || emq_lane_see(call, emq_lane_of(call, call->args.group));
}

static bool admit(emq_call *call) {
    bool writes = call->command->flags & EMQ_WRITES;
    return emq_args_parse(call) && (!writes || emq_fence_check(call)) && emq_args_check_ids(call) && see_keys(call);
}

static void bump(emq_call *call, emq_queue_key metrics, int64_t by) {
    if (by == 0) return;
    emq_key *key = emq_store_key(call, metrics);
    int64_t count = emq_store_lenient(emq_store_field(call, key, emq_words[EMQ_W_COUNT])) + by;
    emq_hash_put(call, key, &(emq_pair){emq_words[EMQ_W_COUNT], emq_store_number(call, count)}, 1);
}

void emq_call_settle(emq_call *call) {
    emq_lanes_settle(call);
    bump(call, EMQ_COMPLETED, call->completed);
    bump(call, EMQ_FAILED, call->failed);
    call->completed = call->failed = 0;
}

static void begin(emq_call *call, const emq_command *command, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    memset(call, 0, offsetof(emq_call, keys));
    call->ctx = ctx;
    call->command = command;
    call->argv = argv;
    call->argc = argc;
    call->now_ms = ValkeyModule_CachedMicroseconds() / 1000;
    emq_store_open(call);
    emq_lines_hold();
}

static void end(emq_call *call) {
    emq_call_settle(call);
    emq_store_close(call);
    emq_lines_release(call->ctx);
}

int emq_call_run(const emq_command *command, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    emq_call call;
    begin(&call, command, ctx, argv, argc);
    if (admit(&call)) command->handler(&call);
    end(&call);
    return VALKEYMODULE_OK;
}

void emq_call_resume(const emq_command *command, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                     void (*part)(emq_call *call, void *data), void *data) {
    emq_call call;
    begin(&call, command, ctx, argv, argc);
    part(&call, data);
    end(&call);
}
