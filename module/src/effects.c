/* SPDX-License-Identifier: BSD-3-Clause */
#include "effects.h"

#include <string.h>

/* A command of the server whose effects can be said in one: its name, and the keyspace event that it fires. */
struct emq_verb {
    const char *command;
    int class;
    const char *event;
};

static const emq_verb ZADD = {"ZADD", VALKEYMODULE_NOTIFY_ZSET, "zadd"};
static const emq_verb ZREM = {"ZREM", VALKEYMODULE_NOTIFY_ZSET, "zrem"};
static const emq_verb HSET = {"HSET", VALKEYMODULE_NOTIFY_HASH, "hset"};
static const emq_verb HDEL = {"HDEL", VALKEYMODULE_NOTIFY_HASH, "hdel"};
static const emq_verb RPUSH = {"RPUSH", VALKEYMODULE_NOTIFY_LIST, "rpush"};
static const emq_verb LPUSH = {"LPUSH", VALKEYMODULE_NOTIFY_LIST, "lpush"};

/* Signals and announces an effect, and that the key went when it took the last thing that the key held. */
static void announce(emq_call *call, emq_key *key, int class, const char *event) {
    ValkeyModule_SignalModifiedKey(call->ctx, key->name);
    ValkeyModule_NotifyKeyspaceEvent(call->ctx, class, event, key->name);
    if (ValkeyModule_KeyType(key->handle) == VALKEYMODULE_KEYTYPE_EMPTY) {
        ValkeyModule_NotifyKeyspaceEvent(call->ctx, VALKEYMODULE_NOTIFY_GENERIC, "del", key->name);
    }
}

/* Replicates a command: its first word and the others. The server lays out a command once when every word has a letter of
 * its own, and anew when there is a vector, so few words have letters. */
static void replicate(emq_call *call, const char *command, ValkeyModuleString *first, void **others, size_t count) {
    static const char letters[] = "sssssss";
    _Static_assert(sizeof letters == 1 + EMQ_FEW + 1, "a letter for the first word and each of the few");
    if (count > EMQ_FEW) {
        ValkeyModule_Replicate(call->ctx, command, "sv", first, others, count);
        return;
    }
    ValkeyModuleString *few[EMQ_FEW] = {NULL};
    memcpy(few, others, count * sizeof *few);
    ValkeyModule_Replicate(call->ctx, command, letters + EMQ_FEW - count, first, few[0], few[1], few[2], few[3], few[4], few[5]);
}

void emq_effects_flush(emq_call *call, emq_key *key) {
    if (key->words.count == 0) return; /* what was begun came to nothing */
    replicate(call, key->verb->command, key->name, emq_vector_items(&key->words), key->words.count);
    announce(call, key, key->verb->class, key->verb->event);
    key->words.count = 0;
}

/* Begins an effect, before it is carried out: what waits with another verb is ended first. An effect that then changes
 * nothing adds no word. */
static void say(emq_call *call, emq_key *key, const emq_verb *verb) {
    if (key->verb != verb) emq_effects_flush(call, key);
    key->verb = verb;
    call->changed = true;
}

void emq_effects_flush_deleted(emq_call *call) {
    size_t count = call->deleted.count;
    if (count == 0) return;
    void **names = emq_vector_items(&call->deleted);
    replicate(call, "DEL", names[0], names + 1, count - 1);
    for (size_t i = 0; i < count; i++) ValkeyModule_FreeString(NULL, names[i]);
    emq_vector_free(&call->deleted);
}

void emq_zset_put(emq_call *call, emq_key *key, ValkeyModuleString *member, int64_t score) {
    int flags = 0;
    say(call, key, &ZADD);
    ValkeyModule_ZsetAdd(emq_store_handle(call, key), (double)score, member, &flags);
    if (!(flags & (VALKEYMODULE_ZADD_ADDED | VALKEYMODULE_ZADD_UPDATED))) return;
    emq_vector_add(&key->words, emq_store_number(call, score));
    emq_vector_add(&key->words, member);
}

void emq_zset_take(emq_call *call, emq_key *key, ValkeyModuleString *member) {
    int taken = 0;
    say(call, key, &ZREM);
    ValkeyModule_ZsetRem(emq_store_handle(call, key), member, &taken);
    if (taken) emq_vector_add(&key->words, member);
}

void emq_hash_put(emq_call *call, emq_key *key, const emq_pair *pairs, int count) {
    EMQ_ASSERT(count > 0 && count <= EMQ_PAIRS_MAX);
    emq_pair all[EMQ_PAIRS_MAX] = {{NULL, NULL}}; /* the first field that is NULL ends what HashSet reads */
    say(call, key, &HSET);
    for (int i = 0; i < count; i++) {
        all[i] = pairs[i];
        emq_vector_add(&key->words, pairs[i].field);
        emq_vector_add(&key->words, pairs[i].value);
    }
#define PAIR(i) all[i].field, all[i].value
    ValkeyModule_HashSet(emq_store_handle(call, key), VALKEYMODULE_HASH_NONE, PAIR(0), PAIR(1), PAIR(2), PAIR(3), NULL);
#undef PAIR
}

void emq_hash_take(emq_call *call, emq_key *key, ValkeyModuleString *field) {
    say(call, key, &HDEL);
    if (!emq_store_has_field(call, key, field)) return;
    ValkeyModule_HashSet(emq_store_handle(call, key), VALKEYMODULE_HASH_NONE, field, VALKEYMODULE_HASH_DELETE, NULL);
    emq_vector_add(&key->words, field);
}

/* What a server call answers; by then none can fail. The call itself signals, announces and replicates. */
static long long answer(emq_call *call, ValkeyModuleCallReply *reply) {
    EMQ_ASSERT(reply && ValkeyModule_CallReplyType(reply) != VALKEYMODULE_REPLY_ERROR);
    call->changed = true;
    if (!reply) return 0;
    long long number = ValkeyModule_CallReplyInteger(reply);
    ValkeyModule_FreeCallReply(reply);
    return number;
}

void emq_set_put(emq_call *call, emq_queue_key set, ValkeyModuleString *member) {
    emq_key *key = emq_store_key(call, set);
    answer(call, ValkeyModule_Call(call->ctx, "SADD", "!ss", key->name, member));
}

void emq_set_take(emq_call *call, emq_queue_key set, ValkeyModuleString *member) {
    emq_key *key = emq_store_key(call, set);
    answer(call, ValkeyModule_Call(call->ctx, "SREM", "!ss", key->name, member));
}

static void push(emq_call *call, emq_key *key, ValkeyModuleString *element, int where, const emq_verb *verb) {
    say(call, key, verb);
    ValkeyModule_ListPush(emq_store_handle(call, key), where, element);
    emq_vector_add(&key->words, element);
}

void emq_list_append(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    push(call, key, element, VALKEYMODULE_LIST_TAIL, &RPUSH);
}

void emq_list_prepend(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    push(call, key, element, VALKEYMODULE_LIST_HEAD, &LPUSH);
}

static bool is_head(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    ValkeyModuleString *head = ValkeyModule_ListGet(emq_store_handle(call, key), 0);
    bool same = head && emq_string_equal(head, element);
    if (head) ValkeyModule_FreeString(NULL, head);
    return same;
}

/* The head is popped, not deleted by its index: that would leave the handle with an iterator, and neither walking back with
 * it nor unlinking the key under it is safe. */
void emq_list_take(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    if (is_head(call, key, element)) {
        emq_effects_flush(call, key);
        call->changed = true;
        ValkeyModule_FreeString(NULL, ValkeyModule_ListPop(key->handle, VALKEYMODULE_LIST_HEAD));
        ValkeyModule_Replicate(call->ctx, "LREM", "sls", key->name, 1LL, element);
        announce(call, key, VALKEYMODULE_NOTIFY_LIST, "lrem");
        return;
    }
    emq_store_release(call, key);
    answer(call, ValkeyModule_Call(call->ctx, "LREM", "!sls", key->name, 1LL, element));
}

void emq_list_purge(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    emq_store_release(call, key);
    answer(call, ValkeyModule_Call(call->ctx, "LREM", "!sls", key->name, 0LL, element));
}

void emq_list_trim(emq_call *call, emq_key *key, long long first, long long last) {
    emq_store_release(call, key);
    answer(call, ValkeyModule_Call(call->ctx, "LTRIM", "!sll", key->name, first, last));
}

void emq_string_put(emq_call *call, emq_key *key, ValkeyModuleString *value) {
    call->changed = true;
    ValkeyModule_StringSet(emq_store_handle(call, key), value);
    ValkeyModule_Replicate(call->ctx, "SET", "ss", key->name, value);
    announce(call, key, VALKEYMODULE_NOTIFY_STRING, "set");
}

void emq_key_delete(emq_call *call, emq_key *key) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    if (ValkeyModule_KeyType(handle) == VALKEYMODULE_KEYTYPE_EMPTY) return;
    key->words.count = 0; /* what waited is gone with the key */
    call->changed = true;
    ValkeyModule_UnlinkKey(handle);
    ValkeyModule_SignalModifiedKey(call->ctx, key->name);
    ValkeyModule_NotifyKeyspaceEvent(call->ctx, VALKEYMODULE_NOTIFY_GENERIC, "del", key->name);
    emq_vector_add(&call->deleted, ValkeyModule_HoldString(NULL, key->name));
}

void emq_publish(emq_call *call, ValkeyModuleString *channel, ValkeyModuleString *text) {
    answer(call, ValkeyModule_Call(call->ctx, "PUBLISH", "!Ass", channel, text));
}
