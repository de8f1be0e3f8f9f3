/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transitions that EMQ.NEXT is composed of. Each trusts that the keys of its own command were seen, tests the rest itself,
 * and answers false when it refused, having written nothing. */
#ifndef EMQ_TRANSITIONS_H
#define EMQ_TRANSITIONS_H

#include "jobs.h"

/* The keys of the commands, as bits 1 << emq_queue_key. */
#define EMQ_SEES_CLAIM (EMQ_BIT(EMQ_META) | EMQ_BIT(EMQ_PENDING) | EMQ_BIT(EMQ_ACTIVE))
#define EMQ_SEES_GCLAIM (EMQ_BIT(EMQ_META) | EMQ_BIT(EMQ_ACTIVE) | EMQ_BIT(EMQ_RING))
#define EMQ_SEES_COMPLETE (EMQ_BIT(EMQ_ACTIVE) | EMQ_BIT(EMQ_PENDING) | EMQ_BIT(EMQ_COMPLETED))
#define EMQ_SEES_RETRY (EMQ_BIT(EMQ_ACTIVE) | EMQ_BIT(EMQ_PENDING) | EMQ_BIT(EMQ_SCHEDULE) | EMQ_BIT(EMQ_DEAD) | EMQ_BIT(EMQ_FAILED))
#define EMQ_SEES_DELAY (EMQ_BIT(EMQ_ACTIVE) | EMQ_BIT(EMQ_PENDING) | EMQ_BIT(EMQ_SCHEDULE))
#define EMQ_SEES_PROMOTE (EMQ_BIT(EMQ_SCHEDULE) | EMQ_BIT(EMQ_PENDING))
#define EMQ_SEES_REAP (EMQ_BIT(EMQ_ACTIVE) | EMQ_BIT(EMQ_PENDING) | EMQ_BIT(EMQ_DEAD) | EMQ_BIT(EMQ_FAILED))

/* Takes the first job of pending, or of the lane whose turn it is, under the call's lease; NULL when there is none. */
bool emq_take_flat(emq_call *call, emq_job **job);
bool emq_take_lane(emq_call *call, emq_job **job);

/* Makes scheduled jobs that are due wait; takes lapsed leases back. At most that many; answers how many. */
bool emq_promote(emq_call *call, int64_t limit, int64_t *promoted);
bool emq_reap(emq_call *call, int64_t limit, int64_t *reaped);

#endif
