/* SPDX-License-Identifier: BSD-3-Clause */
#include "warnings.h"

#include <stdlib.h>
#include <string.h>

#include "fence.h"

/* Fields of a row up to this length should not cost it its compact encoding. It covers the payload of a task with a few
 * arguments: a row with 100 bytes takes 208 bytes of memory, in the other encoding 376 (Valkey 9.1). */
#define ROW_FIELD_MAX 128

static bool evicts(const char *policy) {
    static const char prefix[] = "allkeys-";
    return strncmp(policy, prefix, sizeof prefix - 1) == 0;
}

static bool is_short(const char *length) {
    return strtoull(length, NULL, 10) < ROW_FIELD_MAX;
}

enum {
    EVICTION,
    LISTPACK,
    SETTINGS
};

static struct setting {
    const char *name, *advice;
    bool (*is_bad)(const char *value);
    bool bad;
} settings[SETTINGS] = {
    [EVICTION] = {"maxmemory-policy", "may delete jobs and the fence; use noeviction", evicts, false},
    [LISTPACK] = {"hash-max-listpack-value", "stores rows with a longer field in up to twice the memory; use 4096", is_short, false},
};

/* The value as text, to be freed; NULL when the server does not tell, which it does unless its CONFIG was renamed. */
static ValkeyModuleString *ask(ValkeyModuleCtx *ctx, const char *name) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "CONFIG", "cc", "GET", name);
    ValkeyModuleCallReply *value = reply ? ValkeyModule_CallReplyArrayElement(reply, 1) : NULL;
    ValkeyModuleString *text = value ? ValkeyModule_CreateStringFromCallReply(value) : NULL;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return text;
}

static void judge(ValkeyModuleCtx *ctx, struct setting *setting) {
    ValkeyModuleString *value = ask(ctx, setting->name);
    if (!value) return;
    const char *text = ValkeyModule_StringPtrLen(value, NULL);
    bool bad = setting->is_bad(text);
    if (bad && !setting->bad) {
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "%s %s %s", setting->name, text, setting->advice);
    }
    setting->bad = bad;
    ValkeyModule_FreeString(ctx, value);
}

/* All are asked, since the names that the event carries may be aliases. */
static void on_config(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t subevent, void *data) {
    (void)event, (void)subevent, (void)data;
    for (int i = 0; i < SETTINGS; i++) judge(ctx, &settings[i]);
}

bool emq_warnings_load(ValkeyModuleCtx *ctx) {
    on_config(ctx, ValkeyModuleEvent_Config, VALKEYMODULE_SUBEVENT_CONFIG_CHANGE, NULL);
    return ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_Config, on_config) == VALKEYMODULE_OK;
}

void emq_warnings_info(ValkeyModuleInfoCtx *info) {
    bool eviction = settings[EVICTION].bad, listpack = settings[LISTPACK].bad, fence = emq_fence_endangers();
    ValkeyModule_InfoAddSection(info, "warnings");
    ValkeyModule_InfoAddFieldLongLong(info, "warnings", eviction + fence + listpack);
    ValkeyModule_InfoAddFieldLongLong(info, "warning_eviction", eviction);
    ValkeyModule_InfoAddFieldLongLong(info, "warning_fence", fence);
    ValkeyModule_InfoAddFieldLongLong(info, "warning_listpack", listpack);
}
