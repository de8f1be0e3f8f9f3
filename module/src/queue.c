/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue as a whole: pausing its claims, and emptying it. */
#include "effects.h"
#include "flows.h"
#include "lanes.h"
#include "purge.h"
#include "reply.h"
#include "steps.h"
#include "lines.h"

/* EMQ.PAUSE queue */
void cmd_pause(emq_call *call) {
    if (!emq_paused(call)) {
        emq_hash_put(call, emq_store_key(call, EMQ_META), &(emq_pair){emq_words[EMQ_W_PAUSED], emq_words[EMQ_W_ONE]}, 1);
    }
    emq_reply_integer(call, 1);
}

/* EMQ.RESUME queue */
void cmd_resume(emq_call *call) {
    emq_hash_take(call, emq_store_key(call, EMQ_META), emq_words[EMQ_W_PAUSED]);
    emq_lines_resume(call);
    emq_reply_integer(call, 1);
}

/* EMQ.DRAIN queue [SCHEDULED] [LIMIT n] */
void cmd_drain(emq_call *call) {
    emq_purge waiting = {0}, later = {0};
    size_t limit = (size_t)call->args.limit;
    bool sound = emq_purge_plan(call, &waiting, emq_store_key(call, EMQ_PENDING), NULL, limit);
    if (sound && call->args.scheduled) {
        sound = emq_purge_plan(call, &later, emq_store_key(call, EMQ_SCHEDULE), NULL, limit - emq_purge_size(&waiting));
    }
    if (sound) emq_reply_integer(call, emq_purge_run(call, &waiting) + emq_purge_run(call, &later));
    emq_purge_free(&waiting);
    emq_purge_free(&later);
}

/* What one OBLITERATE will delete. */
typedef struct ruin_plan {
    emq_vector purges; /* emq_purge, allocated */
    emq_vector lanes;  /* emq_lane */
    emq_vector repeats;
    size_t left; /* of LIMIT */
} ruin_plan;

static bool plan_place(emq_call *call, ruin_plan *ruin, emq_key *place, emq_lane *lane) {
    if (ruin->left == 0) return true;
    emq_purge *purge = ValkeyModule_Calloc(1, sizeof *purge);
    emq_vector_add(&ruin->purges, purge);
    if (!emq_purge_plan(call, purge, place, lane, ruin->left)) return false;
    ruin->left -= emq_purge_size(purge);
    return true;
}

static bool plan_lanes(emq_call *call, ruin_plan *ruin) {
    emq_vector groups = {0};
    if (ruin->left > 0) emq_store_members(call, EMQ_LANES, &groups);
    emq_strings_sort(&groups);
    bool sound = true;
    for (uint32_t i = 0; sound && i < groups.count && ruin->left > 0; i++) {
        emq_lane *lane = emq_lane_of(call, emq_vector_at(&groups, i));
        sound = emq_lane_see(call, lane) && plan_place(call, ruin, &lane->waiting, lane);
        emq_vector_add(&ruin->lanes, lane);
    }
    emq_vector_free(&groups);
    return sound;
}

static bool plan(emq_call *call, ruin_plan *ruin) {
    if (!plan_place(call, ruin, emq_store_key(call, EMQ_ACTIVE), NULL) || !plan_place(call, ruin, emq_store_key(call, EMQ_PENDING), NULL) ||
        !plan_lanes(call, ruin) || !plan_place(call, ruin, emq_store_key(call, EMQ_SCHEDULE), NULL) ||
        !plan_place(call, ruin, emq_store_key(call, EMQ_DEAD), NULL) || !plan_place(call, ruin, emq_store_key(call, EMQ_HELD), NULL)) {
        return false;
    }
    emq_store_lowest(call, emq_store_key(call, EMQ_REPEAT), VALKEYMODULE_POSITIVE_INFINITE, ruin->left, &ruin->repeats);
    return true;
}

static void delete_repeat(emq_call *call, ValkeyModuleString *name) {
    emq_zset_take(call, emq_store_key(call, EMQ_REPEAT), name);
    emq_key row = {0};
    emq_store_name_repeat(call, &row, name);
    emq_key_delete(call, &row);
    emq_store_forget(call, &row);
}

static bool anything_left(emq_call *call, bool keeps_outbox) {
    static const emq_queue_key keys[] = {EMQ_PENDING, EMQ_ACTIVE, EMQ_SCHEDULE, EMQ_DEAD, EMQ_HELD, EMQ_REPEAT};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (emq_store_length(call, emq_store_key(call, keys[i])) > 0) return true;
    }
    bool lanes = emq_store_exists(call, emq_store_key(call, EMQ_LANES)->name);
    return lanes || (keeps_outbox && emq_store_length(call, emq_store_key(call, EMQ_OUTBOX)) > 0);
}

static void delete_settings(emq_call *call) {
    static const emq_queue_key keys[] = {EMQ_COMPLETED, EMQ_FAILED, EMQ_GACTIVE, EMQ_GLIMIT, EMQ_GWEIGHT,  EMQ_RING, EMQ_LANES,
                                         EMQ_TOKENS,    EMQ_PARKED, EMQ_REPEAT,  EMQ_OUTBOX, EMQ_POISONED, EMQ_META};
    static const char *const reserved[] = {"metrics:completed:data", "metrics:failed:data", "limiter"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) emq_key_delete(call, emq_store_key(call, keys[i]));
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        emq_key key = {0};
        emq_store_name_fixed(call, &key, reserved[i]);
        emq_key_delete(call, &key);
        emq_store_forget(call, &key);
    }
}

static void obliterate(emq_call *call, ruin_plan *ruin) {
    bool undelivered = emq_store_length(call, emq_store_key(call, EMQ_OUTBOX)) > 0;
    bool planned = ruin->left < (size_t)call->args.limit || ruin->repeats.count > 0;
    if (!planned && undelivered && !call->args.force) return (void)emq_refuse(call, EMQ_ERR_OUTBOX);

    call->leaves_later = true;
    for (uint32_t i = 0; i < ruin->purges.count; i++) emq_purge_run(call, emq_vector_at(&ruin->purges, i));
    for (uint32_t i = 0; i < ruin->lanes.count; i++) emq_lane_tune(call, emq_vector_at(&ruin->lanes, i)); /* one without a backlog too */
    for (uint32_t i = 0; i < ruin->repeats.count; i++) delete_repeat(call, emq_vector_at(&ruin->repeats, i));
    emq_lanes_leave_ring(call);
    emq_call_settle(call);
    if (anything_left(call, !call->args.force)) return emq_reply_integer(call, 1);
    delete_settings(call);
    emq_reply_integer(call, 0);
}

/* EMQ.OBLITERATE queue [FORCE] [LIMIT n] */
void cmd_obliterate(emq_call *call) {
    if (!emq_paused(call)) return (void)emq_refuse(call, EMQ_ERR_NOT_PAUSED);
    bool active = emq_store_length(call, emq_store_key(call, EMQ_ACTIVE)) > 0;
    if (active && !call->args.force) return (void)emq_refuse(call, EMQ_ERR_ACTIVE_JOBS);

    ruin_plan ruin = {.left = (size_t)call->args.limit};
    if (plan(call, &ruin)) obliterate(call, &ruin);
    for (uint32_t i = 0; i < ruin.purges.count; i++) {
        emq_purge_free(emq_vector_at(&ruin.purges, i));
        ValkeyModule_Free(emq_vector_at(&ruin.purges, i));
    }
    emq_vector_free(&ruin.purges);
    emq_vector_free(&ruin.lanes);
    emq_vector_free(&ruin.repeats);
}
