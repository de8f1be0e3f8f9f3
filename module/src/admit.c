/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs come into being. An id that has a row is a duplicate: 0, and nothing changes. */
#include "effects.h"
#include "lanes.h"
#include "reply.h"

static bool admit(emq_call *call, emq_job *job, ValkeyModuleString *payload) {
    if (job->exists) return false;
    emq_job_create(call, job, EMQ_W_PENDING, payload, NULL);
    emq_zset_put(call, emq_store_key(call, EMQ_PENDING), job->id, 0);
    return true;
}

/* EMQ.ENQUEUE queue id payload */
void cmd_enqueue(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return;

    emq_reply_integer(call, admit(call, job, call->args.payload));
}

/* EMQ.MENQUEUE queue id payload [id payload ...] */
void cmd_menqueue(emq_call *call) {
    ValkeyModuleString **members = call->args.members;
    for (int i = 0; i < call->args.member_count; i++) {
        if (!emq_job_peek(call, emq_job_of(call, members[2 * i]))) return;
    }

    emq_reply_array(call, (size_t)call->args.member_count);
    for (int i = 0; i < call->args.member_count; i++) {
        emq_reply_integer(call, admit(call, emq_job_of(call, members[2 * i]), members[2 * i + 1]));
    }
}

/* EMQ.SCHEDULE queue id payload IN|AT ms */
void cmd_schedule(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return;
    if (job->exists) return emq_reply_integer(call, 0);

    emq_job_create(call, job, EMQ_W_SCHEDULED, call->args.payload, NULL);
    emq_zset_put(call, emq_store_key(call, EMQ_SCHEDULE), job->id, call->args.when_ms);
    emq_reply_integer(call, 1);
}

/* EMQ.GENQUEUE queue group id payload */
void cmd_genqueue(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return;
    if (job->exists) return emq_reply_integer(call, 0);

    emq_lane *lane = emq_lane_of(call, call->args.group);
    emq_job_create(call, job, EMQ_W_PENDING, call->args.payload, lane->group);
    emq_zset_put(call, &lane->waiting, job->id, 0);
    emq_lane_tune(call, lane);
    emq_reply_integer(call, 1);
}
