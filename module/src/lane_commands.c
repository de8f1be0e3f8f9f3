/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operator does with groups: parking, ceilings, weights, moving jobs, emptying, counting. */
#include "effects.h"
#include "lanes.h"
#include "purge.h"
#include "reply.h"
#include "steps.h"

/* EMQ.GPAUSE queue group */
void cmd_gpause(emq_call *call) {
    emq_lane *lane = emq_lane_of(call, call->args.group);
    emq_set_put(call, EMQ_PARKED, lane->group);
    lane->parked = true;
    emq_lane_tune(call, lane);
    emq_reply_integer(call, 1);
}

/* EMQ.GRESUME queue group */
void cmd_gresume(emq_call *call) {
    emq_lane *lane = emq_lane_of(call, call->args.group);
    emq_set_take(call, EMQ_PARKED, lane->group);
    lane->parked = false;
    emq_lane_search(call, lane);
    emq_lane_tune(call, lane);
    emq_reply_integer(call, 1);
}

/* Stores a setting of the group; 0 is none. */
static void set(emq_call *call, emq_queue_key settings, int64_t value) {
    emq_key *key = emq_store_key(call, settings);
    if (value > 0) {
        emq_hash_put(call, key, &(emq_pair){call->args.group, emq_store_number(call, value)}, 1);
    } else {
        emq_hash_take(call, key, call->args.group);
    }
}

/* EMQ.GLIMIT queue group ceiling */
void cmd_glimit(emq_call *call) {
    emq_lane *lane = emq_lane_of(call, call->args.group);
    set(call, EMQ_GLIMIT, call->args.ceiling);
    lane->ceiling = call->args.ceiling;
    emq_lane_search(call, lane);
    emq_lane_tune(call, lane);
    emq_reply_integer(call, 1);
}

/* EMQ.GWEIGHT queue group weight */
void cmd_gweight(emq_call *call) {
    set(call, EMQ_GWEIGHT, call->args.weight);
    emq_reply_integer(call, 1);
}

/* EMQ.GREASSIGN queue id group */
void cmd_greassign(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key *place;
    if (!emq_job_peek(call, job)) return;
    emq_lane *from = job->exists ? emq_lane_of_job(call, job) : NULL, *to = emq_lane_of(call, call->args.group);
    if (!from) return emq_reply_integer(call, -1);
    if (from == to) return emq_reply_integer(call, 0);
    if (!emq_lane_see(call, from) || !emq_job_place(call, job, &place)) return;
    if (place != &from->waiting) return emq_reply_integer(call, -2);

    emq_leave(call, job, place);
    emq_job_set(call, job, EMQ_GROUP, to->group);
    emq_join(call, job);
    emq_reply_integer(call, 1);
}

/* EMQ.GDRAIN queue group [LIMIT n] */
void cmd_gdrain(emq_call *call) {
    emq_lane *lane = emq_lane_of(call, call->args.group);
    emq_purge purge = {0};
    if (emq_purge_plan(call, &purge, &lane->waiting, lane, (size_t)call->args.limit)) {
        emq_reply_integer(call, emq_purge_run(call, &purge));
    }
    emq_purge_free(&purge);
}

/* Groups that have a backlog or active jobs, by bytes. */
static void known_groups(emq_call *call, emq_vector *groups) {
    emq_vector all = {0};
    emq_store_members(call, EMQ_LANES, &all);
    emq_store_fields(call, EMQ_GACTIVE, &all);
    emq_strings_sort(&all);
    for (uint32_t i = 0; i < all.count && groups->count < EMQ_MEMBERS; i++) {
        bool repeated = i > 0 && emq_string_equal(emq_vector_at(&all, i), emq_vector_at(&all, i - 1));
        if (!repeated) emq_vector_add(groups, emq_vector_at(&all, i));
    }
    emq_vector_free(&all);
}

/* Learns the backlog of each group. Answers false when it refused. */
static bool measure(emq_call *call, emq_vector *groups, size_t *waiting) {
    for (uint32_t i = 0; i < groups->count; i++) {
        emq_lane *lane = emq_lane_of(call, emq_vector_at(groups, i));
        if (!emq_store_see(call, &lane->waiting, VALKEYMODULE_KEYTYPE_ZSET)) return false;
        waiting[i] = emq_store_length(call, &lane->waiting);
    }
    return true;
}

/* EMQ.GCOUNTS queue [group ...] */
void cmd_gcounts(emq_call *call) {
    emq_vector groups = {0};
    for (int i = 0; i < call->args.member_count; i++) emq_vector_add(&groups, call->args.members[i]);
    if (call->args.member_count == 0) known_groups(call, &groups);

    size_t *waiting = ValkeyModule_Calloc(groups.count + 1, sizeof *waiting);
    if (measure(call, &groups, waiting)) {
        emq_reply_array(call, groups.count);
        for (uint32_t i = 0; i < groups.count; i++) {
            ValkeyModuleString *group = emq_vector_at(&groups, i);
            emq_reply_array(call, 3);
            emq_reply_string(call, group);
            emq_reply_integer(call, (int64_t)waiting[i]);
            emq_reply_integer(call, emq_store_lenient(emq_store_field(call, emq_store_key(call, EMQ_GACTIVE), group)));
        }
    }
    ValkeyModule_Free(waiting);
    emq_vector_free(&groups);
}
