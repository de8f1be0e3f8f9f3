/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The only writer. An effect is carried out, replicated as the plain command that it amounts to, signalled to WATCH and
 * tracking, and announced as the keyspace event of that command, all or none of these.
 *
 * All but the carrying out waits until the end of the call, or until the key is released, so that effects on one key with
 * the same verb are one command: ZREM of many members, HSET of many fields. Keys do not depend on each other, and effects
 * on one key keep their order, so a replica ends where the primary did. */
#ifndef EMQ_EFFECTS_H
#define EMQ_EFFECTS_H

#include "call.h"

typedef struct emq_pair {
    ValkeyModuleString *field, *value;
} emq_pair;

#define EMQ_PAIRS_MAX 4

/* ZADD and ZREM. A score that is already there, or a member that is not, is no effect. */
void emq_zset_put(emq_call *call, emq_key *key, ValkeyModuleString *member, int64_t score);
void emq_zset_take(emq_call *call, emq_key *key, ValkeyModuleString *member);

/* HSET of 1 to EMQ_PAIRS_MAX pairs, the longest value first if one is long; HDEL. */
void emq_hash_put(emq_call *call, emq_key *key, const emq_pair *pairs, int count);
void emq_hash_take(emq_call *call, emq_key *key, ValkeyModuleString *field);

/* SADD and SREM. */
void emq_set_put(emq_call *call, emq_queue_key set, ValkeyModuleString *member);
void emq_set_take(emq_call *call, emq_queue_key set, ValkeyModuleString *member);

/* RPUSH; LPUSH; LREM of the first such element; LREM of all such elements; LTRIM. */
void emq_list_append(emq_call *call, emq_key *key, ValkeyModuleString *element);
void emq_list_prepend(emq_call *call, emq_key *key, ValkeyModuleString *element);
void emq_list_take(emq_call *call, emq_key *key, ValkeyModuleString *element);
void emq_list_purge(emq_call *call, emq_key *key, ValkeyModuleString *element);
void emq_list_trim(emq_call *call, emq_key *key, long long first, long long last);

/* SET. */
void emq_string_put(emq_call *call, emq_key *key, ValkeyModuleString *value);

/* DEL, if the key exists. */
void emq_key_delete(emq_call *call, emq_key *key);

/* PUBLISH, to the subscribers of replicas too, not to the append-only file. */
void emq_publish(emq_call *call, ValkeyModuleString *channel, ValkeyModuleString *text);

/* Replicates and announces what waits on one key; replicates the deletions, which come last. */
void emq_effects_flush(emq_call *call, emq_key *key);
void emq_effects_flush_deleted(emq_call *call);

#endif
