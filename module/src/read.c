/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is there at this moment. Readers need no fence and run on replicas. */
#include "lanes.h"
#include "reply.h"

/* EMQ.STATE queue id */
void cmd_state(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key *place;
    if (!emq_job_peek(call, job)) return;
    if (!job->exists) return emq_reply_text(call, "absent");
    if (!emq_job_place(call, job, &place)) return;
    if (!place) return emq_reply_text(call, "unknown");
    for (int i = EMQ_ACTIVE; i < EMQ_PLACES; i++) {
        if (place == emq_store_key(call, (emq_queue_key)i)) return emq_reply_string(call, emq_words[i]);
    }
    emq_reply_string(call, emq_words[EMQ_W_PENDING]);
}

/* Adds the backlogs of all lanes. */
static bool count_lanes(emq_call *call, size_t *waiting) {
    emq_vector groups = {0};
    emq_store_members(call, EMQ_LANES, &groups);
    bool sound = true;
    for (uint32_t i = 0; sound && i < groups.count; i++) {
        size_t length;
        const char *group = ValkeyModule_StringPtrLen(emq_vector_at(&groups, i), &length);
        emq_key lane = {0};
        emq_store_name_lane(call, &lane, group, length);
        sound = emq_store_see(call, &lane, VALKEYMODULE_KEYTYPE_ZSET);
        *waiting += emq_store_length(call, &lane);
        emq_store_forget(call, &lane);
    }
    emq_vector_free(&groups);
    return sound;
}

static void reply_count(emq_call *call, const char *name, int64_t count) {
    emq_reply_text(call, name);
    emq_reply_integer(call, count);
}

static int64_t metric(emq_call *call, emq_queue_key metrics) {
    return emq_store_lenient(emq_store_field(call, emq_store_key(call, metrics), emq_words[EMQ_W_COUNT]));
}

/* EMQ.COUNTS queue */
void cmd_counts(emq_call *call) {
    static const char *const names[EMQ_PLACES] = {"pending", "active", "scheduled", "dead", "awaiting_children"};
    size_t counts[EMQ_PLACES];
    for (int i = 0; i < EMQ_PLACES; i++) counts[i] = emq_store_length(call, emq_store_key(call, (emq_queue_key)i));
    if (!count_lanes(call, &counts[EMQ_PENDING])) return;

    emq_reply_map(call, EMQ_PLACES + 2);
    for (int i = 0; i < EMQ_PLACES; i++) reply_count(call, names[i], (int64_t)counts[i]);
    reply_count(call, "completed", metric(call, EMQ_COMPLETED));
    reply_count(call, "failed", metric(call, EMQ_FAILED));
}

/* Has the server read and answer a hash, as it answers this client. */
static void reply_hash(emq_call *call, emq_key *key) {
    emq_store_release(call, key);
    ValkeyModuleCallReply *fields = ValkeyModule_Call(call->ctx, "HGETALL", "0s", key->name);
    if (!fields) return emq_reply_map(call, 0);
    ValkeyModule_ReplyWithCallReply(call->ctx, fields);
    ValkeyModule_FreeCallReply(fields);
}

/* EMQ.PEEK queue id */
void cmd_peek(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return;
    if (!job->exists) return emq_reply_null(call);

    emq_vector pairs = {0};
    if (!emq_store_pairs(call, &job->row, &pairs)) {
        emq_vector_free(&pairs);
        return reply_hash(call, &job->row);
    }
    emq_reply_map(call, pairs.count / 2);
    for (uint32_t i = 0; i < pairs.count; i++) emq_reply_string(call, emq_vector_at(&pairs, i));
    emq_vector_free(&pairs);
}
