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

/* Writes the state and another field, if there is one. */
static void change_state(emq_call *call, emq_job *job, emq_word_id state, const emq_change *change) {
    emq_change changes[2];
    int count = 0;
    if (change) changes[count++] = *change; /* first: it may be long */
    changes[count++] = (emq_change){EMQ_STATE, emq_words[state]};
    emq_job_write(call, job, changes, count);
}

void emq_join_with(emq_call *call, emq_job *job, const emq_change *change) {
    change_state(call, job, EMQ_W_PENDING, change);
    emq_lane *lane = emq_lane_of_job(call, job);
    emq_zset_put(call, lane ? &lane->waiting : emq_store_key(call, EMQ_PENDING), job->id, 0);
    if (lane) emq_lane_tune(call, lane);
}

void emq_start(emq_call *call, emq_job *job, emq_key *place, int64_t deadline_ms) {
    emq_leave(call, job, place);
    job->attempts++;
    change_state(call, job, EMQ_W_ACTIVE, &(emq_change){EMQ_ATTEMPTS, emq_store_number(call, job->attempts)});
    emq_zset_put(call, emq_store_key(call, EMQ_ACTIVE), job->id, deadline_ms);
    emq_lane *lane = emq_lane_of_job(call, job);
    if (!lane) return;
    emq_lane_count(lane, 1);
    emq_lane_tune(call, lane);
}

static void plan(emq_call *call, emq_job *job, int64_t due_ms, const emq_change *change) {
    change_state(call, job, EMQ_W_SCHEDULED, change);
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
    change_state(call, job, EMQ_W_DEAD, &(emq_change){EMQ_LAST_ERROR, error});
    emq_zset_put(call, emq_store_key(call, EMQ_DEAD), job->id, 0);
    call->failed++;
    emq_fail_up(call, job, error, level);
}

void emq_fail(emq_call *call, emq_job *job, emq_key *place, bool last, int64_t delay_ms, ValkeyModuleString *error) {
    give_back(call, job, place);
    if (last) return emq_die(call, job, error, 0);
    plan(call, job, call->now_ms + delay_ms, &(emq_change){EMQ_LAST_ERROR, error});
}

void emq_put_off(emq_call *call, emq_job *job, emq_key *place, int64_t due_ms) {
    give_back(call, job, place);
    int64_t floor = emq_job_number(call, job, EMQ_FLOOR) + 1;
    plan(call, job, due_ms, &(emq_change){EMQ_FLOOR, emq_store_number(call, floor)});
}

void emq_remove(emq_call *call, emq_job *job, emq_key *place) {
    emq_leave(call, job, place);
    emq_job_erase(call, job);
    emq_fail_up(call, job, emq_words[EMQ_W_REMOVED], 0);
}

bool emq_paused(emq_call *call) {
    return emq_store_has_field(call, emq_store_key(call, EMQ_META), emq_words[EMQ_W_PAUSED]);
}
