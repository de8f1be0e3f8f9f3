/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims: the lowest ids of pending, or of the lane whose turn it is, each under a lease until the same deadline. */
#include "effects.h"
#include "lanes.h"
#include "reply.h"
#include "steps.h"
#include "transitions.h"

static void start_all(emq_call *call, emq_heads *heads, emq_key *place) {
    for (uint32_t i = 0; i < heads->live.count; i++) {
        emq_start(call, emq_vector_at(&heads->live, i), place, call->now_ms + call->args.lease_ms);
    }
}

/* Starts the first live jobs of pending, at most that many. Answers false when it refused. */
static bool serve_flat(emq_call *call, int64_t most, emq_heads *heads) {
    emq_key *pending = emq_store_key(call, EMQ_PENDING);
    if (emq_paused(call)) return true;
    if (!emq_heads_collect(call, pending, most, heads)) return false;
    for (uint32_t i = 0; i < heads->live.count; i++) {
        if (!emq_lane_see_job(call, emq_vector_at(&heads->live, i))) return false;
    }

    for (uint32_t i = 0; i < heads->stale.count; i++) emq_drop(call, emq_vector_at(&heads->stale, i), pending, NULL);
    start_all(call, heads, pending);
    return true;
}

bool emq_take_flat(emq_call *call, emq_job **job) {
    emq_heads heads = {0};
    bool sound = serve_flat(call, 1, &heads);
    *job = sound && heads.live.count > 0 ? emq_vector_at(&heads.live, 0) : NULL;
    emq_heads_free(&heads);
    return sound;
}

/* EMQ.CLAIM queue lease */
void cmd_claim(emq_call *call) {
    emq_job *job;
    if (!emq_take_flat(call, &job)) return;
    if (!job) return emq_reply_array(call, 0);
    emq_reply_job(call, job, NULL);
}

/* EMQ.MCLAIM queue lease count */
void cmd_mclaim(emq_call *call) {
    emq_heads heads = {0};
    if (serve_flat(call, call->args.count, &heads)) {
        emq_reply_array(call, heads.live.count);
        for (uint32_t i = 0; i < heads.live.count; i++) emq_reply_job(call, emq_vector_at(&heads.live, i), NULL);
    }
    emq_heads_free(&heads);
}

/* One look at the ring: the lanes that were passed, each with the stale entries of its head, and the one that serves. */
typedef struct ring_round {
    emq_lane *serving;
    emq_heads heads;     /* live: of the serving lane */
    emq_vector passed;   /* emq_lane */
    emq_vector stale_of; /* emq_lane, for each entry of heads.stale */
} ring_round;

typedef int64_t (*wanting)(emq_call *call, emq_lane *lane);

/* Tests a lane as the next to serve. Answers false when it refused. */
static bool try_lane(emq_call *call, ring_round *round, emq_lane *lane, wanting want) {
    if (!emq_lane_see(call, lane)) return false;
    emq_vector_add(&round->passed, lane);
    if (!emq_lane_serviceable(call, lane)) return true;

    int64_t most = want(call, lane), room = lane->ceiling - lane->active;
    if (lane->ceiling > 0 && most > room) most = room;
    emq_heads heads = {0};
    bool sound = emq_heads_collect(call, &lane->waiting, most, &heads);
    for (uint32_t i = 0; i < heads.stale.count; i++) {
        emq_vector_add(&round->heads.stale, emq_vector_at(&heads.stale, i));
        emq_vector_add(&round->stale_of, lane);
    }
    emq_vector_free(&heads.stale);
    round->heads.live = heads.live;
    if (heads.live.count > 0) round->serving = lane;
    return sound;
}

/* Walks the ring from its head to the first lane with a live job. Answers false when it refused. */
static bool find_lane(emq_call *call, ring_round *round, wanting want) {
    emq_key *ring = emq_store_key(call, EMQ_RING);
    size_t length = emq_store_length(call, ring);
    for (size_t i = 0; i < length && i < EMQ_ROUND && !round->serving; i++) {
        ValkeyModuleString *group = emq_store_keep(call, ValkeyModule_ListGet(emq_store_handle(call, ring), (long)i));
        if (!try_lane(call, round, emq_lane_of(call, group), want)) return false;
    }
    if (round->passed.count > 1) emq_store_release(call, ring); /* the handle stands further on, and is to look at the head again */
    return true;
}

/* Starts the first live jobs of the lane whose turn it is, as many as it wants and its ceiling leaves room for. Lanes that
 * were passed lose their stale entries, and their turn unless they may still have a job. */
static bool serve_lane(emq_call *call, ring_round *round, wanting want) {
    if (emq_paused(call)) return true;
    if (!find_lane(call, round, want)) return false;

    for (uint32_t i = 0; i < round->passed.count; i++) ((emq_lane *)emq_vector_at(&round->passed, i))->offered = true;
    for (uint32_t i = 0; i < round->heads.stale.count; i++) {
        emq_lane *lane = emq_vector_at(&round->stale_of, i);
        emq_zset_take(call, &lane->waiting, ((emq_job *)emq_vector_at(&round->heads.stale, i))->id);
    }
    for (uint32_t i = 0; i < round->passed.count; i++) emq_lane_tune(call, emq_vector_at(&round->passed, i));
    if (!round->serving) return true;
    start_all(call, &round->heads, &round->serving->waiting);
    if (round->serving->offered) emq_lane_rotate(call, round->serving);
    return true;
}

static void end_round(ring_round *round) {
    emq_heads_free(&round->heads);
    emq_vector_free(&round->passed);
    emq_vector_free(&round->stale_of);
}

static int64_t want_one(emq_call *call, emq_lane *lane) {
    (void)call, (void)lane;
    return 1;
}

static int64_t want_weight(emq_call *call, emq_lane *lane) {
    int64_t weight = emq_store_lenient(emq_store_field(call, emq_store_key(call, EMQ_GWEIGHT), lane->group));
    return weight < 1 ? 1 : weight > EMQ_WEIGHT_MAX ? EMQ_WEIGHT_MAX : weight;
}

static int64_t want_count(emq_call *call, emq_lane *lane) {
    (void)lane;
    return call->args.count;
}

bool emq_take_lane(emq_call *call, emq_job **job) {
    ring_round round = {0};
    bool sound = serve_lane(call, &round, want_one);
    *job = sound && round.serving ? emq_vector_at(&round.heads.live, 0) : NULL;
    end_round(&round);
    return sound;
}

/* EMQ.GCLAIM queue lease */
void cmd_gclaim(emq_call *call) {
    emq_job *job;
    if (!emq_take_lane(call, &job)) return;
    if (!job) return emq_reply_array(call, 0);
    emq_reply_job(call, job, emq_job_field(call, job, EMQ_GROUP));
}

static void claim_lane(emq_call *call, wanting want) {
    ring_round round = {0};
    if (serve_lane(call, &round, want)) {
        emq_reply_array(call, round.heads.live.count);
        for (uint32_t i = 0; i < round.heads.live.count; i++) {
            emq_reply_job(call, emq_vector_at(&round.heads.live, i), round.serving->group);
        }
    }
    end_round(&round);
}

/* EMQ.GWCLAIM queue lease */
void cmd_gwclaim(emq_call *call) {
    claim_lane(call, want_weight);
}

/* EMQ.GMCLAIM queue lease count */
void cmd_gmclaim(emq_call *call) {
    claim_lane(call, want_count);
}
