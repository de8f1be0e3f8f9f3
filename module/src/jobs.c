/* SPDX-License-Identifier: BSD-3-Clause */
#include "jobs.h"

#include <string.h>

#include "effects.h"
#include "id.h"
#include "lanes.h"

emq_job *emq_job_of(emq_call *call, ValkeyModuleString *id) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(id, &length);
    emq_job *job = emq_table_find(&call->jobs, text, length);
    if (job) return job;

    job = emq_heap_take(&call->heap, sizeof *job);
    job->entry = (emq_entry){text, length};
    job->id = id;
    emq_table_add(&call->jobs, &job->entry);
    bool checked = id == call->args.id;
    if (checked || emq_job_id_check(text, length) == EMQ_JOB_ID_OK) {
        emq_store_name_row(call, &job->row, text, "");
    } else {
        job->seen = true;
    }
    return job;
}

void emq_jobs_close(emq_call *call) {
    for (uint32_t i = 0; i < call->jobs.entries.count; i++) {
        emq_job *job = emq_vector_at(&call->jobs.entries, i);
        emq_store_forget(call, &job->row);
    }
    emq_table_free(&call->jobs);
}

bool emq_job_peek(emq_call *call, emq_job *job) {
    if (job->seen) return true;
    if (!emq_store_see(call, &job->row, VALKEYMODULE_KEYTYPE_HASH)) return false;
    job->seen = true;
    job->unmet = emq_store_length(call, &job->row);
    job->exists = job->unmet > 0;
    return true;
}

/* Takes note of what a field of the row says. */
static void learn(emq_call *call, emq_job *job, emq_field field, ValkeyModuleString *value) {
    job->known |= 1u << field;
    job->fields[field] = emq_store_keep(call, value);
    if (value) job->unmet--;
}

/* Reads the two fields that nearly every transition asks for, which costs less together than one by one. */
static void read_standing(emq_call *call, emq_job *job) {
    if (job->known & (1u << EMQ_STATE | 1u << EMQ_ATTEMPTS)) return; /* the other is read when it is needed */
    ValkeyModuleString *state = NULL, *attempts = NULL;
    ValkeyModuleKey *handle = emq_store_handle(call, &job->row);
    ValkeyModule_HashGet(handle, VALKEYMODULE_HASH_NONE, emq_fields[EMQ_STATE], &state, emq_fields[EMQ_ATTEMPTS], &attempts, NULL);
    learn(call, job, EMQ_STATE, state);
    learn(call, job, EMQ_ATTEMPTS, attempts);
}

/* Whether the row may have fields that were not met. Most rows have three, the payload among them and first: to look for that
 * one, once the other two are known, spares looking for all those that few rows have. */
static bool has_more(emq_call *call, emq_job *job) {
    if (job->unmet == 1 && !job->payload_met) {
        job->payload_met = true;
        if (emq_store_has_field(call, &job->row, emq_words[EMQ_W_PAYLOAD])) job->unmet = 0;
    }
    return job->unmet > 0;
}

bool emq_job_load(emq_call *call, emq_job *job) {
    if (!emq_job_peek(call, job)) return false;
    if (!job->exists || job->loaded) return true;
    read_standing(call, job);
    ValkeyModuleString *attempts = emq_job_field(call, job, EMQ_ATTEMPTS);
    int64_t number = 0;
    bool sound = !attempts || emq_args_decimal(attempts, EMQ_STORED_DIGITS_MAX, &number);
    if (!sound || number < 0 || number >= EMQ_MAX_INTEGER) return emq_refuse(call, EMQ_ERR_DAMAGED);
    job->attempts = number;
    job->loaded = true;
    return true;
}

ValkeyModuleString *emq_job_read(emq_call *call, emq_job *job, emq_field field) {
    ValkeyModuleString *value = NULL;
    if (job->exists && has_more(call, job)) {
        ValkeyModule_HashGet(emq_store_handle(call, &job->row), VALKEYMODULE_HASH_NONE, emq_fields[field], &value, NULL);
    }
    learn(call, job, field, value);
    return value;
}

int64_t emq_job_number(emq_call *call, emq_job *job, emq_field field) {
    return emq_store_lenient(emq_job_field(call, job, field));
}

ValkeyModuleString *emq_job_payload(emq_call *call, emq_job *job) {
    ValkeyModuleString *payload = NULL;
    ValkeyModuleKey *handle = emq_store_handle(call, &job->row);
    if (handle) ValkeyModule_HashGet(handle, VALKEYMODULE_HASH_NONE, emq_words[EMQ_W_PAYLOAD], &payload, NULL);
    return payload;
}

/* The place that the row names, NULL for a state that is none. */
static emq_key *home(emq_call *call, emq_job *job) {
    ValkeyModuleString *state = emq_job_field(call, job, EMQ_STATE);
    if (!state) return NULL;
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(state, &length);
    for (int i = 0; i < EMQ_PLACES; i++) {
        if (!emq_word_is((emq_word_id)i, text, length)) continue;
        emq_lane *lane = i == EMQ_PENDING ? emq_lane_of_job(call, job) : NULL;
        return lane ? &lane->waiting : emq_store_key(call, (emq_queue_key)i);
    }
    return NULL;
}

/* Sets *place when that key lists the job. Answers false when it refused. */
static bool ask(emq_call *call, emq_job *job, emq_key *candidate, emq_key **place) {
    double score;
    if (!emq_store_see(call, candidate, VALKEYMODULE_KEYTYPE_ZSET)) return false;
    if (emq_store_score(call, candidate, job->id, &score)) *place = candidate;
    return true;
}

bool emq_job_place(emq_call *call, emq_job *job, emq_key **place) {
    *place = NULL;
    emq_key *named = home(call, job);
    if (named && !ask(call, job, named, place)) return false;
    if (*place) return true;

    emq_lane *lane = emq_lane_of_job(call, job);
    if (lane && &lane->waiting != named && !ask(call, job, &lane->waiting, place)) return false;
    for (int i = 0; i < EMQ_PLACES && !*place; i++) {
        emq_key *candidate = emq_store_key(call, (emq_queue_key)i);
        if (candidate != named && !ask(call, job, candidate, place)) return false;
    }
    return true;
}

bool emq_job_stale(emq_call *call, emq_job *job, emq_key *listing, bool *stale) {
    emq_key *place = NULL;
    if (job->exists && home(call, job) == listing) {
        place = listing;
    } else if (job->exists && !emq_job_place(call, job, &place)) {
        return false;
    }
    *stale = place != listing;
    return true;
}

bool emq_job_holds(emq_call *call, emq_job *job, ValkeyModuleString *token) {
    ValkeyModuleString *attempts = emq_job_field(call, job, EMQ_ATTEMPTS);
    return attempts && emq_string_equal(attempts, token);
}

bool emq_job_owned(emq_call *call, emq_job *job, emq_key *place) {
    if (place == emq_store_key(call, EMQ_ACTIVE)) return true;
    emq_lane *lane = emq_lane_of_job(call, job);
    bool waits = place && (place == emq_store_key(call, EMQ_PENDING) || (lane && place == &lane->waiting));
    ValkeyModuleString *reaped = waits ? emq_job_field(call, job, EMQ_REAPED) : NULL;
    ValkeyModuleString *attempts = reaped ? emq_job_field(call, job, EMQ_ATTEMPTS) : NULL;
    return attempts && emq_string_equal(reaped, attempts);
}

bool emq_job_last(emq_call *call, emq_job *job, int64_t max) {
    int64_t attempts = max > 0 ? emq_job_number(call, job, EMQ_ATTEMPTS) : 0;
    return max > 0 && attempts >= max && attempts - emq_job_number(call, job, EMQ_FLOOR) >= max;
}

bool emq_heads_collect(emq_call *call, emq_key *place, int64_t most, emq_heads *heads) {
    if (emq_store_length(call, place) == 0) return true;
    ValkeyModuleKey *handle = emq_store_handle(call, place);
    ValkeyModule_ZsetFirstInScoreRange(handle, VALKEYMODULE_NEGATIVE_INFINITE, VALKEYMODULE_POSITIVE_INFINITE, 0, 0);
    bool sound = true;
    while (sound && heads->live.count < most && heads->stale.count < EMQ_DROP && !ValkeyModule_ZsetRangeEndReached(handle)) {
        bool stale = true;
        emq_job *job = emq_job_of(call, emq_store_keep(call, ValkeyModule_ZsetRangeCurrentElement(handle, NULL)));
        sound = emq_job_load(call, job) && emq_job_stale(call, job, place, &stale);
        emq_vector_add(stale ? &heads->stale : &heads->live, job);
        ValkeyModule_ZsetRangeNext(handle);
    }
    ValkeyModule_ZsetRangeStop(handle);
    return sound;
}

void emq_heads_free(emq_heads *heads) {
    emq_vector_free(&heads->live);
    emq_vector_free(&heads->stale);
}

static void delete (emq_call *call, ValkeyModuleString *name) {
    emq_key key = {.name = name};
    emq_key_delete(call, &key);
    emq_store_end(call, &key);
}

void emq_job_erase(emq_call *call, emq_job *job) {
    static const char *const subkeys[] = {":logs", ":lock", ":dependencies", ":processed", ":failed", ":unsuccessful"};
    emq_key_delete(call, &job->row);
    char name[EMQ_KEY_MAX];
    size_t stem = emq_key_job(name, call->queue, call->queue_length, job->entry.text, "");
    for (size_t i = 0; i < sizeof subkeys / sizeof *subkeys; i++) {
        size_t length = strlen(subkeys[i]);
        memcpy(name + stem, subkeys[i], length);
        ValkeyModuleString *subkey = ValkeyModule_CreateString(NULL, name, stem + length);
        if (emq_store_exists(call, subkey)) delete (call, subkey);
        ValkeyModule_FreeString(NULL, subkey);
    }
    job->exists = false;
}

void emq_job_write(emq_call *call, emq_job *job, const emq_change *changes, int count) {
    emq_pair pairs[EMQ_PAIRS_MAX];
    for (int i = 0; i < count; i++) {
        emq_field field = changes[i].field;
        pairs[i] = (emq_pair){emq_fields[field], changes[i].value};
        job->fields[field] = changes[i].value;
        job->known |= 1u << field;
    }
    emq_hash_put(call, &job->row, pairs, count);
}

void emq_job_clear(emq_call *call, emq_job *job, emq_field field) {
    if (!emq_job_field(call, job, field)) return;
    emq_hash_take(call, &job->row, emq_fields[field]);
    job->fields[field] = NULL;
}

void emq_job_create(emq_call *call, emq_job *job, emq_word_id state, ValkeyModuleString *payload, ValkeyModuleString *group) {
    emq_pair pairs[] = {
        {emq_words[EMQ_W_PAYLOAD], payload},
        {emq_fields[EMQ_STATE], emq_words[state]},
        {emq_fields[EMQ_ATTEMPTS], emq_words[EMQ_W_ZERO]},
        {emq_fields[EMQ_GROUP], group},
    };
    emq_hash_put(call, &job->row, pairs, group ? 4 : 3);
    job->exists = true;
    job->unmet = 0;
    job->known = 1u << EMQ_STATE | 1u << EMQ_ATTEMPTS | 1u << EMQ_GROUP;
    job->fields[EMQ_STATE] = emq_words[state];
    job->fields[EMQ_ATTEMPTS] = emq_words[EMQ_W_ZERO];
    job->fields[EMQ_GROUP] = group;
}
