/* SPDX-License-Identifier: BSD-3-Clause */
#include "flows.h"

#include <string.h>

#include "effects.h"
#include "lanes.h"
#include "steps.h"

/* The keys of a parent besides its row. */
enum {
    PROCESSED,
    FAILED,
    UNSUCCESSFUL,
    DEPENDENCIES,
    SUBKEYS
};

static const char *const subkey_names[SUBKEYS] = {":processed", ":failed", ":unsuccessful", ":dependencies"};
static const int subkey_kinds[SUBKEYS] = {VALKEYMODULE_KEYTYPE_HASH, VALKEYMODULE_KEYTYPE_HASH, VALKEYMODULE_KEYTYPE_HASH,
                                          VALKEYMODULE_KEYTYPE_STRING};

static emq_key subkey(emq_call *call, emq_job *parent, int which) {
    emq_key key = {0};
    emq_store_name_row(call, &key, parent->entry.text, subkey_names[which]);
    return key;
}

static bool ignores_failure(emq_call *call, emq_job *job) {
    ValkeyModuleString *policy = emq_job_field(call, job, EMQ_PARENT_POLICY);
    size_t length = 0;
    const char *text = policy ? ValkeyModule_StringPtrLen(policy, &length) : NULL;
    return length == 2 && memcmp(text, "id", 2) == 0;
}

static bool see_parent_keys(emq_call *call, emq_job *parent) {
    static const emq_queue_key queue_keys[] = {EMQ_PENDING, EMQ_ACTIVE, EMQ_SCHEDULE, EMQ_DEAD, EMQ_HELD, EMQ_FAILED};
    for (int i = 0; i < SUBKEYS; i++) {
        emq_key key = subkey(call, parent, i);
        bool seen = emq_store_see(call, &key, subkey_kinds[i]);
        emq_store_forget(call, &key);
        if (!seen) return false;
    }
    for (size_t i = 0; i < sizeof queue_keys / sizeof *queue_keys; i++) {
        if (!emq_store_see_key(call, queue_keys[i])) return false;
    }
    return emq_lane_see_job(call, parent);
}

bool emq_see_up(emq_call *call, emq_job *job, bool failed) {
    for (int level = 1;; level++) {
        ValkeyModuleString *parent_id = emq_job_field(call, job, EMQ_PARENT);
        if (!parent_id) return true;
        bool climbs = failed && !ignores_failure(call, job);
        if (emq_job_field(call, job, EMQ_PARENT_QUEUE)) return emq_store_see_key(call, EMQ_OUTBOX);

        emq_job *parent = emq_job_of(call, parent_id);
        if (!emq_job_peek(call, parent)) return false;
        if (!parent->exists) return true;
        if (!see_parent_keys(call, parent)) return false;
        if (!climbs) return true;
        if (level == EMQ_UP) return emq_store_see_key(call, EMQ_OUTBOX);
        job = parent;
    }
}

/* Whether the parent has noted an end of this child. */
static bool noted(emq_call *call, emq_job *parent, ValkeyModuleString *child) {
    bool found = false;
    for (int i = PROCESSED; i <= UNSUCCESSFUL && !found; i++) {
        emq_key key = subkey(call, parent, i);
        found = emq_store_has_field(call, &key, child);
        emq_store_forget(call, &key);
    }
    return found;
}

static void note(emq_call *call, emq_job *parent, int which, ValkeyModuleString *child, ValkeyModuleString *text) {
    emq_key key = subkey(call, parent, which);
    emq_hash_put(call, &key, &(emq_pair){child, text}, 1);
    emq_store_forget(call, &key);
}

/* Whether the job is in held. Every place was seen, so asking cannot refuse. */
static bool is_held(emq_call *call, emq_job *job) {
    emq_key *place = NULL;
    return emq_job_place(call, job, &place) && place == emq_store_key(call, EMQ_HELD);
}

static void countdown(emq_call *call, emq_job *parent) {
    emq_key key = subkey(call, parent, DEPENDENCIES);
    int64_t left = emq_store_lenient(emq_store_string(call, &key));
    if (left > 0) left--;
    emq_string_put(call, &key, emq_store_number(call, left));
    emq_store_forget(call, &key);
    if (left > 0 || !is_held(call, parent)) return;
    emq_zset_take(call, emq_store_key(call, EMQ_HELD), parent->id);
    emq_join(call, parent);
}

static void settle_done(emq_call *call, emq_job *parent, ValkeyModuleString *child, ValkeyModuleString *result) {
    if (!parent->exists || noted(call, parent, child)) return;
    note(call, parent, PROCESSED, child, result);
    countdown(call, parent);
}

static ValkeyModuleString *child_failed(emq_call *call, ValkeyModuleString *child) {
    char text[sizeof EMQ_LAST_ERROR_CHILD - 1 + EMQ_ID_LENGTH] = EMQ_LAST_ERROR_CHILD;
    memcpy(text + sizeof EMQ_LAST_ERROR_CHILD - 1, ValkeyModule_StringPtrLen(child, NULL), EMQ_ID_LENGTH);
    return emq_store_keep(call, ValkeyModule_CreateString(NULL, text, sizeof text));
}

static void settle_failed(emq_call *call, emq_job *parent, ValkeyModuleString *child, bool ignored, ValkeyModuleString *error, int level) {
    if (!parent->exists || noted(call, parent, child)) return;
    note(call, parent, ignored ? UNSUCCESSFUL : FAILED, child, error);
    if (ignored) {
        countdown(call, parent);
    } else if (is_held(call, parent)) {
        emq_zset_take(call, emq_store_key(call, EMQ_HELD), parent->id);
        emq_die(call, parent, child_failed(call, child), level);
    }
}

typedef struct text {
    const char *bytes;
    size_t length;
} text;

static text text_of(ValkeyModuleString *string) {
    text part;
    part.bytes = ValkeyModule_StringPtrLen(string, &part.length);
    return part;
}

/* RPUSH flow:outbox, the parts joined by NUL. */
static void post(emq_call *call, const text *parts, int count) {
    size_t length = (size_t)count - 1;
    for (int i = 0; i < count; i++) length += parts[i].length;
    char *entry = ValkeyModule_Alloc(length + 1), *end = entry;
    for (int i = 0; i < count; i++) {
        memcpy(end, parts[i].bytes, parts[i].length);
        end += parts[i].length;
        *end++ = '\0';
    }
    ValkeyModuleString *string = emq_store_keep(call, ValkeyModule_CreateString(NULL, entry, length));
    ValkeyModule_Free(entry);
    emq_list_append(call, emq_store_key(call, EMQ_OUTBOX), string);
}

/* The queue of a job's parent: the one its row names, or this one. */
static text parent_queue(emq_call *call, emq_job *job) {
    ValkeyModuleString *named = emq_job_field(call, job, EMQ_PARENT_QUEUE);
    if (named) return text_of(named);
    text own;
    emq_queue_key_parse(call->queue, call->queue_length, &own.bytes, &own.length);
    return own;
}

void emq_done_up(emq_call *call, emq_job *job, ValkeyModuleString *result) {
    ValkeyModuleString *parent = emq_job_field(call, job, EMQ_PARENT);
    if (!parent) return;
    if (emq_job_field(call, job, EMQ_PARENT_QUEUE)) {
        post(call, (text[]){parent_queue(call, job), text_of(parent), text_of(job->id), text_of(result)}, 4);
    } else {
        settle_done(call, emq_job_of(call, parent), job->id, result);
    }
}

void emq_fail_up(emq_call *call, emq_job *job, ValkeyModuleString *error, int level) {
    ValkeyModuleString *parent = emq_job_field(call, job, EMQ_PARENT);
    if (!parent) return;
    bool ignored = ignores_failure(call, job);
    if (emq_job_field(call, job, EMQ_PARENT_QUEUE) || level == EMQ_UP) {
        post(call,
             (text[]){{"", 0},
                      {"fail", 4},
                      parent_queue(call, job),
                      text_of(parent),
                      text_of(job->id),
                      {ignored ? "id" : "fp", 2},
                      text_of(error)},
             7);
    } else {
        settle_failed(call, emq_job_of(call, parent), job->id, ignored, error, level + 1);
    }
}
