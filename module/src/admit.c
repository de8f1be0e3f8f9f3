/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Jobs come into being. An id that has a row is a duplicate: 0, and nothing changes. */
#include "effects.h"
#include "reply.h"
#include "steps.h"

/* EMQ.ENQUEUE queue id payload */
void cmd_enqueue(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return;
    if (job->exists) return emq_reply_integer(call, 0);

    emq_job_create(call, job, EMQ_W_PENDING, call->args.payload, NULL);
    emq_zset_put(call, emq_store_key(call, EMQ_PENDING), job->id, 0);
    emq_reply_integer(call, 1);
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
