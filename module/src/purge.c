/* SPDX-License-Identifier: BSD-3-Clause */
#include "purge.h"

#include "flows.h"
#include "steps.h"

bool emq_purge_plan(emq_call *call, emq_purge *purge, emq_key *place, emq_lane *lane, size_t most) {
    purge->place = place;
    purge->lane = lane;
    if (!emq_lane_see(call, lane)) return false;
    emq_vector ids = {0};
    emq_store_lowest(call, place, VALKEYMODULE_POSITIVE_INFINITE, most, &ids);
    bool sound = true;
    for (uint32_t i = 0; sound && i < ids.count; i++) {
        bool stale = true;
        emq_job *job = emq_job_of(call, emq_vector_at(&ids, i));
        sound = emq_job_peek(call, job) && emq_job_stale(call, job, place, &stale);
        if (sound && !stale) sound = emq_lane_see_job(call, job) && emq_see_up(call, job, true);
        emq_vector_add(stale ? &purge->jobs.stale : &purge->jobs.live, job);
    }
    emq_vector_free(&ids);
    return sound;
}

size_t emq_purge_size(const emq_purge *purge) {
    return purge->jobs.live.count + purge->jobs.stale.count;
}

int64_t emq_purge_run(emq_call *call, emq_purge *purge) {
    for (uint32_t i = 0; i < purge->jobs.stale.count; i++) {
        emq_drop(call, emq_vector_at(&purge->jobs.stale, i), purge->place, purge->lane);
    }
    int64_t deleted = 0;
    for (uint32_t i = 0; i < purge->jobs.live.count; i++) {
        emq_job *job = emq_vector_at(&purge->jobs.live, i);
        emq_key *place = NULL;
        if (!job->exists) continue;       /* planned twice: a foreign writer listed it in two places */
        emq_job_place(call, job, &place); /* was seen, so it cannot refuse */
        emq_remove(call, job, place);
        deleted++;
    }
    return deleted;
}

void emq_purge_free(emq_purge *purge) {
    emq_heads_free(&purge->jobs);
}
