/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What time does to jobs: due ones become waiting, lapsed leases come back. Both look at the first LIMIT entries, so an
 * entry that turns out to be stale takes up room of the limit, is removed, and is not counted. */
#include "effects.h"
#include "flows.h"
#include "lanes.h"
#include "reply.h"
#include "steps.h"
#include "transitions.h"

static bool is_of(emq_call *call, emq_job *job, ValkeyModuleString *group) {
    ValkeyModuleString *own = emq_job_field(call, job, EMQ_GROUP);
    return !group || (own && emq_string_equal(own, group));
}

/* Of the first `scan` entries of a place with a score that has come, the first `limit`, of that group if one is given, split
 * into live and stale. Rows are loaded. */
static bool collect_due(emq_call *call, emq_key *place, size_t scan, int64_t limit, ValkeyModuleString *group, emq_heads *due) {
    emq_vector ids = {0};
    emq_store_lowest(call, place, (double)call->now_ms, scan, &ids);
    bool sound = true;
    for (uint32_t i = 0; sound && i < ids.count && due->live.count + due->stale.count < limit; i++) {
        bool stale = true;
        emq_job *job = emq_job_of(call, emq_vector_at(&ids, i));
        sound = emq_job_load(call, job);
        if (!sound || !is_of(call, job, group)) continue;
        sound = emq_job_stale(call, job, place, &stale);
        emq_vector_add(stale ? &due->stale : &due->live, job);
    }
    emq_vector_free(&ids);
    return sound;
}

static bool see_promotion(emq_call *call, emq_heads *due) {
    for (uint32_t i = 0; i < due->live.count; i++) {
        if (!emq_lane_see_job(call, emq_vector_at(&due->live, i))) return false;
    }
    return true;
}

bool emq_promote(emq_call *call, int64_t limit, int64_t *promoted) {
    emq_key *schedule = emq_store_key(call, EMQ_SCHEDULE);
    emq_heads due = {0};
    bool sound = collect_due(call, schedule, (size_t)limit, limit, NULL, &due) && see_promotion(call, &due);
    if (sound) {
        for (uint32_t i = 0; i < due.stale.count; i++) emq_drop(call, emq_vector_at(&due.stale, i), schedule, NULL);
        for (uint32_t i = 0; i < due.live.count; i++) {
            emq_job *job = emq_vector_at(&due.live, i);
            emq_zset_take(call, schedule, job->id);
            emq_join(call, job);
        }
    }
    *promoted = due.live.count;
    emq_heads_free(&due);
    return sound;
}

/* EMQ.PROMOTE queue [LIMIT n] */
void cmd_promote(emq_call *call) {
    int64_t promoted;
    if (emq_promote(call, call->args.limit, &promoted)) emq_reply_integer(call, promoted);
}

static bool see_reaping(emq_call *call, emq_heads *late) {
    for (uint32_t i = 0; i < late->live.count; i++) {
        emq_job *job = emq_vector_at(&late->live, i);
        if (!emq_lane_see_job(call, job)) return false;
        if (emq_job_last(call, job, call->args.max) && !emq_see_up(call, job, true)) return false;
    }
    return true;
}

static void reap(emq_call *call, emq_job *job) {
    emq_leave(call, job, emq_store_key(call, EMQ_ACTIVE));
    if (emq_job_last(call, job, call->args.max)) return emq_die(call, job, emq_words[EMQ_W_EXPIRED], 0);
    ValkeyModuleString *attempts = emq_job_field(call, job, EMQ_ATTEMPTS);
    emq_join_with(call, job, attempts ? &(emq_change){EMQ_REAPED, attempts} : NULL);
}

/* Reaps the leases that have lapsed, of one group or of all. */
static bool reap_of(emq_call *call, size_t scan, int64_t limit, ValkeyModuleString *group, int64_t *reaped) {
    emq_key *active = emq_store_key(call, EMQ_ACTIVE);
    emq_heads late = {0};
    bool sound = collect_due(call, active, scan, limit, group, &late) && see_reaping(call, &late);
    if (sound) {
        for (uint32_t i = 0; i < late.stale.count; i++) emq_drop(call, emq_vector_at(&late.stale, i), active, NULL);
        for (uint32_t i = 0; i < late.live.count; i++) reap(call, emq_vector_at(&late.live, i));
    }
    *reaped = late.live.count;
    emq_heads_free(&late);
    return sound;
}

bool emq_reap(emq_call *call, int64_t limit, int64_t *reaped) {
    return reap_of(call, (size_t)limit, limit, NULL, reaped);
}

/* EMQ.REAP queue [LIMIT n] [MAX m] */
void cmd_reap(emq_call *call) {
    int64_t reaped;
    if (emq_reap(call, call->args.limit, &reaped)) emq_reply_integer(call, reaped);
}

/* EMQ.GREAP queue group [LIMIT n] [MAX m] */
void cmd_greap(emq_call *call) {
    int64_t reaped;
    if (reap_of(call, EMQ_SCAN, call->args.limit, call->args.group, &reaped)) emq_reply_integer(call, reaped);
}
