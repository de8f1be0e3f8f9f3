/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include "effects.h"
#include "flows.h"
#include "lanes.h"

void emq_leave(emq_call *call, emq_job *job, emq_key *place) {
    if (!place) return;
    emq_zset_take(call, place, job->id);
    emq_lane *lane = emq_lane_of_job(call, job);
    if (!lane) return;
    bool active = place == emq_store_key(call, EMQ_ACTIVE);
    if (active) emq_lane_count(lane, -1);
    if (active || place == &lane->waiting) emq_lane_tune(call, lane);
}

void emq_join(emq_call *call, emq_job *job) {
    emq_job_set(call, job, EMQ_STATE, emq_words[EMQ_W_PENDING]);
    emq_lane *lane = emq_lane_of_job(call, job);
    emq_zset_put(call, lane ? &lane->waiting : emq_store_key(call, EMQ_PENDING), job->id, 0);
    if (lane) emq_lane_tune(call, lane);
}

void emq_start(emq_call *call, emq_job *job, emq_key *place, int64_t deadline_ms) {
    emq_leave(call, job, place);
    job->attempts++;
    emq_change changes[] = {{EMQ_STATE, emq_words[EMQ_W_ACTIVE]}, {EMQ_ATTEMPTS, emq_store_number(call, job->attempts)}};
    emq_job_write(call, job, changes, 2);
    emq_zset_put(call, emq_store_key(call, EMQ_ACTIVE), job->id, deadline_ms);
    emq_lane *lane = emq_lane_of_job(call, job);
    if (!lane) return;
    emq_lane_count(lane, 1);
    emq_lane_tune(call, lane);
}

static void plan(emq_call *call, emq_job *job, int64_t due_ms) {
    emq_job_set(call, job, EMQ_STATE, emq_words[EMQ_W_SCHEDULED]);
    emq_zset_put(call, emq_store_key(call, EMQ_SCHEDULE), job->id, due_ms);
}

/* Ends the lease: off its place, and a reap no longer keeps the token good. */
static void give_back(emq_call *call, emq_job *job, emq_key *place) {
    emq_leave(call, job, place);
    emq_job_clear(call, job, EMQ_REAPED);
}

void emq_drop(emq_call *call, emq_job *job, emq_key *place, emq_lane *lane) {
    emq_zset_take(call, place, job->id);
    if (lane) emq_lane_tune(call, lane);
}

void emq_finish(emq_call *call, emq_job *job, emq_key *place, ValkeyModuleString *result) {
    emq_leave(call, job, place);
    emq_job_erase(call, job);
    call->completed++;
    emq_done_up(call, job, result);
}

void emq_die(emq_call *call, emq_job *job, ValkeyModuleString *error, int level) {
    emq_change changes[] = {{EMQ_LAST_ERROR, error}, {EMQ_STATE, emq_words[EMQ_W_DEAD]}};
    emq_job_write(call, job, changes, 2);
    emq_zset_put(call, emq_store_key(call, EMQ_DEAD), job->id, 0);
    call->failed++;
    emq_fail_up(call, job, error, level);
}

void emq_fail(emq_call *call, emq_job *job, emq_key *place, bool last, int64_t delay_ms, ValkeyModuleString *error) {
    give_back(call, job, place);
    if (last) return emq_die(call, job, error, 0);
    emq_job_set(call, job, EMQ_LAST_ERROR, error);
    plan(call, job, call->now_ms + delay_ms);
}

void emq_put_off(emq_call *call, emq_job *job, emq_key *place, int64_t due_ms) {
    give_back(call, job, place);
    emq_job_set(call, job, EMQ_FLOOR, emq_store_number(call, emq_job_number(call, job, EMQ_FLOOR) + 1));
    plan(call, job, due_ms);
}

void emq_remove(emq_call *call, emq_job *job, emq_key *place) {
    emq_leave(call, job, place);
    emq_job_erase(call, job);
    emq_fail_up(call, job, emq_words[EMQ_W_REMOVED], 0);
}

bool emq_paused(emq_call *call) {
    return emq_store_has_field(call, emq_store_key(call, EMQ_META), emq_words[EMQ_W_PAUSED]);
}
