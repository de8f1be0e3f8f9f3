/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The steps that transitions are made of. All of them write, so everything that they touch was seen before: the job's lane
 * by emq_lane_see_job, what lies above it by emq_see_up. A place that is NULL is no place. */
#ifndef EMQ_STEPS_H
#define EMQ_STEPS_H

#include "jobs.h"

/* Takes the job off its place, and gives back the slot of an active one. */
void emq_leave(emq_call *call, emq_job *job, emq_key *place);

/* Puts the job into its waiting place, and writes another field with its state if there is one. */
void emq_join_with(emq_call *call, emq_job *job, const emq_change *change);
static inline void emq_join(emq_call *call, emq_job *job) {
    emq_join_with(call, job, NULL);
}

/* Takes the job off its place under a lease; attempts is its token afterwards. */
void emq_start(emq_call *call, emq_job *job, emq_key *place, int64_t deadline_ms);

/* Removes a stale entry from the place that lists it; lane is that place's lane, if it is one. */
void emq_drop(emq_call *call, emq_job *job, emq_key *place, emq_lane *lane);

/* A success: the job goes, and counts. */
void emq_finish(emq_call *call, emq_job *job, emq_key *place, ValkeyModuleString *result);

/* A failure for good. level counts the deaths that led to this one. */
void emq_die(emq_call *call, emq_job *job, ValkeyModuleString *error, int level);

/* Ends a run as failed: the job is planned again, or dies when that was its last run. */
void emq_fail(emq_call *call, emq_job *job, emq_key *place, bool last, int64_t delay_ms, ValkeyModuleString *error);

/* Ends a run that does not count: the job is planned again. */
void emq_put_off(emq_call *call, emq_job *job, emq_key *place, int64_t due_ms);

/* Deletes a job that did not end by itself; its parent learns that it was removed. */
void emq_remove(emq_call *call, emq_job *job, emq_key *place);

/* Whether the queue is paused. */
bool emq_paused(emq_call *call);

#endif
