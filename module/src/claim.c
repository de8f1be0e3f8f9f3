/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims of the flat queue: the lowest ids of pending, each under a lease until the same deadline. */
#include "effects.h"
#include "lanes.h"
#include "reply.h"
#include "steps.h"

/* Starts the first live jobs of pending, at most that many. Refuses before the first one. */
static bool serve_flat(emq_call *call, int64_t most, emq_heads *heads) {
    emq_key *pending = emq_store_key(call, EMQ_PENDING);
    if (emq_paused(call)) return true;
    if (!emq_heads_collect(call, pending, most, heads)) return false;
    for (uint32_t i = 0; i < heads->live.count; i++) {
        if (!emq_lane_see_job(call, emq_vector_at(&heads->live, i))) return false;
    }

    for (uint32_t i = 0; i < heads->stale.count; i++) emq_drop(call, emq_vector_at(&heads->stale, i), pending, NULL);
    for (uint32_t i = 0; i < heads->live.count; i++) {
        emq_start(call, emq_vector_at(&heads->live, i), pending, call->now_ms + call->args.lease_ms);
    }
    return true;
}

/* EMQ.CLAIM queue lease */
void cmd_claim(emq_call *call) {
    emq_heads heads = {0};
    if (serve_flat(call, 1, &heads)) {
        if (heads.live.count > 0) {
            emq_reply_job(call, emq_vector_at(&heads.live, 0), NULL);
        } else {
            emq_reply_array(call, 0);
        }
    }
    emq_heads_free(&heads);
}
