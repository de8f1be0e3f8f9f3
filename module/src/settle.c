/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the holder of a lease does with it. The token is compared before the state, and a refusal changes nothing. */
#include "effects.h"
#include "flows.h"
#include "lanes.h"
#include "reply.h"
#include "stats.h"
#include "steps.h"

typedef enum ownership {
    OWNED,
    GONE,
    REFUSED,
} ownership;

/* Finds the job of the call and the place that lists it, when the call's token is good and its lease the last one given. */
static ownership own(emq_call *call, const char *mismatch, emq_job **job, emq_key **place) {
    *job = emq_job_of(call, call->args.id);
    if (!emq_job_load(call, *job)) return REFUSED;
    if (!(*job)->exists) return GONE;
    if (!emq_job_holds(call, *job, call->args.token)) return emq_refuse(call, mismatch), REFUSED;
    if (!emq_job_place(call, *job, place)) return REFUSED;
    if (!emq_job_owned(call, *job, *place)) return emq_refuse(call, EMQ_ERR_NOT_ACTIVE), REFUSED;
    return OWNED;
}

/* EMQ.COMPLETE queue id token [RESULT bytes] */
void cmd_complete(emq_call *call) {
    emq_job *job;
    emq_key *place;
    ownership lease = own(call, EMQ_ERR_STALE_COMPLETE, &job, &place);
    if (lease == GONE) return emq_reply_integer(call, 0);
    if (lease == REFUSED || !emq_lane_see_job(call, job) || !emq_see_up(call, job, false)) return;

    emq_finish(call, job, place, call->args.result ? call->args.result : job->id);
    emq_reply_integer(call, 1);
}

/* Finds the places of all members, and sees what their ends may touch. Rows come first: their kind and soundness matter
 * even where a key that only another row names is wrong. */
static bool see_members(emq_call *call, emq_key **places) {
    const emq_args *args = &call->args;
    for (int i = 0; i < args->member_count; i++) {
        emq_job *job = emq_job_of(call, args->members[2 * i]);
        if (!emq_job_load(call, job) || (job->exists && !emq_job_place(call, job, &places[i]))) return false;
    }
    for (int i = 0; i < args->member_count; i++) {
        emq_job *job = emq_job_of(call, args->members[2 * i]);
        if (job->exists && (!emq_lane_see_job(call, job) || !emq_see_up(call, job, false))) return false;
    }
    return true;
}

static int complete_member(emq_call *call, emq_job *job, ValkeyModuleString *token, emq_key *place) {
    if (!job->exists) return 0;
    if (!emq_job_holds(call, job, token)) return emq_counted.refused[EMQ_REFUSED_stale]++, -1;
    if (!emq_job_owned(call, job, place)) return emq_counted.refused[EMQ_REFUSED_state]++, -1;
    emq_finish(call, job, place, job->id);
    return 1;
}

/* EMQ.MCOMPLETE queue id token [id token ...] */
void cmd_mcomplete(emq_call *call) {
    const emq_args *args = &call->args;
    emq_key **places = ValkeyModule_Calloc((size_t)args->member_count, sizeof *places);
    if (see_members(call, places)) {
        emq_reply_array(call, (size_t)args->member_count);
        for (int i = 0; i < args->member_count; i++) {
            emq_job *job = emq_job_of(call, args->members[2 * i]);
            emq_reply_integer(call, complete_member(call, job, args->members[2 * i + 1], places[i]));
        }
    }
    ValkeyModule_Free(places);
}

/* EMQ.RETRY queue id token delay max error */
void cmd_retry(emq_call *call) {
    emq_job *job;
    emq_key *place;
    ownership lease = own(call, EMQ_ERR_STALE_RETRY, &job, &place);
    if (lease == GONE) emq_refuse(call, EMQ_ERR_GONE);
    if (lease != OWNED || !emq_lane_see_job(call, job)) return;
    bool last = emq_job_last(call, job, call->args.max);
    if (last && !emq_see_up(call, job, true)) return;

    emq_fail(call, job, place, last, call->args.delay_ms, call->args.error);
    emq_reply_text(call, last ? "dead" : "scheduled");
}

/* EMQ.DELAY queue id token IN|AT ms */
void cmd_delay(emq_call *call) {
    emq_job *job;
    emq_key *place;
    ownership lease = own(call, EMQ_ERR_STALE_DELAY, &job, &place);
    if (lease == GONE) emq_refuse(call, EMQ_ERR_GONE);
    if (lease != OWNED || !emq_lane_see_job(call, job)) return;

    emq_put_off(call, job, place, call->args.when_ms);
    emq_reply_integer(call, 1);
}

/* EMQ.EXTEND queue id token lease */
void cmd_extend(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key *place, *active = emq_store_key(call, EMQ_ACTIVE);
    if (!emq_job_load(call, job)) return;
    if (!job->exists) return emq_reply_integer(call, -1);
    if (!emq_job_holds(call, job, call->args.token)) return (void)emq_refuse(call, EMQ_ERR_STALE_EXTEND);
    if (!emq_job_place(call, job, &place)) return;
    if (place != active) return (void)emq_refuse(call, EMQ_ERR_NOT_ACTIVE);

    emq_zset_put(call, active, job->id, call->now_ms + call->args.lease_ms);
    emq_reply_integer(call, 1);
}

/* EMQ.MEXTEND queue lease id token [id token ...] */
void cmd_mextend(emq_call *call) {
    const emq_args *args = &call->args;
    emq_key *active = emq_store_key(call, EMQ_ACTIVE);
    emq_vector extended = {0}, missed = {0};
    uint64_t stale = 0, inactive = 0;
    bool sound = true;
    for (int i = 0; sound && i < args->member_count; i++) {
        emq_key *place = NULL;
        emq_job *job = emq_job_of(call, args->members[2 * i]);
        sound = emq_job_load(call, job);
        bool held = sound && job->exists && emq_job_holds(call, job, args->members[2 * i + 1]);
        if (held) sound = emq_job_place(call, job, &place);
        emq_vector_add(place == active ? &extended : &missed, job);
        stale += job->exists && !held;
        inactive += held && place != active;
    }
    if (sound) {
        emq_counted.refused[EMQ_REFUSED_stale] += stale;
        emq_counted.refused[EMQ_REFUSED_state] += inactive;
        for (uint32_t i = 0; i < extended.count; i++) {
            emq_zset_put(call, active, ((emq_job *)emq_vector_at(&extended, i))->id, call->now_ms + args->lease_ms);
        }
        emq_reply_array(call, missed.count);
        for (uint32_t i = 0; i < missed.count; i++) emq_reply_string(call, ((emq_job *)emq_vector_at(&missed, i))->id);
    }
    emq_vector_free(&extended);
    emq_vector_free(&missed);
}
