/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Holds valkey_api.h against the header that a Valkey version really ships. Compiled twice and linked together:
 *
 *   with ABI_HEADER   that header gives the types, valkey_api.h only its tables. Types of functions and callbacks and the
 *                     values of constants are judged by the compiler; so is the "since" column: a row that is newer than
 *                     ABI_VERSION must not exist in the header, every other row must.
 *   without           our own types. The layouts of both are compared at run time, so that one run names every difference.
 */
#ifdef ABI_HEADER
#include ABI_HEADER
#endif
#include "valkey_api.h"

#include <stdio.h>
#include <string.h>

struct fact {
    const char *what;
    long long offset, size;
    const char *text;
};

#define SIZE(type) \
    { "sizeof " #type, 0, (long long)sizeof(type), "" }
#define FIELD(type, field) \
    { #type "." #field, (long long)offsetof(type, field), (long long)sizeof(((type *)NULL)->field), "" }
#define EVENT(event) \
    { #event, (long long)(event).id, (long long)(event).dataver, "" }
#define TEXT(name) \
    { #name, 0, 0, name }
#define WORD(name) \
    { #name, (long long)(name), 0, "" }

/* Everything that crosses the border and is no row of a table. */
#define FACTS                                                                                                                             \
    SIZE(ValkeyModuleCommandArg), FIELD(ValkeyModuleCommandArg, name), FIELD(ValkeyModuleCommandArg, type),                               \
        FIELD(ValkeyModuleCommandArg, key_spec_index), FIELD(ValkeyModuleCommandArg, token), FIELD(ValkeyModuleCommandArg, summary),      \
        FIELD(ValkeyModuleCommandArg, since), FIELD(ValkeyModuleCommandArg, flags), FIELD(ValkeyModuleCommandArg, deprecated_since),      \
        FIELD(ValkeyModuleCommandArg, subargs), FIELD(ValkeyModuleCommandArg, display_text), SIZE(ValkeyModuleCommandHistoryEntry),       \
        FIELD(ValkeyModuleCommandHistoryEntry, since), FIELD(ValkeyModuleCommandHistoryEntry, changes), SIZE(ValkeyModuleCommandKeySpec), \
        FIELD(ValkeyModuleCommandKeySpec, notes), FIELD(ValkeyModuleCommandKeySpec, flags),                                               \
        FIELD(ValkeyModuleCommandKeySpec, begin_search_type), FIELD(ValkeyModuleCommandKeySpec, bs),                                      \
        FIELD(ValkeyModuleCommandKeySpec, bs.index.pos), FIELD(ValkeyModuleCommandKeySpec, bs.keyword.keyword),                           \
        FIELD(ValkeyModuleCommandKeySpec, bs.keyword.startfrom), FIELD(ValkeyModuleCommandKeySpec, find_keys_type),                       \
        FIELD(ValkeyModuleCommandKeySpec, fk), FIELD(ValkeyModuleCommandKeySpec, fk.range.lastkey),                                       \
        FIELD(ValkeyModuleCommandKeySpec, fk.range.keystep), FIELD(ValkeyModuleCommandKeySpec, fk.range.limit),                           \
        FIELD(ValkeyModuleCommandKeySpec, fk.keynum.keynumidx), FIELD(ValkeyModuleCommandKeySpec, fk.keynum.firstkey),                    \
        FIELD(ValkeyModuleCommandKeySpec, fk.keynum.keystep), SIZE(ValkeyModuleCommandInfoVersion),                                       \
        FIELD(ValkeyModuleCommandInfoVersion, version), FIELD(ValkeyModuleCommandInfoVersion, sizeof_historyentry),                       \
        FIELD(ValkeyModuleCommandInfoVersion, sizeof_keyspec), FIELD(ValkeyModuleCommandInfoVersion, sizeof_arg),                         \
        {"COMMAND_INFO_VERSION", VALKEYMODULE_COMMAND_INFO_VERSION->version, 0, ""}, SIZE(ValkeyModuleCommandInfo),                       \
        FIELD(ValkeyModuleCommandInfo, version), FIELD(ValkeyModuleCommandInfo, summary), FIELD(ValkeyModuleCommandInfo, complexity),     \
        FIELD(ValkeyModuleCommandInfo, since), FIELD(ValkeyModuleCommandInfo, history), FIELD(ValkeyModuleCommandInfo, tips),             \
        FIELD(ValkeyModuleCommandInfo, arity), FIELD(ValkeyModuleCommandInfo, key_specs), FIELD(ValkeyModuleCommandInfo, args),           \
        SIZE(ValkeyModuleEvent), FIELD(ValkeyModuleEvent, id), FIELD(ValkeyModuleEvent, dataver),                                         \
        EVENT(ValkeyModuleEvent_ReplicationRoleChanged), EVENT(ValkeyModuleEvent_FlushDB), EVENT(ValkeyModuleEvent_Loading),              \
        EVENT(ValkeyModuleEvent_CronLoop), EVENT(ValkeyModuleEvent_SwapDB), EVENT(ValkeyModuleEvent_Config), SIZE(ValkeyModuleFlushInfo), \
        FIELD(ValkeyModuleFlushInfo, sync), FIELD(ValkeyModuleFlushInfo, dbnum), SIZE(ValkeyModuleSwapDbInfo),                            \
        FIELD(ValkeyModuleSwapDbInfo, dbnum_first), FIELD(ValkeyModuleSwapDbInfo, dbnum_second), SIZE(ValkeyModuleConfigChange),          \
        FIELD(ValkeyModuleConfigChange, num_changes), FIELD(ValkeyModuleConfigChange, config_names), TEXT(VALKEYMODULE_LOGLEVEL_DEBUG),   \
        TEXT(VALKEYMODULE_LOGLEVEL_VERBOSE), TEXT(VALKEYMODULE_LOGLEVEL_NOTICE), TEXT(VALKEYMODULE_LOGLEVEL_WARNING),                     \
        TEXT(VALKEYMODULE_ERRORMSG_WRONGTYPE), WORD(VALKEYMODULE_HASH_DELETE)

/* What ABI_HEADER says, in the order of FACTS; some rows are no constant expressions, so a function has to tell. */
void abi_theirs(struct fact *facts, size_t size);

#ifdef ABI_HEADER

#define LATER(name) \
    enum {          \
        name        \
    };
#define FUNCTION_PRESENT(name, result, arguments) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(ValkeyModule_##name), result(*) arguments), "type of ValkeyModule_" #name);
#define FUNCTION_LATER(name, result, arguments) LATER(ValkeyModule_##name)
#define CONSTANT_PRESENT(text, name, value) _Static_assert((long long)(name) == (long long)(value), "value of " text);
#define CONSTANT_LATER(text, name, value) LATER(name)
#define NAME_PRESENT(name)
#define NAME_LATER(name) " " name

#define FUNCTION_V7_2 FUNCTION_PRESENT
#define CONSTANT_V7_2 CONSTANT_PRESENT
#define NAME_V7_2 NAME_PRESENT
#if ABI_VERSION >= 0x0800
#define FUNCTION_V8_0 FUNCTION_PRESENT
#define NAME_V8_0 NAME_PRESENT
#else
#define FUNCTION_V8_0 FUNCTION_LATER
#define NAME_V8_0 NAME_LATER
#endif
#if ABI_VERSION >= 0x0801
#define CONSTANT_V8_1 CONSTANT_PRESENT
#define FUNCTION_V8_1 FUNCTION_PRESENT
#define NAME_V8_1 NAME_PRESENT
#else
#define CONSTANT_V8_1 CONSTANT_LATER
#define FUNCTION_V8_1 FUNCTION_LATER
#define NAME_V8_1 NAME_LATER
#endif
#if ABI_VERSION >= 0x0900
#define CONSTANT_V9_0 CONSTANT_PRESENT
#define NAME_V9_0 NAME_PRESENT
#else
#define CONSTANT_V9_0 CONSTANT_LATER
#define NAME_V9_0 NAME_LATER
#endif

#define X(name, result, arguments) _Static_assert(__builtin_types_compatible_p(name, result(*) arguments), "type of the callback " #name);
VALKEY_CALLBACKS(X)
#undef X

#define X(name, value, since) CONSTANT_##since(#name, name, value)
VALKEY_CONSTANTS(X)
#undef X

#define X(name, result, arguments, since, need) FUNCTION_##since(name, result, arguments)
VALKEY_API(X)
#undef X

void abi_theirs(struct fact *facts, size_t size) {
    const struct fact all[] = {FACTS};
    memcpy(facts, all, size < sizeof(all) ? size : sizeof(all));
    printf("Valkey %d.%d, lacking:%s\n", ABI_VERSION >> 8, ABI_VERSION & 0xff,
           ""
#define X(name, value, since) NAME_##since(#name)
           VALKEY_CONSTANTS(X)
#undef X
#define X(name, result, arguments, since, need) NAME_##since("ValkeyModule_" #name)
               VALKEY_API(X)
#undef X
    );
}

#else

int main(void) {
    const struct fact ours[] = {FACTS}; /* NOLINT(bugprone-sizeof-expression): the size of a pointer is meant */
    struct fact theirs[sizeof(ours) / sizeof(ours[0])];
    int differences = 0;

    abi_theirs(theirs, sizeof(theirs));
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (ours[i].offset == theirs[i].offset && ours[i].size == theirs[i].size && !strcmp(ours[i].text, theirs[i].text)) continue;
        printf("%s: ours %lld, %lld \"%s\", theirs %lld, %lld \"%s\"\n", ours[i].what, ours[i].offset, ours[i].size, ours[i].text,
               theirs[i].offset, theirs[i].size, theirs[i].text);
        differences++;
    }
    return differences != 0;
}

#endif
