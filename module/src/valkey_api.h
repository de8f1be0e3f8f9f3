/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of the Valkey module ABI that this module uses, declared here so that a build needs a C compiler and nothing
 * else. Names, values and layouts are the server's; the tables below are the only place that lists them:
 *
 *   VALKEY_CALLBACKS   types of the functions that the server calls back
 *   VALKEY_CONSTANTS   numbers that cross the border
 *   VALKEY_API         functions of the server, one row each
 *
 * `make abi` holds every row, and every struct that crosses the border, against the header of each server version that
 * it finds. Where the server's own header was included first, which that check does, only the tables are taken from here.
 */
#ifndef EMQ_VALKEY_API_H
#define EMQ_VALKEY_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row a line, laid out by hand. */
/* clang-format off */

/* X(name, result, arguments) */
#define VALKEY_CALLBACKS(X) \
    X(ValkeyModuleCmdFunc, int, (ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc)) \
    X(ValkeyModuleDisconnectFunc, void, (ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *bc)) \
    X(ValkeyModuleNotificationFunc, int, (ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *key)) \
    X(ValkeyModuleEventCallback, void, (ValkeyModuleCtx *ctx, ValkeyModuleEvent event, uint64_t subevent, void *data)) \
    X(ValkeyModuleInfoFunc, void, (ValkeyModuleInfoCtx *ctx, int for_crash_report)) \
    X(ValkeyModuleTimerProc, void, (ValkeyModuleCtx *ctx, void *data)) \
    X(ValkeyModuleScanKeyCB, void, (ValkeyModuleKey *key, ValkeyModuleString *field, ValkeyModuleString *value, void *data)) \
    X(ValkeyModuleConfigGetNumericFunc, long long, (const char *name, void *privdata)) \
    X(ValkeyModuleConfigSetNumericFunc, int, (const char *name, long long value, void *privdata, ValkeyModuleString **error)) \
    X(ValkeyModuleConfigApplyFunc, int, (ValkeyModuleCtx *ctx, void *privdata, ValkeyModuleString **error))

/* X(name, value, first server version) */
#define VALKEY_CONSTANTS(X) \
    X(VALKEYMODULE_OK, 0, V7_2) \
    X(VALKEYMODULE_ERR, 1, V7_2) \
    X(VALKEYMODULE_APIVER_1, 1, V7_2) \
    X(VALKEYMODULE_READ, 1 << 0, V7_2) \
    X(VALKEYMODULE_WRITE, 1 << 1, V7_2) \
    X(VALKEYMODULE_OPEN_KEY_NOTOUCH, 1 << 16, V7_2) \
    X(VALKEYMODULE_OPEN_KEY_NONOTIFY, 1 << 17, V7_2) \
    X(VALKEYMODULE_OPEN_KEY_NOSTATS, 1 << 18, V7_2) \
    X(VALKEYMODULE_OPEN_KEY_NOEXPIRE, 1 << 19, V7_2) \
    X(VALKEYMODULE_OPEN_KEY_NOEFFECTS, 1 << 20, V7_2) \
    X(VALKEYMODULE_LIST_HEAD, 0, V7_2) \
    X(VALKEYMODULE_LIST_TAIL, 1, V7_2) \
    X(VALKEYMODULE_KEYTYPE_EMPTY, 0, V7_2) \
    X(VALKEYMODULE_KEYTYPE_STRING, 1, V7_2) \
    X(VALKEYMODULE_KEYTYPE_LIST, 2, V7_2) \
    X(VALKEYMODULE_KEYTYPE_HASH, 3, V7_2) \
    X(VALKEYMODULE_KEYTYPE_SET, 4, V7_2) \
    X(VALKEYMODULE_KEYTYPE_ZSET, 5, V7_2) \
    X(VALKEYMODULE_KEYTYPE_MODULE, 6, V7_2) \
    X(VALKEYMODULE_KEYTYPE_STREAM, 7, V7_2) \
    X(VALKEYMODULE_REPLY_UNKNOWN, -1, V7_2) \
    X(VALKEYMODULE_REPLY_STRING, 0, V7_2) \
    X(VALKEYMODULE_REPLY_ERROR, 1, V7_2) \
    X(VALKEYMODULE_REPLY_INTEGER, 2, V7_2) \
    X(VALKEYMODULE_REPLY_ARRAY, 3, V7_2) \
    X(VALKEYMODULE_REPLY_NULL, 4, V7_2) \
    X(VALKEYMODULE_REPLY_MAP, 5, V7_2) \
    X(VALKEYMODULE_REPLY_SET, 6, V7_2) \
    X(VALKEYMODULE_POSTPONED_LEN, -1, V7_2) \
    X(VALKEYMODULE_ZADD_XX, 1 << 0, V7_2) \
    X(VALKEYMODULE_ZADD_NX, 1 << 1, V7_2) \
    X(VALKEYMODULE_ZADD_ADDED, 1 << 2, V7_2) \
    X(VALKEYMODULE_ZADD_UPDATED, 1 << 3, V7_2) \
    X(VALKEYMODULE_ZADD_NOP, 1 << 4, V7_2) \
    X(VALKEYMODULE_HASH_NONE, 0, V7_2) \
    X(VALKEYMODULE_HASH_NX, 1 << 0, V7_2) \
    X(VALKEYMODULE_HASH_XX, 1 << 1, V7_2) \
    X(VALKEYMODULE_HASH_CFIELDS, 1 << 2, V7_2) \
    X(VALKEYMODULE_HASH_EXISTS, 1 << 3, V7_2) \
    X(VALKEYMODULE_HASH_COUNT_ALL, 1 << 4, V7_2) \
    X(VALKEYMODULE_CONFIG_DEFAULT, 0, V7_2) \
    X(VALKEYMODULE_CONFIG_IMMUTABLE, 1 << 0, V7_2) \
    X(VALKEYMODULE_CONFIG_HIDDEN, 1 << 4, V7_2) \
    X(VALKEYMODULE_CONFIG_MEMORY, 1 << 7, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_LUA, 1 << 0, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_MULTI, 1 << 1, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_PRIMARY, 1 << 2, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_REPLICA, 1 << 3, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_READONLY, 1 << 4, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_CLUSTER, 1 << 5, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_EVICT, 1 << 9, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_OOM, 1 << 10, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_REPLICATED, 1 << 12, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_LOADING, 1 << 13, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING, 1 << 21, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_RESP3, 1 << 22, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_ASYNC_LOADING, 1 << 23, V7_2) \
    X(VALKEYMODULE_CTX_FLAGS_SERVER_STARTUP, 1 << 24, V7_2) \
    X(VALKEYMODULE_NOTIFY_GENERIC, 1 << 2, V7_2) \
    X(VALKEYMODULE_NOTIFY_STRING, 1 << 3, V7_2) \
    X(VALKEYMODULE_NOTIFY_LIST, 1 << 4, V7_2) \
    X(VALKEYMODULE_NOTIFY_SET, 1 << 5, V7_2) \
    X(VALKEYMODULE_NOTIFY_HASH, 1 << 6, V7_2) \
    X(VALKEYMODULE_NOTIFY_ZSET, 1 << 7, V7_2) \
    X(VALKEYMODULE_NOTIFY_EXPIRED, 1 << 8, V7_2) \
    X(VALKEYMODULE_NOTIFY_EVICTED, 1 << 9, V7_2) \
    X(VALKEYMODULE_NOTIFY_MODULE, 1 << 13, V7_2) \
    X(VALKEYMODULE_BLOCK_UNBLOCK_DEFAULT, 0, V7_2) \
    X(VALKEYMODULE_BLOCK_UNBLOCK_DELETED, 1 << 0, V7_2) \
    X(VALKEYMODULE_OPTIONS_HANDLE_IO_ERRORS, 1 << 0, V7_2) \
    X(VALKEYMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED, 1 << 1, V7_2) \
    X(VALKEYMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD, 1 << 2, V7_2) \
    X(VALKEYMODULE_OPTIONS_SKIP_COMMAND_VALIDATION, 1 << 4, V8_1) \
    X(VALKEYMODULE_OPTIONS_HANDLE_ATOMIC_SLOT_MIGRATION, 1 << 5, V9_0) \
    X(VALKEYMODULE_ARG_TYPE_STRING, 0, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_INTEGER, 1, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_DOUBLE, 2, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_KEY, 3, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_PATTERN, 4, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_UNIX_TIME, 5, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_PURE_TOKEN, 6, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_ONEOF, 7, V7_2) \
    X(VALKEYMODULE_ARG_TYPE_BLOCK, 8, V7_2) \
    X(VALKEYMODULE_CMD_ARG_NONE, 0, V7_2) \
    X(VALKEYMODULE_CMD_ARG_OPTIONAL, 1 << 0, V7_2) \
    X(VALKEYMODULE_CMD_ARG_MULTIPLE, 1 << 1, V7_2) \
    X(VALKEYMODULE_CMD_ARG_MULTIPLE_TOKEN, 1 << 2, V7_2) \
    X(VALKEYMODULE_KSPEC_BS_INVALID, 0, V7_2) \
    X(VALKEYMODULE_KSPEC_BS_UNKNOWN, 1, V7_2) \
    X(VALKEYMODULE_KSPEC_BS_INDEX, 2, V7_2) \
    X(VALKEYMODULE_KSPEC_BS_KEYWORD, 3, V7_2) \
    X(VALKEYMODULE_KSPEC_FK_OMITTED, 0, V7_2) \
    X(VALKEYMODULE_KSPEC_FK_UNKNOWN, 1, V7_2) \
    X(VALKEYMODULE_KSPEC_FK_RANGE, 2, V7_2) \
    X(VALKEYMODULE_KSPEC_FK_KEYNUM, 3, V7_2) \
    X(VALKEYMODULE_CMD_KEY_RO, 1 << 0, V7_2) \
    X(VALKEYMODULE_CMD_KEY_RW, 1 << 1, V7_2) \
    X(VALKEYMODULE_CMD_KEY_OW, 1 << 2, V7_2) \
    X(VALKEYMODULE_CMD_KEY_RM, 1 << 3, V7_2) \
    X(VALKEYMODULE_CMD_KEY_ACCESS, 1 << 4, V7_2) \
    X(VALKEYMODULE_CMD_KEY_UPDATE, 1 << 5, V7_2) \
    X(VALKEYMODULE_CMD_KEY_INSERT, 1 << 6, V7_2) \
    X(VALKEYMODULE_CMD_KEY_DELETE, 1 << 7, V7_2) \
    X(VALKEYMODULE_CMD_KEY_NOT_KEY, 1 << 8, V7_2) \
    X(VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED, 0, V7_2) \
    X(VALKEYMODULE_EVENT_FLUSHDB, 2, V7_2) \
    X(VALKEYMODULE_EVENT_LOADING, 3, V7_2) \
    X(VALKEYMODULE_EVENT_CRON_LOOP, 8, V7_2) \
    X(VALKEYMODULE_EVENT_SWAPDB, 11, V7_2) \
    X(VALKEYMODULE_EVENT_CONFIG, 16, V7_2) \
    X(VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_PRIMARY, 0, V7_2) \
    X(VALKEYMODULE_EVENT_REPLROLECHANGED_NOW_REPLICA, 1, V7_2) \
    X(VALKEYMODULE_SUBEVENT_FLUSHDB_START, 0, V7_2) \
    X(VALKEYMODULE_SUBEVENT_FLUSHDB_END, 1, V7_2) \
    X(VALKEYMODULE_SUBEVENT_LOADING_ENDED, 3, V7_2) \
    X(VALKEYMODULE_SUBEVENT_LOADING_FAILED, 4, V7_2) \
    X(VALKEYMODULE_SUBEVENT_CONFIG_CHANGE, 0, V7_2)

/* X(name, result, arguments, first server version, REQUIRED or OPTIONAL)
 * An OPTIONAL function is NULL where the server has none: test before each call. */
#define VALKEY_API(X) \
    /* loading; Log comes first, so that it can tell what is missing */ \
    X(Log, void, (ValkeyModuleCtx *ctx, const char *level, const char *format, ...), V7_2, REQUIRED) \
    X(IsModuleNameBusy, int, (const char *name), V7_2, REQUIRED) \
    X(SetModuleAttribs, void, (ValkeyModuleCtx *ctx, const char *name, int version, int api), V7_2, REQUIRED) \
    X(SetModuleOptions, void, (ValkeyModuleCtx *ctx, int options), V7_2, REQUIRED) \
    X(GetServerVersion, int, (void), V7_2, REQUIRED) \
    X(CreateCommand, int, (ValkeyModuleCtx *ctx, const char *name, ValkeyModuleCmdFunc function, const char *flags, \
      int first, int last, int step), V7_2, REQUIRED) \
    X(GetCommand, ValkeyModuleCommand *, (ValkeyModuleCtx *ctx, const char *name), V7_2, REQUIRED) \
    X(SetCommandInfo, int, (ValkeyModuleCommand *command, const ValkeyModuleCommandInfo *info), V7_2, REQUIRED) \
    X(SetCommandACLCategories, int, (ValkeyModuleCommand *command, const char *categories), V7_2, REQUIRED) \
    X(AddACLCategory, int, (ValkeyModuleCtx *ctx, const char *name), V8_0, REQUIRED) \
    X(RegisterNumericConfig, int, (ValkeyModuleCtx *ctx, const char *name, long long value, unsigned int flags, \
      long long min, long long max, ValkeyModuleConfigGetNumericFunc get, ValkeyModuleConfigSetNumericFunc set, \
      ValkeyModuleConfigApplyFunc apply, void *privdata), V7_2, REQUIRED) \
    X(LoadConfigs, int, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(RegisterInfoFunc, int, (ValkeyModuleCtx *ctx, ValkeyModuleInfoFunc function), V7_2, REQUIRED) \
    X(SubscribeToServerEvent, int, (ValkeyModuleCtx *ctx, ValkeyModuleEvent event, ValkeyModuleEventCallback callback), V7_2, REQUIRED) \
    X(SubscribeToKeyspaceEvents, int, (ValkeyModuleCtx *ctx, int types, ValkeyModuleNotificationFunc callback), V7_2, REQUIRED) \
    /* memory and strings */ \
    X(Alloc, void *, (size_t size), V7_2, REQUIRED) \
    X(Calloc, void *, (size_t count, size_t size), V7_2, REQUIRED) \
    X(Realloc, void *, (void *old, size_t size), V7_2, REQUIRED) \
    X(Free, void, (void *memory), V7_2, REQUIRED) \
    X(CreateString, ValkeyModuleString *, (ValkeyModuleCtx *ctx, const char *text, size_t length), V7_2, REQUIRED) \
    X(CreateStringFromLongLong, ValkeyModuleString *, (ValkeyModuleCtx *ctx, long long value), V7_2, REQUIRED) \
    X(HoldString, ValkeyModuleString *, (ValkeyModuleCtx *ctx, ValkeyModuleString *string), V7_2, REQUIRED) \
    X(FreeString, void, (ValkeyModuleCtx *ctx, ValkeyModuleString *string), V7_2, REQUIRED) \
    X(StringPtrLen, const char *, (const ValkeyModuleString *string, size_t *length), V7_2, REQUIRED) \
    X(StringCompare, int, (const ValkeyModuleString *a, const ValkeyModuleString *b), V7_2, REQUIRED) \
    /* the call at hand */ \
    X(GetContextFlags, int, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(MustObeyClient, int, (ValkeyModuleCtx *ctx), V8_1, OPTIONAL) \
    X(GetSelectedDb, int, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(SelectDb, int, (ValkeyModuleCtx *ctx, int id), V7_2, REQUIRED) \
    X(CachedMicroseconds, long long, (void), V7_2, REQUIRED) \
    X(Milliseconds, long long, (void), V7_2, REQUIRED) \
    X(AvoidReplicaTraffic, int, (void), V7_2, REQUIRED) \
    /* keys */ \
    X(OpenKey, ValkeyModuleKey *, (ValkeyModuleCtx *ctx, ValkeyModuleString *name, int mode), V7_2, REQUIRED) \
    X(CloseKey, void, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(KeyType, int, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(ValueLength, size_t, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(UnlinkKey, int, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(StringSet, int, (ValkeyModuleKey *key, ValkeyModuleString *string), V7_2, REQUIRED) \
    X(StringDMA, char *, (ValkeyModuleKey *key, size_t *length, int mode), V7_2, REQUIRED) \
    X(ListPush, int, (ValkeyModuleKey *key, int where, ValkeyModuleString *element), V7_2, REQUIRED) \
    X(ListPop, ValkeyModuleString *, (ValkeyModuleKey *key, int where), V7_2, REQUIRED) \
    X(ListGet, ValkeyModuleString *, (ValkeyModuleKey *key, long index), V7_2, REQUIRED) \
    X(HashSet, int, (ValkeyModuleKey *key, int flags, ...), V7_2, REQUIRED) \
    X(HashGet, int, (ValkeyModuleKey *key, int flags, ...), V7_2, REQUIRED) \
    X(ScanKey, int, (ValkeyModuleKey *key, ValkeyModuleScanCursor *cursor, ValkeyModuleScanKeyCB callback, void *data), V7_2, REQUIRED) \
    X(ScanCursorCreate, ValkeyModuleScanCursor *, (void), V7_2, REQUIRED) \
    X(ScanCursorRestart, void, (ValkeyModuleScanCursor *cursor), V7_2, REQUIRED) \
    X(ZsetAdd, int, (ValkeyModuleKey *key, double score, ValkeyModuleString *element, int *flags), V7_2, REQUIRED) \
    X(ZsetScore, int, (ValkeyModuleKey *key, ValkeyModuleString *element, double *score), V7_2, REQUIRED) \
    X(ZsetRem, int, (ValkeyModuleKey *key, ValkeyModuleString *element, int *deleted), V7_2, REQUIRED) \
    X(ZsetFirstInScoreRange, int, (ValkeyModuleKey *key, double min, double max, int minex, int maxex), V7_2, REQUIRED) \
    X(ZsetRangeCurrentElement, ValkeyModuleString *, (ValkeyModuleKey *key, double *score), V7_2, REQUIRED) \
    X(ZsetRangeNext, int, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(ZsetRangeEndReached, int, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    X(ZsetRangeStop, void, (ValkeyModuleKey *key), V7_2, REQUIRED) \
    /* effects */ \
    X(SignalModifiedKey, int, (ValkeyModuleCtx *ctx, ValkeyModuleString *name), V7_2, REQUIRED) \
    X(NotifyKeyspaceEvent, int, (ValkeyModuleCtx *ctx, int type, const char *event, ValkeyModuleString *name), V7_2, REQUIRED) \
    X(Replicate, int, (ValkeyModuleCtx *ctx, const char *command, const char *format, ...), V7_2, REQUIRED) \
    X(Call, ValkeyModuleCallReply *, (ValkeyModuleCtx *ctx, const char *command, const char *format, ...), V7_2, REQUIRED) \
    X(FreeCallReply, void, (ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    X(CallReplyType, int, (ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    X(CallReplyInteger, long long, (ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    X(CallReplyLength, size_t, (ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    X(CallReplyArrayElement, ValkeyModuleCallReply *, (ValkeyModuleCallReply *reply, size_t index), V7_2, REQUIRED) \
    X(CreateStringFromCallReply, ValkeyModuleString *, (ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    /* replies */ \
    X(WrongArity, int, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(ReplyWithError, int, (ValkeyModuleCtx *ctx, const char *text), V7_2, REQUIRED) \
    X(ReplyWithLongLong, int, (ValkeyModuleCtx *ctx, long long value), V7_2, REQUIRED) \
    X(ReplyWithString, int, (ValkeyModuleCtx *ctx, ValkeyModuleString *string), V7_2, REQUIRED) \
    X(ReplyWithStringBuffer, int, (ValkeyModuleCtx *ctx, const char *text, size_t length), V7_2, REQUIRED) \
    X(ReplyWithNull, int, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(ReplyWithArray, int, (ValkeyModuleCtx *ctx, long length), V7_2, REQUIRED) \
    X(ReplyWithMap, int, (ValkeyModuleCtx *ctx, long length), V7_2, REQUIRED) \
    X(ReplyWithCallReply, int, (ValkeyModuleCtx *ctx, ValkeyModuleCallReply *reply), V7_2, REQUIRED) \
    /* blocking */ \
    X(BlockClientOnKeysWithFlags, ValkeyModuleBlockedClient *, (ValkeyModuleCtx *ctx, ValkeyModuleCmdFunc reply, \
      ValkeyModuleCmdFunc timeout, void (*free_privdata)(ValkeyModuleCtx *, void *), long long timeout_ms, \
      ValkeyModuleString **keys, int count, void *privdata, int flags), V7_2, REQUIRED) \
    X(SetDisconnectCallback, void, (ValkeyModuleBlockedClient *client, ValkeyModuleDisconnectFunc callback), V7_2, REQUIRED) \
    X(GetBlockedClientPrivateData, void *, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(SignalKeyAsReady, void, (ValkeyModuleCtx *ctx, ValkeyModuleString *name), V7_2, REQUIRED) \
    X(CreateTimer, uint64_t, (ValkeyModuleCtx *ctx, long long period_ms, ValkeyModuleTimerProc callback, void *data), V7_2, REQUIRED) \
    X(StopTimer, int, (ValkeyModuleCtx *ctx, uint64_t timer, void **data), V7_2, REQUIRED) \
    /* dictionaries */ \
    X(CreateDict, ValkeyModuleDict *, (ValkeyModuleCtx *ctx), V7_2, REQUIRED) \
    X(FreeDict, void, (ValkeyModuleCtx *ctx, ValkeyModuleDict *dict), V7_2, REQUIRED) \
    X(DictSetC, int, (ValkeyModuleDict *dict, void *key, size_t length, void *value), V7_2, REQUIRED) \
    X(DictGetC, void *, (ValkeyModuleDict *dict, void *key, size_t length, int *missing), V7_2, REQUIRED) \
    X(DictDelC, int, (ValkeyModuleDict *dict, void *key, size_t length, void *old), V7_2, REQUIRED) \
    /* INFO */ \
    X(InfoAddSection, int, (ValkeyModuleInfoCtx *ctx, const char *name), V7_2, REQUIRED) \
    X(InfoAddFieldCString, int, (ValkeyModuleInfoCtx *ctx, const char *field, const char *value), V7_2, REQUIRED) \
    X(InfoAddFieldLongLong, int, (ValkeyModuleInfoCtx *ctx, const char *field, long long value), V7_2, REQUIRED) \
    X(InfoAddFieldULongLong, int, (ValkeyModuleInfoCtx *ctx, const char *field, unsigned long long value), V7_2, REQUIRED)

/* clang-format on */

#ifndef VALKEYMODULE_H

typedef struct ValkeyModuleCtx ValkeyModuleCtx;
typedef struct ValkeyModuleString ValkeyModuleString;
typedef struct ValkeyModuleKey ValkeyModuleKey;
typedef struct ValkeyModuleCommand ValkeyModuleCommand;
typedef struct ValkeyModuleCallReply ValkeyModuleCallReply;
typedef struct ValkeyModuleBlockedClient ValkeyModuleBlockedClient;
typedef struct ValkeyModuleInfoCtx ValkeyModuleInfoCtx;
typedef struct ValkeyModuleDict ValkeyModuleDict;
typedef struct ValkeyModuleScanCursor ValkeyModuleScanCursor;

#define X(name, value, since) name = (value),
enum {
    VALKEY_CONSTANTS(X)
};
#undef X

#define VALKEYMODULE_LOGLEVEL_DEBUG "debug"
#define VALKEYMODULE_LOGLEVEL_VERBOSE "verbose"
#define VALKEYMODULE_LOGLEVEL_NOTICE "notice"
#define VALKEYMODULE_LOGLEVEL_WARNING "warning"
#define VALKEYMODULE_ERRORMSG_WRONGTYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define VALKEYMODULE_POSITIVE_INFINITE (1.0 / 0.0)
#define VALKEYMODULE_NEGATIVE_INFINITE (-1.0 / 0.0)

/* As a value of HashSet: delete the field. */
#define VALKEYMODULE_HASH_DELETE ((ValkeyModuleString *)(long)1)

/* Description of a command, for SetCommandInfo. The server copies all of it, so tables can be constants. */
typedef struct ValkeyModuleCommandArg {
    const char *name;
    int type;           /* VALKEYMODULE_ARG_TYPE_* */
    int key_spec_index; /* of a KEY; -1 for the other types */
    const char *token;
    const char *summary;
    const char *since;
    int flags; /* VALKEYMODULE_CMD_ARG_* */
    const char *deprecated_since;
    const struct ValkeyModuleCommandArg *subargs;
    const char *display_text;
} ValkeyModuleCommandArg;

typedef struct ValkeyModuleCommandHistoryEntry {
    const char *since;
    const char *changes;
} ValkeyModuleCommandHistoryEntry;

typedef struct ValkeyModuleCommandKeySpec {
    const char *notes;
    uint64_t flags;        /* VALKEYMODULE_CMD_KEY_* */
    int begin_search_type; /* VALKEYMODULE_KSPEC_BS_*; INVALID ends a table */
    union {
        struct {
            int pos;
        } index;
        struct {
            const char *keyword;
            int startfrom;
        } keyword;
    } bs;
    int find_keys_type; /* VALKEYMODULE_KSPEC_FK_*; OMITTED is one key */
    union {
        struct {
            int lastkey;
            int keystep;
            int limit;
        } range;
        struct {
            int keynumidx;
            int firstkey;
            int keystep;
        } keynum;
    } fk;
} ValkeyModuleCommandKeySpec;

typedef struct ValkeyModuleCommandInfoVersion {
    int version;
    size_t sizeof_historyentry;
    size_t sizeof_keyspec;
    size_t sizeof_arg;
} ValkeyModuleCommandInfoVersion;

typedef struct ValkeyModuleCommandInfo {
    const ValkeyModuleCommandInfoVersion *version; /* always VALKEYMODULE_COMMAND_INFO_VERSION */
    const char *summary;
    const char *complexity;
    const char *since; /* version of the module */
    const ValkeyModuleCommandHistoryEntry *history;
    const char *tips;
    int arity; /* -N: at least N */
    const ValkeyModuleCommandKeySpec *key_specs;
    const ValkeyModuleCommandArg *args;
} ValkeyModuleCommandInfo;

extern const ValkeyModuleCommandInfoVersion emq_api_command_info_version;
#define VALKEYMODULE_COMMAND_INFO_VERSION (&emq_api_command_info_version)

/* Server events, for SubscribeToServerEvent, and what their callbacks get as data. */
typedef struct ValkeyModuleEvent {
    uint64_t id;
    uint64_t dataver;
} ValkeyModuleEvent;

#define ValkeyModuleEvent_ReplicationRoleChanged ((ValkeyModuleEvent){VALKEYMODULE_EVENT_REPLICATION_ROLE_CHANGED, 1})
#define ValkeyModuleEvent_FlushDB ((ValkeyModuleEvent){VALKEYMODULE_EVENT_FLUSHDB, 1})
#define ValkeyModuleEvent_Loading ((ValkeyModuleEvent){VALKEYMODULE_EVENT_LOADING, 1})
#define ValkeyModuleEvent_CronLoop ((ValkeyModuleEvent){VALKEYMODULE_EVENT_CRON_LOOP, 1})
#define ValkeyModuleEvent_SwapDB ((ValkeyModuleEvent){VALKEYMODULE_EVENT_SWAPDB, 1})
#define ValkeyModuleEvent_Config ((ValkeyModuleEvent){VALKEYMODULE_EVENT_CONFIG, 1})

typedef struct ValkeyModuleFlushInfo {
    uint64_t version;
    int32_t sync;
    int32_t dbnum; /* -1: all */
} ValkeyModuleFlushInfo;

typedef struct ValkeyModuleSwapDbInfo {
    uint64_t version;
    int32_t dbnum_first;
    int32_t dbnum_second;
} ValkeyModuleSwapDbInfo;

typedef struct ValkeyModuleConfigChange {
    uint64_t version;
    uint32_t num_changes;
    const char **config_names;
} ValkeyModuleConfigChange;

#define X(name, result, arguments) typedef result(*name) arguments;
VALKEY_CALLBACKS(X)
#undef X

#define X(name, result, arguments, since, need) extern result(*ValkeyModule_##name) arguments;
VALKEY_API(X)
#undef X

extern __attribute__((format(printf, 3, 4))) void (*ValkeyModule_Log)(ValkeyModuleCtx *, const char *, const char *, ...);
extern __attribute__((format(printf, 2, 3))) int (*ValkeyModule_ReplyWithErrorFormat)(ValkeyModuleCtx *, const char *, ...);
extern __attribute__((sentinel)) int (*ValkeyModule_HashSet)(ValkeyModuleKey *, int, ...);
extern __attribute__((sentinel)) int (*ValkeyModule_HashGet)(ValkeyModuleKey *, int, ...);

/* The first step of ValkeyModule_OnLoad: finds every function of the table, introduces the module to the server as `name`,
 * and returns true. Returns false, for OnLoad to fail, when a module of that name is loaded already (which stays as it is)
 * or when the server lacks a required function; the log names it. */
bool emq_api_init(ValkeyModuleCtx *ctx, const char *name, int version);

#endif /* VALKEYMODULE_H */
#endif
