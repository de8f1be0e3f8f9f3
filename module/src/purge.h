/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deleting jobs in bulk: first a plan, which checks all that the deletion will touch, then the deletion, which cannot fail.
 * Several plans may be made before the first is carried out; each takes the ids that were there when it was made, from
 * wherever they are by then. */
#ifndef EMQ_PURGE_H
#define EMQ_PURGE_H

#include "lanes.h"

typedef struct emq_purge {
    emq_key *place;
    emq_lane *lane; /* whose place it is, or NULL */
    emq_heads jobs;
} emq_purge;

/* Plans the first jobs of a place, at most that many, stale entries included. Answers false when it refused. */
bool emq_purge_plan(emq_call *call, emq_purge *purge, emq_key *place, emq_lane *lane, size_t most);

/* Number of entries planned, stale or not. */
size_t emq_purge_size(const emq_purge *purge);

/* Answers the number of jobs deleted. */
int64_t emq_purge_run(emq_call *call, emq_purge *purge);

void emq_purge_free(emq_purge *purge);

#endif
