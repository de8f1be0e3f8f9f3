/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loading. The module keeps no state of its own but who waits and what INFO shows, so there is little to set up beside the
 * command table. */
#include "about.h"
#include "bridge.h"
#include "command.h"
#include "fence.h"
#include "lines.h"
#include "valkey_api.h"
#include "waiters.h"
#include "warnings.h"
#include "wire.h"
#include "words.h"

#define EXPORTED __attribute__((visibility("default")))
#define OLDEST_SERVER 0x00080000
#define NEXT_SERVER 0x000A0000 /* the first that this module does not know */

/* A server ignores those that it does not know. */
#define OPTIONS                                                                                        \
    (VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD | VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION | \
     VALKEYMODULE_OPTIONS_SKIP_COMMAND_VALIDATION | VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED)

EXPORTED int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);
EXPORTED int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx);

static bool server_is_known(ValkeyModuleCtx *ctx) {
    int version = ValkeyModule_GetServerVersion();
    if (version >= OLDEST_SERVER && version < NEXT_SERVER) return true;
    ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq needs Valkey 8.0 to 9.x, this is %d.%d", version >> 16, version >> 8 & 0xff);
    return false;
}

/* A server may rename or remove commands. Without those that effects are replicated as, replicas would silently differ; with
 * them, the server need not look up their names for every effect. */
static bool server_has_effects(ValkeyModuleCtx *ctx) {
    static const char *const commands[] = {"DEL", "HDEL", "HSET", "LPUSH", "LREM", "LTRIM",     "PUBLISH",  "RPUSH", "SADD",
                                           "SET", "SREM", "ZADD", "ZREM",  "LPOS", "SISMEMBER", "SMEMBERS", "HKEYS", "HGETALL"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ValkeyModuleCallReply *reply = ValkeyModule_Call(ctx, "COMMAND", "cc", "INFO", commands[i]);
        ValkeyModuleCallReply *info = reply ? ValkeyModule_CallReplyArrayElement(reply, 0) : NULL;
        bool known = info && ValkeyModule_CallReplyType(info) == VALKEYMODULE_REPLY_ARRAY;
        if (reply) ValkeyModule_FreeCallReply(reply);
        if (known) continue;
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq needs the command %s, which this server does not have", commands[i]);
        return false;
    }
    return true;
}

/* The server throws a module out again that it has loaded when a setting of MODULE LOADEX is none. It does not tell a module that
 * it is kept; but it does the other within the same command, in which its clock stands still. */
static int64_t loaded_us;

static bool set_up(ValkeyModuleCtx *ctx) {
    ValkeyModule_SetModuleOptions(ctx, OPTIONS);
    emq_words_make();
    emq_fence_load(ctx);
    emq_lines_load();
    return emq_commands_register(ctx) && emq_waiters_load(ctx) && emq_bridge_load(ctx) && emq_warnings_load(ctx) &&
           ValkeyModule_RegisterInfoFunc(ctx, emq_about_info) == VALKEYMODULE_OK;
}

/* Gives back what was set up, of a module that has served nobody; what was registered, the server takes back itself. */
static void tear_down(void) {
    emq_words_drop();
    emq_lines_unload();
}

int ValkeyModule_OnLoad(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    if (!emq_api_init(ctx, EMQ_MODULE_NAME, EMQ_MODULE_VERSION_NUMBER) || !server_is_known(ctx)) return VALKEYMODULE_ERR;
    if (argc > 0) {
        ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq takes no arguments, found %s", ValkeyModule_StringPtrLen(argv[0], NULL));
        return VALKEYMODULE_ERR;
    }
    if (!server_has_effects(ctx)) return VALKEYMODULE_ERR;
    if (!set_up(ctx)) {
        tear_down();
        return VALKEYMODULE_ERR;
    }
    loaded_us = ValkeyModule_CachedMicroseconds();
    ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_NOTICE, "emq " EMQ_MODULE_VERSION " serves " EMQ_IDENTITY);
    return VALKEYMODULE_OK;
}

/* Some servers abort when an ACL rule names a command of a module that goes away, so one that was kept does not go away. */
int ValkeyModule_OnUnload(ValkeyModuleCtx *ctx) {
    if (loaded_us == ValkeyModule_CachedMicroseconds()) {
        tear_down();
        return VALKEYMODULE_OK;
    }
    ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "emq cannot be unloaded; restart the server without it");
    return VALKEYMODULE_ERR;
}
