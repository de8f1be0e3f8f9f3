/* SPDX-License-Identifier: BSD-3-Clause */
#include "effects.h"

static void touched(emq_call *call, emq_key *key, int class, const char *event) {
    call->changed = true;
    ValkeyModule_SignalModifiedKey(call->ctx, key->name);
    ValkeyModule_NotifyKeyspaceEvent(call->ctx, class, event, key->name);
}

/* The same after an effect that may have taken the last thing that the key held. */
static void shrunk(emq_call *call, emq_key *key, int class, const char *event) {
    touched(call, key, class, event);
    if (ValkeyModule_KeyType(key->handle) == VALKEYMODULE_KEYTYPE_EMPTY) {
        ValkeyModule_NotifyKeyspaceEvent(call->ctx, VALKEYMODULE_NOTIFY_GENERIC, "del", key->name);
    }
}

static void say(emq_call *call, emq_key *key, const char *verb) {
    if (key->verb != verb) emq_effects_flush(call, key);
    key->verb = verb;
}

/* Verbs are compared by address. */
static const char ZADD[] = "ZADD", ZREM[] = "ZREM", HSET[] = "HSET", HDEL[] = "HDEL", RPUSH[] = "RPUSH", LPUSH[] = "LPUSH";

void emq_effects_flush(emq_call *call, emq_key *key) {
    if (!key->verb) return;
    ValkeyModule_Replicate(call->ctx, key->verb, "sv", key->name, emq_vector_items(&key->words), (size_t)key->words.count);
    key->verb = NULL;
    key->words.count = 0;
}

void emq_effects_flush_deleted(emq_call *call) {
    size_t count = call->deleted.count;
    if (count > 0) ValkeyModule_Replicate(call->ctx, "DEL", "v", emq_vector_items(&call->deleted), count);
    for (size_t i = 0; i < count; i++) ValkeyModule_FreeString(NULL, emq_vector_at(&call->deleted, i));
    emq_vector_free(&call->deleted);
}

void emq_zset_put(emq_call *call, emq_key *key, ValkeyModuleString *member, int64_t score) {
    int flags = 0;
    ValkeyModule_ZsetAdd(emq_store_handle(call, key), (double)score, member, &flags);
    if (flags & VALKEYMODULE_ZADD_NOP) return;
    touched(call, key, VALKEYMODULE_NOTIFY_ZSET, "zadd");
    say(call, key, ZADD);
    emq_vector_add(&key->words, emq_store_number(call, score));
    emq_vector_add(&key->words, member);
}

void emq_zset_take(emq_call *call, emq_key *key, ValkeyModuleString *member) {
    int taken = 0;
    ValkeyModule_ZsetRem(emq_store_handle(call, key), member, &taken);
    if (!taken) return;
    shrunk(call, key, VALKEYMODULE_NOTIFY_ZSET, "zrem");
    say(call, key, ZREM);
    emq_vector_add(&key->words, member);
}

void emq_hash_put(emq_call *call, emq_key *key, const emq_pair *pairs, int count) {
    EMQ_ASSERT(count > 0 && count <= EMQ_PAIRS_MAX);
    emq_pair all[EMQ_PAIRS_MAX] = {{NULL, NULL}}; /* the first field that is NULL ends what HashSet reads */
    say(call, key, HSET);
    for (int i = 0; i < count; i++) {
        all[i] = pairs[i];
        emq_vector_add(&key->words, pairs[i].field);
        emq_vector_add(&key->words, pairs[i].value);
    }
#define PAIR(i) all[i].field, all[i].value
    ValkeyModule_HashSet(emq_store_handle(call, key), VALKEYMODULE_HASH_NONE, PAIR(0), PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6),
                         PAIR(7), NULL);
#undef PAIR
    touched(call, key, VALKEYMODULE_NOTIFY_HASH, "hset");
}

void emq_hash_take(emq_call *call, emq_key *key, ValkeyModuleString *field) {
    if (!emq_store_has_field(call, key, field)) return;
    ValkeyModule_HashSet(emq_store_handle(call, key), VALKEYMODULE_HASH_NONE, field, VALKEYMODULE_HASH_DELETE, NULL);
    shrunk(call, key, VALKEYMODULE_NOTIFY_HASH, "hdel");
    say(call, key, HDEL);
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

static void push(emq_call *call, emq_key *key, ValkeyModuleString *element, int where, const char *verb, const char *event) {
    ValkeyModule_ListPush(emq_store_handle(call, key), where, element);
    touched(call, key, VALKEYMODULE_NOTIFY_LIST, event);
    say(call, key, verb);
    emq_vector_add(&key->words, element);
}

void emq_list_append(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    push(call, key, element, VALKEYMODULE_LIST_TAIL, RPUSH, "rpush");
}

void emq_list_prepend(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    push(call, key, element, VALKEYMODULE_LIST_HEAD, LPUSH, "lpush");
}

static bool is_head(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    ValkeyModuleString *head = ValkeyModule_ListGet(emq_store_handle(call, key), 0);
    bool same = head && emq_string_equal(head, element);
    if (head) ValkeyModule_FreeString(NULL, head);
    return same;
}

bool emq_list_take(emq_call *call, emq_key *key, ValkeyModuleString *element) {
    if (is_head(call, key, element)) {
        ValkeyModule_ListDelete(key->handle, 0);
        shrunk(call, key, VALKEYMODULE_NOTIFY_LIST, "lrem");
        emq_effects_flush(call, key);
        ValkeyModule_Replicate(call->ctx, "LREM", "sls", key->name, 1LL, element);
        return true;
    }
    emq_store_release(call, key);
    return answer(call, ValkeyModule_Call(call->ctx, "LREM", "!sls", key->name, 1LL, element)) > 0;
}

void emq_list_trim(emq_call *call, emq_key *key, long long first, long long last) {
    emq_store_release(call, key);
    answer(call, ValkeyModule_Call(call->ctx, "LTRIM", "!sll", key->name, first, last));
}

void emq_string_put(emq_call *call, emq_key *key, ValkeyModuleString *value) {
    ValkeyModule_StringSet(emq_store_handle(call, key), value);
    touched(call, key, VALKEYMODULE_NOTIFY_STRING, "set");
    ValkeyModule_Replicate(call->ctx, "SET", "ss", key->name, value);
}

void emq_key_delete(emq_call *call, emq_key *key) {
    ValkeyModuleKey *handle = emq_store_handle(call, key);
    if (ValkeyModule_KeyType(handle) == VALKEYMODULE_KEYTYPE_EMPTY) return;
    key->verb = NULL; /* what waited is gone with the key */
    key->words.count = 0;
    ValkeyModule_UnlinkKey(handle);
    touched(call, key, VALKEYMODULE_NOTIFY_GENERIC, "del");
    emq_vector_add(&call->deleted, ValkeyModule_HoldString(NULL, key->name));
}

void emq_publish(emq_call *call, ValkeyModuleString *channel, ValkeyModuleString *text) {
    answer(call, ValkeyModule_Call(call->ctx, "PUBLISH", "!Ass", channel, text));
}
