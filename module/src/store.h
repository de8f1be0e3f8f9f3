/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The keys of one queue, as one command sees them. A key is opened when it is first asked for, once, and closed at the end
 * of the command; reads go through here, writes through effects.c.
 *
 * An open handle and a server call on the same key do not know of each other. So keys that are written by calls (sets, and
 * lists where a call is the better way) are released before the call, and sets are never kept open. */
#ifndef EMQ_STORE_H
#define EMQ_STORE_H

#include <stdbool.h>

#include "memory.h"
#include "valkey_api.h"

typedef struct emq_call emq_call;
typedef struct emq_verb emq_verb;
typedef struct emq_names emq_names;

/* X(identifier, suffix, kind): the keys that every queue has. The first five are the places, in the order of the states in
 * words.h. */
#define EMQ_QUEUE_KEYS(X)                       \
    X(EMQ_PENDING, "pending", ZSET)             \
    X(EMQ_ACTIVE, "active", ZSET)               \
    X(EMQ_SCHEDULE, "schedule", ZSET)           \
    X(EMQ_DEAD, "dead", ZSET)                   \
    X(EMQ_HELD, "held", ZSET)                   \
    X(EMQ_META, "meta", HASH)                   \
    X(EMQ_COMPLETED, "metrics:completed", HASH) \
    X(EMQ_FAILED, "metrics:failed", HASH)       \
    X(EMQ_RING, "ring", LIST)                   \
    X(EMQ_TOKENS, "wake", LIST)                 \
    X(EMQ_LANES, "lanes", SET)                  \
    X(EMQ_PARKED, "paused", SET)                \
    X(EMQ_GLIMIT, "glimit", HASH)               \
    X(EMQ_GACTIVE, "gactive", HASH)             \
    X(EMQ_GWEIGHT, "gweight", HASH)             \
    X(EMQ_REPEAT, "repeat", ZSET)               \
    X(EMQ_OUTBOX, "flow:outbox", LIST)          \
    X(EMQ_POISONED, "flow:poison", LIST)

typedef enum emq_queue_key {
#define X(identifier, suffix, kind) identifier,
    EMQ_QUEUE_KEYS(X)
#undef X
    EMQ_KEYS
} emq_queue_key;

#define EMQ_BIT(key) (UINT32_C(1) << (key))
#define EMQ_PLACES 5

/* One key of the keyspace. Zeroed memory is a key without a name. */
typedef struct emq_key {
    ValkeyModuleString *name;
    ValkeyModuleKey *handle;
    bool opened;          /* handle holds what OpenKey answered, which for a reader may be NULL */
    const emq_verb *verb; /* with words: an effect that was carried out and is not replicated yet */
    emq_vector words;
} emq_key;

static inline void emq_key_begin(emq_key *key, ValkeyModuleString *name) {
    key->name = name;
    key->handle = NULL;
    key->opened = false;
    key->verb = NULL;
    emq_vector_begin(&key->words);
}

void emq_store_open(emq_call *call);
void emq_store_close(emq_call *call);

/* Holds a string that the call made until the call ends. Answers it. */
ValkeyModuleString *emq_store_keep(emq_call *call, ValkeyModuleString *string);

/* The decimal text of a number, kept. It stops at the largest integer of the contract: what is beyond counts as absent. */
ValkeyModuleString *emq_store_number(emq_call *call, int64_t number);

emq_key *emq_store_key(emq_call *call, emq_queue_key which);

/* Names of other keys: known by a suffix, an id, a group or a repeat name. The caller forgets what it named. */
void emq_store_name_fixed(emq_call *call, emq_key *key, const char *suffix);
void emq_store_name_row(emq_call *call, emq_key *key, const char *id, const char *suffix);
void emq_store_name_lane(emq_call *call, emq_key *key, const char *group, size_t length);
void emq_store_name_repeat(emq_call *call, emq_key *key, ValkeyModuleString *name);

/* The open handle, for reading and writing if the command writes. A reader gets NULL for a key that does not exist. */
ValkeyModuleKey *emq_store_handle(emq_call *call, emq_key *key);

/* Ends what effects.c has waiting and closes the handle; the next use opens the key again. */
void emq_store_release(emq_call *call, emq_key *key);

/* Release for good; and free the name, too, of a key that is not one of the queue's own. */
void emq_store_end(emq_call *call, emq_key *key);
void emq_store_forget(emq_call *call, emq_key *key);

/* Whether there is a key of that name. To find none is no miss in the server's statistics and events: it is the rule. */
bool emq_store_exists(emq_call *call, ValkeyModuleString *name);

/* VALKEYMODULE_KEYTYPE_*; the key is open afterwards unless it is a set. */
int emq_store_kind(emq_call *call, emq_key *key);

/* Refuses unless the key is absent or of that kind. */
bool emq_store_see(emq_call *call, emq_key *key, int kind);
bool emq_store_see_key(emq_call *call, emq_queue_key which);

/* Number of members, fields or elements; 0 when there is no key. Not for sets. */
size_t emq_store_length(emq_call *call, emq_key *key);

/* The rest trusts that the kind was seen. Strings that come back are kept by the call. */
bool emq_store_score(emq_call *call, emq_key *key, ValkeyModuleString *member, double *score);
ValkeyModuleString *emq_store_field(emq_call *call, emq_key *key, ValkeyModuleString *field);
bool emq_store_has_field(emq_call *call, emq_key *key, ValkeyModuleString *field);
bool emq_store_has_member(emq_call *call, emq_queue_key set, ValkeyModuleString *member);

/* The value of a string. */
ValkeyModuleString *emq_store_string(emq_call *call, emq_key *key);

/* Members of a set, kept, in no order. */
void emq_store_members(emq_call *call, emq_queue_key set, emq_vector *members);

/* Fields of a hash, kept, in no order. */
void emq_store_fields(emq_call *call, emq_queue_key hash, emq_vector *fields);

/* All fields of an open hash, each with its value behind it, kept. Answers false, with none, when the hash is too large to be
 * read in one step. */
bool emq_store_pairs(emq_call *call, emq_key *key, emq_vector *pairs);

/* Members of a sorted set with score <= ceiling, kept, lowest first, at most that many. */
void emq_store_lowest(emq_call *call, emq_key *key, double ceiling, size_t most, emq_vector *members);

/* Whether a key is a sorted set, so that it has a first member; and its score. */
bool emq_store_first_score(emq_call *call, emq_key *key, double *score);

/* A stored number, read leniently: 0 when the string is NULL or no plain decimal that a double holds exactly. */
int64_t emq_store_lenient(ValkeyModuleString *string);

bool emq_string_equal(ValkeyModuleString *a, ValkeyModuleString *b);

/* Sorts strings by their bytes. */
void emq_strings_sort(emq_vector *strings);

#endif
