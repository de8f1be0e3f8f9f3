/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What time does to jobs: due ones become waiting, lapsed leases come back. Both look at the first LIMIT entries, so an
 * entry that turns out to be stale takes up room of the limit, is removed, and is not counted. */
#include "effects.h"
#include "flows.h"
#include "lanes.h"
#include "reply.h"
#include "steps.h"

/* The first entries of a place with a score that has come, split into live and stale. Rows are loaded. */
static bool collect_due(emq_call *call, emq_key *place, emq_heads *due) {
    emq_vector ids = {0};
    emq_store_lowest(call, place, (double)call->now_ms, (size_t)call->args.limit, &ids);
    bool sound = true;
    for (uint32_t i = 0; sound && i < ids.count; i++) {
        bool stale = true;
        emq_job *job = emq_job_of(call, emq_vector_at(&ids, i));
        sound = emq_job_load(call, job) && emq_job_stale(call, job, place, &stale);
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

/* EMQ.PROMOTE queue [LIMIT n] */
void cmd_promote(emq_call *call) {
    emq_key *schedule = emq_store_key(call, EMQ_SCHEDULE);
    emq_heads due = {0};
    if (collect_due(call, schedule, &due) && see_promotion(call, &due)) {
        for (uint32_t i = 0; i < due.stale.count; i++) emq_drop(call, emq_vector_at(&due.stale, i), schedule, NULL);
        for (uint32_t i = 0; i < due.live.count; i++) {
            emq_job *job = emq_vector_at(&due.live, i);
            emq_zset_take(call, schedule, job->id);
            emq_join(call, job);
        }
        emq_reply_integer(call, due.live.count);
    }
    emq_heads_free(&due);
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
    if (attempts) emq_job_set(call, job, EMQ_REAPED, attempts);
    emq_join(call, job);
}

/* EMQ.REAP queue [LIMIT n] [MAX m] */
void cmd_reap(emq_call *call) {
    emq_key *active = emq_store_key(call, EMQ_ACTIVE);
    emq_heads late = {0};
    if (collect_due(call, active, &late) && see_reaping(call, &late)) {
        for (uint32_t i = 0; i < late.stale.count; i++) emq_drop(call, emq_vector_at(&late.stale, i), active, NULL);
        for (uint32_t i = 0; i < late.live.count; i++) reap(call, emq_vector_at(&late.live, i));
        emq_reply_integer(call, late.live.count);
    }
    emq_heads_free(&late);
}
