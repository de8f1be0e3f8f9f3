/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finding the server's functions. A context begins with the address of the server's GetApi; every other function is asked
 * for by name. */
#include "valkey_api.h"

#include <string.h>

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type and a list of arguments */
#define X(name, result, arguments, since, need) result(*ValkeyModule_##name) arguments;
VALKEY_API(X)
#undef X

const ValkeyModuleCommandInfoVersion emq_api_command_info_version = {
    .version = 1,
    .sizeof_historyentry = sizeof(ValkeyModuleCommandHistoryEntry),
    .sizeof_keyspec = sizeof(ValkeyModuleCommandKeySpec),
    .sizeof_arg = sizeof(ValkeyModuleCommandArg),
};

enum {
    OPTIONAL,
    REQUIRED
};

static const struct {
    const char *name;
    void *target; /* the address of the pointer */
    const char *since;
    int need;
} functions[] = {
#define X(name, result, arguments, since, need) {"ValkeyModule_" #name, &ValkeyModule_##name, #since, need},
    VALKEY_API(X)
#undef X
};

typedef int (*get_api)(const char *name, void *target);

static get_api context_get_api(ValkeyModuleCtx *ctx) {
    get_api get;
    memcpy(&get, ctx, sizeof(get));
    return get;
}

/* Asks for every function; true when no required one is missing. */
static bool resolve(ValkeyModuleCtx *ctx, get_api get, const char *name) {
    bool complete = true;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (get(functions[i].name, functions[i].target) == VALKEYMODULE_OK || functions[i].need == OPTIONAL) continue;
        complete = false;
        if (ValkeyModule_Log) {
            ValkeyModule_Log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "%s cannot run here: this server lacks %s (Valkey %c.%c)", name,
                             functions[i].name, functions[i].since[1], functions[i].since[3]);
        }
    }
    return complete;
}

bool emq_api_init(ValkeyModuleCtx *ctx, const char *name, int version) {
    get_api get = context_get_api(ctx);

    /* A second MODULE LOAD of the same file runs in the same image, so nothing static may be touched before this test. */
    int (*is_busy)(const char *) = NULL;
    if (get("ValkeyModule_IsModuleNameBusy", &is_busy) == VALKEYMODULE_OK && is_busy(name)) {
        void (*log)(ValkeyModuleCtx *, const char *, const char *, ...) = NULL;
        if (get("ValkeyModule_Log", &log) == VALKEYMODULE_OK) {
            log(ctx, VALKEYMODULE_LOGLEVEL_WARNING, "a module named %s is loaded already", name);
        }
        return false;
    }

    /* A module that fails before it has introduced itself is logged as one whose name is taken, so introduce it first. */
    bool complete = resolve(ctx, get, name);
    if (ValkeyModule_SetModuleAttribs) ValkeyModule_SetModuleAttribs(ctx, name, version, VALKEYMODULE_APIVER_1);
    return complete;
}
