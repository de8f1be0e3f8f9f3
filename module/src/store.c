/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "effects.h"
#include "jobs.h"
#include "lanes.h"

#define X(identifier, suffix, kind) suffix,
static const char *const suffixes[EMQ_KEYS] = {EMQ_QUEUE_KEYS(X)};
#undef X

#define X(identifier, suffix, kind) VALKEYMODULE_KEYTYPE_##kind,
static const uint8_t kinds[EMQ_KEYS] = {EMQ_QUEUE_KEYS(X)};
#undef X

/* The names of a queue's own keys. Commands come for the same queues over and over, so the names are made once, as they are
 * needed, and stay until another queue takes their place. */
struct emq_names {
    uint32_t calls; /* that use them: more than one when another module calls a command of ours within one */
    bool passing;   /* the place was in use for another queue: they go with the call */
    size_t length;
    char queue[EMQ_QUEUE_KEY_MAX];
    ValkeyModuleString *names[EMQ_KEYS];
};

#define QUEUES_NAMED 128

static void clear_names(emq_names *names) {
    for (int i = 0; i < EMQ_KEYS; i++) {
        if (names->names[i]) ValkeyModule_FreeString(NULL, names->names[i]);
        names->names[i] = NULL;
    }
}

static emq_names *take_names(const char *queue, size_t length) {
    static emq_names named[QUEUES_NAMED];
    emq_names *names = &named[emq_text_hash(queue, length) % QUEUES_NAMED];
    if (names->length != length || memcmp(names->queue, queue, length) != 0) {
        if (names->calls > 0) {
            names = ValkeyModule_Calloc(1, sizeof *names);
            names->passing = true;
        }
        clear_names(names);
        names->length = length;
        memcpy(names->queue, queue, length);
    }
    names->calls++;
    return names;
}

static void give_back_names(emq_names *names) {
    if (!names) return;
    names->calls--;
    if (!names->passing) return;
    clear_names(names);
    ValkeyModule_Free(names);
}

/* The name of one of them, which is not the caller's to free. */
static ValkeyModuleString *name_queue_key(emq_call *call, emq_queue_key which) {
    if (!call->names) call->names = take_names(call->queue, call->queue_length);
    ValkeyModuleString **name = &call->names->names[which];
    if (!*name) {
        char text[EMQ_KEY_MAX];
        *name = ValkeyModule_CreateString(NULL, text, emq_key_fixed(text, call->queue, call->queue_length, suffixes[which]));
    }
    return *name;
}

void emq_store_open(emq_call *call) {
    call->heap.at = call->room;
    call->heap.left = sizeof call->room;
    if (call->command->queue == EMQ_NO_QUEUE || call->argc < 2) return;
    call->queue = ValkeyModule_StringPtrLen(call->argv[1], &call->queue_length);
}

void emq_store_close(emq_call *call) {
    for (uint32_t left = call->named; left; left &= left - 1) emq_store_end(call, &call->keys[__builtin_ctz(left)]);
    emq_jobs_close(call);
    emq_lanes_close(call);
    emq_heap_free(&call->heap);
    emq_effects_flush_deleted(call);
    for (uint32_t i = 0; i < call->kept.count; i++) ValkeyModule_FreeString(NULL, emq_vector_at(&call->kept, i));
    emq_vector_free(&call->kept);
    give_back_names(call->names);
}

ValkeyModuleString *emq_store_keep(emq_call *call, ValkeyModuleString *string) {
    if (string) emq_vector_add(&call->kept, string);
    return string;
}

ValkeyModuleString *emq_store_number(emq_call *call, int64_t number) {
    if (number > EMQ_MAX_INTEGER) number = EMQ_MAX_INTEGER;
    if (number == 0) return emq_words[EMQ_W_ZERO];
    if (number == 1) return emq_words[EMQ_W_ONE];
    if (!call->number_text || call->number != number) {
        call->number = number;
        call->number_text = emq_store_keep(call, ValkeyModule_CreateStringFromLongLong(NULL, number));
    }
    return call->number_text;
}

emq_key *emq_store_key(emq_call *call, emq_queue_key which) {
    emq_key *key = &call->keys[which];
    if (!(call->named & EMQ_BIT(which))) {
        call->named |= EMQ_BIT(which);
        emq_key_begin(key, name_queue_key(call, which));
    }
    return key;
}

void emq_store_name_fixed(emq_call *call, emq_key *key, const char *suffix) {
    char text[EMQ_KEY_MAX];
    key->name = ValkeyModule_CreateString(NULL, text, emq_key_fixed(text, call->queue, call->queue_length, suffix));
}

void emq_store_name_row(emq_call *call, emq_key *key, const char *id, const char *suffix) {
    char text[EMQ_KEY_MAX];
    key->name = ValkeyModule_CreateString(NULL, text, emq_key_job(text, call->queue, call->queue_length, id, suffix));
}

/* A part of a name that came from a client is short; one that was read from the keyspace has any length, because a foreign
 * writer may have put it there. It still names a key of this queue and of this kind. */
static void name_part(emq_call *call, emq_key *key, const char *part, size_t length,
                      size_t (*write)(char *, const char *, size_t, const char *, size_t)) {
    char text[EMQ_KEY_MAX], *longer = length <= EMQ_GROUP_MAX ? text : ValkeyModule_Alloc(EMQ_KEY_MAX + length);
    key->name = ValkeyModule_CreateString(NULL, longer, write(longer, call->queue, call->queue_length, part, length));
    if (longer != text) ValkeyModule_Free(longer);
}

void emq_store_name_lane(emq_call *call, emq_key *key, const char *group, size_t length) {
    name_part(call, key, group, length, emq_key_lane);
}

void emq_store_name_repeat(emq_call *call, emq_key *key, ValkeyModuleString *name) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(name, &length);
    name_part(call, key, text, length, emq_key_repeat);
}

ValkeyModuleKey *emq_store_handle(emq_call *call, emq_key *key) {
    if (!key->opened) {
        int mode = call->command->flags & EMQ_WRITES ? VALKEYMODULE_READ | VALKEYMODULE_WRITE : VALKEYMODULE_READ;
        key->handle = ValkeyModule_OpenKey(call->ctx, key->name, mode);
        key->opened = true;
    }
    return key->handle;
}

void emq_store_release(emq_call *call, emq_key *key) {
    emq_effects_flush(call, key);
    if (!key->opened) return;
    ValkeyModule_CloseKey(key->handle);
    key->handle = NULL;
    key->opened = false;
}

void emq_store_end(emq_call *call, emq_key *key) {
    emq_store_release(call, key);
    emq_vector_free(&key->words);
}

void emq_store_forget(emq_call *call, emq_key *key) {
    emq_store_end(call, key);
    if (key->name) ValkeyModule_FreeString(NULL, key->name);
    key->name = NULL;
}

bool emq_store_exists(emq_call *call, ValkeyModuleString *name) {
    int quietly = VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOTOUCH | VALKEYMODULE_OPEN_KEY_NONOTIFY | VALKEYMODULE_OPEN_KEY_NOSTATS;
    ValkeyModuleKey *handle = ValkeyModule_OpenKey(call->ctx, name, quietly);
    if (handle) ValkeyModule_CloseKey(handle);
    return handle;
}

int emq_store_kind(emq_call *call, emq_key *key) {
    int kind = ValkeyModule_KeyType(emq_store_handle(call, key));
    if (kind == VALKEYMODULE_KEYTYPE_SET) emq_store_release(call, key);
    return kind;
}

bool emq_store_see(emq_call *call, emq_key *key, int kind) {
    int found = emq_store_kind(call, key);
    if (kind == VALKEYMODULE_KEYTYPE_SET) emq_store_release(call, key);
    return found == VALKEYMODULE_KEYTYPE_EMPTY || found == kind || emq_refuse(call, EMQ_ERR_WRONGTYPE);
}

bool emq_store_see_key(emq_call *call, emq_queue_key which) {
    return emq_store_see(call, emq_store_key(call, which), kinds[which]);
}

size_t emq_store_length(emq_call *call, emq_key *key) {
    return ValkeyModule_ValueLength(emq_store_handle(call, key));
}

bool emq_store_score(emq_call *call, emq_key *key, ValkeyModuleString *member, double *score) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    return handle && ValkeyModule_ZsetScore(handle, member, score) == VALKEYMODULE_OK;
}

ValkeyModuleString *emq_store_field(emq_call *call, emq_key *key, ValkeyModuleString *field) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    ValkeyModuleString *value = NULL;
    if (handle) ValkeyModule_HashGet(handle, VALKEYMODULE_HASH_NONE, field, &value, NULL);
    return emq_store_keep(call, value);
}

bool emq_store_has_field(emq_call *call, emq_key *key, ValkeyModuleString *field) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    int exists = 0;
    if (handle) ValkeyModule_HashGet(handle, VALKEYMODULE_HASH_EXISTS, field, &exists, NULL);
    return exists;
}

bool emq_store_has_member(emq_call *call, emq_queue_key set, ValkeyModuleString *member) {
    emq_key *key = emq_store_key(call, set);
    if (!emq_store_exists(call, key->name)) return false;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(call->ctx, "SISMEMBER", "ss", key->name, member);
    bool listed = reply && ValkeyModule_CallReplyInteger(reply) == 1;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return listed;
}

ValkeyModuleString *emq_store_string(emq_call *call, emq_key *key) {
    if (emq_store_length(call, key) == 0) return NULL;
    size_t length;
    const char *text = ValkeyModule_StringDMA(emq_store_handle(call, key), &length, VALKEYMODULE_READ);
    return emq_store_keep(call, ValkeyModule_CreateString(NULL, text, length));
}

/* Adds what a listing command answers about a key, if the key exists. */
static void list(emq_call *call, const char *command, emq_queue_key which, emq_vector *strings) {
    emq_key *key = emq_store_key(call, which);
    if (!emq_store_exists(call, key->name)) return;
    ValkeyModuleCallReply *reply = ValkeyModule_Call(call->ctx, command, "s", key->name);
    size_t count = reply ? ValkeyModule_CallReplyLength(reply) : 0;
    for (size_t i = 0; i < count; i++) {
        ValkeyModuleCallReply *string = ValkeyModule_CallReplyArrayElement(reply, i);
        emq_vector_add(strings, emq_store_keep(call, ValkeyModule_CreateStringFromCallReply(string)));
    }
    if (reply) ValkeyModule_FreeCallReply(reply);
}

void emq_store_members(emq_call *call, emq_queue_key set, emq_vector *members) {
    list(call, "SMEMBERS", set, members);
}

void emq_store_fields(emq_call *call, emq_queue_key hash, emq_vector *fields) {
    list(call, "HKEYS", hash, fields);
}

typedef struct pairs_reader {
    emq_call *call;
    emq_vector *pairs;
} pairs_reader;

static void add_pair(ValkeyModuleKey *key, ValkeyModuleString *field, ValkeyModuleString *value, void *data) {
    (void)key;
    pairs_reader *reader = data;
    emq_vector_add(reader->pairs, emq_store_keep(reader->call, ValkeyModule_HoldString(NULL, field)));
    emq_vector_add(reader->pairs, emq_store_keep(reader->call, ValkeyModule_HoldString(NULL, value)));
}

bool emq_store_pairs(emq_call *call, emq_key *key, emq_vector *pairs) {
    static ValkeyModuleScanCursor *cursor;
    pairs_reader reader = {call, pairs};
    if (!cursor) cursor = ValkeyModule_ScanCursorCreate();
    ValkeyModule_ScanCursorRestart(cursor);
    bool more = ValkeyModule_ScanKey(emq_store_handle(call, key), cursor, add_pair, &reader);
    if (more) pairs->count = 0;
    return !more;
}

void emq_store_lowest(emq_call *call, emq_key *key, double ceiling, size_t most, emq_vector *members) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    if (emq_store_length(call, key) == 0) return;
    ValkeyModule_ZsetFirstInScoreRange(handle, VALKEYMODULE_NEGATIVE_INFINITE, ceiling, 0, 0);
    while (members->count < most && !ValkeyModule_ZsetRangeEndReached(handle)) {
        emq_vector_add(members, emq_store_keep(call, ValkeyModule_ZsetRangeCurrentElement(handle, NULL)));
        ValkeyModule_ZsetRangeNext(handle);
    }
    ValkeyModule_ZsetRangeStop(handle);
}

bool emq_store_first_score(emq_call *call, emq_key *key, double *score) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    if (ValkeyModule_KeyType(handle) != VALKEYMODULE_KEYTYPE_ZSET) return false;
    ValkeyModule_ZsetFirstInScoreRange(handle, VALKEYMODULE_NEGATIVE_INFINITE, VALKEYMODULE_POSITIVE_INFINITE, 0, 0);
    ValkeyModule_FreeString(NULL, ValkeyModule_ZsetRangeCurrentElement(handle, score));
    ValkeyModule_ZsetRangeStop(handle);
    return true;
}

int64_t emq_store_lenient(ValkeyModuleString *string) {
    int64_t number;
    if (!string || !emq_args_decimal(string, EMQ_STORED_DIGITS_MAX, &number)) return 0;
    return number > 0 && number <= EMQ_MAX_INTEGER ? number : 0;
}

bool emq_string_equal(ValkeyModuleString *a, ValkeyModuleString *b) {
    size_t a_length, b_length;
    const char *a_text = ValkeyModule_StringPtrLen(a, &a_length);
    const char *b_text = ValkeyModule_StringPtrLen(b, &b_length);
    return a_length == b_length && memcmp(a_text, b_text, a_length) == 0;
}

static int by_bytes(const void *a, const void *b) {
    return ValkeyModule_StringCompare(*(ValkeyModuleString *const *)a, *(ValkeyModuleString *const *)b);
}

void emq_strings_sort(emq_vector *strings) {
    if (strings->count > 1) qsort(emq_vector_items(strings), strings->count, sizeof(void *), by_bytes);
}
