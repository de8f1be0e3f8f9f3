/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes.h"

#include "effects.h"

emq_lane *emq_lane_of(emq_call *call, ValkeyModuleString *group) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(group, &length);
    emq_lane *lane = emq_table_find(&call->lanes, text, length);
    if (lane) return lane;

    lane = emq_heap_take(&call->heap, sizeof *lane);
    lane->entry = (emq_entry){text, length};
    lane->group = group;
    emq_store_name_lane(call, &lane->waiting, text, length);
    emq_table_add(&call->lanes, &lane->entry);
    return lane;
}

emq_lane *emq_lane_of_job(emq_call *call, emq_job *job) {
    ValkeyModuleString *group = emq_job_field(call, job, EMQ_GROUP);
    return group ? emq_lane_of(call, group) : NULL;
}

void emq_lanes_close(emq_call *call) {
    for (uint32_t i = 0; i < call->lanes.entries.count; i++) {
        emq_lane *lane = emq_vector_at(&call->lanes.entries, i);
        emq_store_forget(call, &lane->waiting);
    }
    emq_table_free(&call->lanes);
}

static bool see_lane_keys(emq_call *call) {
    static const emq_queue_key shared[] = {EMQ_RING, EMQ_TOKENS, EMQ_LANES, EMQ_PARKED, EMQ_GLIMIT, EMQ_GACTIVE};
    if (call->lane_keys_seen) return true;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (!emq_store_see_key(call, shared[i])) return false;
    }
    return call->lane_keys_seen = true;
}

static int64_t standing(emq_call *call, emq_queue_key hash, emq_lane *lane) {
    return emq_store_lenient(emq_store_field(call, emq_store_key(call, hash), lane->group));
}

bool emq_lane_see(emq_call *call, emq_lane *lane) {
    if (!lane || lane->seen) return true;
    if (!emq_store_see(call, &lane->waiting, VALKEYMODULE_KEYTYPE_ZSET) || !see_lane_keys(call)) return false;
    lane->ceiling = standing(call, EMQ_GLIMIT, lane);
    lane->active = standing(call, EMQ_GACTIVE, lane);
    lane->parked = emq_store_has_member(call, EMQ_PARKED, lane->group);
    lane->offered = emq_lane_serviceable(call, lane);
    return lane->seen = true;
}

static bool has_backlog(emq_call *call, emq_lane *lane) {
    return emq_store_length(call, &lane->waiting) > 0;
}

bool emq_lane_serviceable(emq_call *call, emq_lane *lane) {
    return !lane->parked && (lane->ceiling == 0 || lane->active < lane->ceiling) && has_backlog(call, lane);
}

/* Each removal searches the ring, from its head: when many lanes leave a long ring, it is written anew instead. */
#define LEAVE_ONE_BY_ONE 16

static void leave_ring(emq_call *call, emq_lane *lane) {
    (lane->searched ? emq_list_purge : emq_list_take)(call, emq_store_key(call, EMQ_RING), lane->group);
}

static void rewrite_ring(emq_call *call) {
    emq_key *ring = emq_store_key(call, EMQ_RING);
    emq_vector staying = {0};
    size_t length = emq_store_length(call, ring);
    for (size_t i = 0; i < length; i++) {
        ValkeyModuleString *group = ValkeyModule_ListGet(emq_store_handle(call, ring), (long)i);
        if (!emq_lane_of(call, emq_store_keep(call, group))->leaving) emq_vector_add(&staying, group);
    }
    emq_list_trim(call, ring, 1, 0);
    for (uint32_t i = 0; i < staying.count; i++) emq_list_append(call, ring, emq_vector_at(&staying, i));
    emq_vector_free(&staying);
}

void emq_lanes_leave_ring(emq_call *call) {
    if (call->leaving.count > LEAVE_ONE_BY_ONE) rewrite_ring(call);
    for (uint32_t i = 0; i < call->leaving.count; i++) {
        emq_lane *lane = emq_vector_at(&call->leaving, i);
        if (call->leaving.count <= LEAVE_ONE_BY_ONE) leave_ring(call, lane);
        lane->leaving = false;
    }
    emq_vector_free(&call->leaving);
}

void emq_lane_tune(emq_call *call, emq_lane *lane) {
    EMQ_ASSERT(lane->seen);
    bool backlog = has_backlog(call, lane);
    if (backlog && lane->listing != EMQ_LISTED) {
        emq_set_put(call, EMQ_LANES, lane->group);
        lane->listing = EMQ_LISTED;
    } else if (!backlog && lane->listing != EMQ_UNLISTED) {
        emq_set_take(call, EMQ_LANES, lane->group);
        lane->listing = EMQ_UNLISTED;
    }

    bool serviceable = emq_lane_serviceable(call, lane);
    if (serviceable && !lane->offered) {
        if (lane->leaving) emq_lanes_leave_ring(call);
        emq_list_append(call, emq_store_key(call, EMQ_RING), lane->group);
        call->wakes++;
    } else if (!serviceable && lane->offered && !call->leaves_later) {
        leave_ring(call, lane);
    } else if (!serviceable && lane->offered) {
        lane->leaving = true;
        emq_vector_add(&call->leaving, lane);
    }
    lane->offered = serviceable;
}

void emq_lane_count(emq_lane *lane, int64_t change) {
    EMQ_ASSERT(lane->seen);
    lane->active += change;
    if (lane->active < 0) lane->active = 0;
    lane->counted = true;
}

void emq_lane_search(emq_call *call, emq_lane *lane) {
    emq_key *ring = emq_store_key(call, EMQ_RING);
    emq_store_release(call, ring);
    ValkeyModuleCallReply *reply = ValkeyModule_Call(call->ctx, "LPOS", "ss", ring->name, lane->group);
    lane->offered = reply && ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_INTEGER;
    lane->searched = true;
    if (reply) ValkeyModule_FreeCallReply(reply);
}

void emq_lane_rotate(emq_call *call, emq_lane *lane) {
    emq_key *ring = emq_store_key(call, EMQ_RING);
    if (emq_store_length(call, ring) < 2) return;
    emq_list_take(call, ring, lane->group);
    emq_list_append(call, ring, lane->group);
}

void emq_lanes_settle(emq_call *call) {
    for (uint32_t i = 0; i < call->lanes.entries.count; i++) {
        emq_lane *lane = emq_vector_at(&call->lanes.entries, i);
        if (!lane->counted) continue;
        lane->counted = false;
        emq_key *counts = emq_store_key(call, EMQ_GACTIVE);
        if (lane->active > 0) {
            emq_hash_put(call, counts, &(emq_pair){lane->group, emq_store_number(call, lane->active)}, 1);
        } else {
            emq_hash_take(call, counts, lane->group);
        }
    }
    if (call->wakes == 0) return;
    emq_key *wake = emq_store_key(call, EMQ_TOKENS);
    uint32_t tokens = call->wakes < EMQ_WAKE ? call->wakes : EMQ_WAKE;
    call->wakes = 0;
    for (uint32_t i = 0; i < tokens; i++) emq_list_prepend(call, wake, emq_words[EMQ_W_ONE]);
    if (emq_store_length(call, wake) > EMQ_WAKE) emq_list_trim(call, wake, 0, EMQ_WAKE - 1);
}
