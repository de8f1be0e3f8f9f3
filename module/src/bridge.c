/* SPDX-License-Identifier: BSD-3-Clause */
#include "bridge.h"

#include <string.h>

#include "lines.h"

/* What the place of a job that is added makes ready, by the end of its name. */
static const struct listing {
    const char *suffix;
    unsigned ready;
} listings[] = {
    {":pending", EMQ_READY(EMQ_FLAT)},
    {":ring", EMQ_READY(EMQ_LANE)},
    {":schedule", EMQ_READY_DUE},
};

/* Events of effects that only take away. Those of other commands that do are rare, and a waiter that is woken in vain
 * goes on waiting. */
static bool takes_away(const char *event) {
    return strcmp(event, "zrem") == 0 || strcmp(event, "lrem") == 0 || strcmp(event, "del") == 0;
}

static int on_keyspace_event(ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *name) {
    (void)type;
    if (!emq_lines_any()) return VALKEYMODULE_OK;
    size_t length;
    const char *key = ValkeyModule_StringPtrLen(name, &length);
    const char *brace = length > 5 && memcmp(key, "emq:{", 5) == 0 ? memchr(key, '}', length) : NULL;
    if (!brace || takes_away(event)) return VALKEYMODULE_OK;
    size_t queue_length = (size_t)(brace + 1 - key), suffix_length = length - queue_length;
    for (size_t i = 0; i < sizeof listings / sizeof *listings; i++) {
        const char *suffix = listings[i].suffix;
        if (suffix_length != strlen(suffix) || memcmp(brace + 1, suffix, suffix_length) != 0) continue;
        emq_lines_ready(ctx, key, queue_length, listings[i].ready);
    }
    return VALKEYMODULE_OK;
}

static void on_swap(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t subevent, void *data) {
    (void)event, (void)subevent;
    const ValkeyModuleSwapDbInfo *swap = data;
    emq_lines_swapped(ctx, swap->dbnum_first);
    emq_lines_swapped(ctx, swap->dbnum_second);
}

static void on_cron(ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t subevent, void *data) {
    (void)event, (void)subevent, (void)data;
    emq_lines_tick(ctx);
}

bool emq_bridge_load(ValkeyModuleCtx *ctx) {
    return ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_CronLoop, on_cron) == VALKEYMODULE_OK &&
           ValkeyModule_SubscribeToServerEvent(ctx, ValkeyModuleEvent_SwapDB, on_swap) == VALKEYMODULE_OK;
}

/* Servers from 8.1 to 9.1.1 leave a client in another database than it had selected when it moves or copies a key there and
 * a module listens to that. There, jobs that appear by RENAME, RESTORE, COPY or MOVE are found by the next tick. */
static int classes(void) {
    int safe = VALKEYMODULE_NOTIFY_LIST | VALKEYMODULE_NOTIFY_ZSET, version = ValkeyModule_GetServerVersion();
    return version >= 0x00080100 && version < 0x00090102 ? safe : safe | VALKEYMODULE_NOTIFY_GENERIC;
}

void emq_bridge_open(ValkeyModuleCtx *ctx) {
    static bool open;
    if (!open) ValkeyModule_SubscribeToKeyspaceEvents(ctx, classes(), on_keyspace_event);
    open = true;
}
