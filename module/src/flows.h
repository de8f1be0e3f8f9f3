/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The way up: what the end of a child does to its parent. A parent in the same queue is settled in the same step; an end
 * that concerns another queue, or that climbs further than EMQ_UP levels, becomes an entry of flow:outbox, the fields of
 * which are joined by NUL. */
#ifndef EMQ_FLOWS_H
#define EMQ_FLOWS_H

#include "jobs.h"

/* Sees every key that the end of this job may touch above it. failed: the end is a failure. */
bool emq_see_up(emq_call *call, emq_job *job, bool failed);

/* Tells the parent, if the row named one, that the job completed, or that it failed at that level of a climbing death. The
 * row itself may be gone by now: what it said about its parent was read by emq_see_up. */
void emq_done_up(emq_call *call, emq_job *job, ValkeyModuleString *result);
void emq_fail_up(emq_call *call, emq_job *job, ValkeyModuleString *error, int level);

#endif
