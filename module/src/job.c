/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What may be done with a job whatever its state, without a token. */
#include <string.h>

#include "effects.h"
#include "flows.h"
#include "lanes.h"
#include "reply.h"
#include "steps.h"

/* Finds the job of the call. Answers NULL when it has refused, or replied -1 because there is none. */
static emq_job *find(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    if (!emq_job_peek(call, job)) return NULL;
    if (job->exists) return job;
    emq_reply_integer(call, -1);
    return NULL;
}

/* Whether a foreign holder has marked the job. */
static bool is_locked(emq_call *call, emq_job *job) {
    emq_key lock = {0};
    emq_store_name_row(call, &lock, job->entry.text, ":lock");
    bool locked = emq_store_exists(call, lock.name);
    emq_store_forget(call, &lock);
    return locked;
}

/* EMQ.REMOVE queue id [FORCE] */
void cmd_remove(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key *place;
    if (!emq_job_peek(call, job)) return;
    if (!job->exists) {
        for (int i = 0; i < EMQ_PLACES; i++) emq_zset_take(call, emq_store_key(call, (emq_queue_key)i), job->id);
        return emq_reply_integer(call, -1);
    }
    if (!emq_job_place(call, job, &place)) return;
    if (!call->args.force) {
        if (place == emq_store_key(call, EMQ_ACTIVE)) return (void)emq_refuse(call, EMQ_ERR_LOCK_ACTIVE);
        if (is_locked(call, job)) return (void)emq_refuse(call, EMQ_ERR_LOCK_MARKER);
    }
    if (!emq_lane_see_job(call, job) || !emq_see_up(call, job, true)) return;

    emq_remove(call, job, place);
    emq_reply_integer(call, 1);
}

/* EMQ.REPROCESS queue id */
void cmd_reprocess(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key *place, *dead = emq_store_key(call, EMQ_DEAD);
    if (!emq_job_load(call, job)) return;
    if (!job->exists) return emq_reply_integer(call, -1);
    if (!emq_job_place(call, job, &place)) return;
    if (place != dead) return (void)emq_refuse(call, EMQ_ERR_NOT_DEAD);
    if (!emq_lane_see_job(call, job)) return;

    emq_leave(call, job, dead);
    emq_job_clear(call, job, EMQ_LAST_ERROR);
    emq_join_with(call, job, &(emq_change){EMQ_FLOOR, emq_store_number(call, job->attempts)});
    emq_reply_integer(call, 1);
}

/* EMQ.UPDATE queue id payload */
void cmd_update(emq_call *call) {
    emq_job *job = find(call);
    if (!job) return;

    emq_hash_put(call, &job->row, &(emq_pair){emq_words[EMQ_W_PAYLOAD], call->args.payload}, 1);
    emq_reply_integer(call, 1);
}

/* Appends a string as the inside of a JSON string: quote, backslash and control bytes are escaped, all others stay. */
static char *write_json(char *out, ValkeyModuleString *string) {
    static const char hex[] = "0123456789abcdef";
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(string, &length);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20) {
            memcpy(out, "\\u00", 4);
            out[4] = hex[byte >> 4];
            out[5] = hex[byte & 15];
            out += 6;
            continue;
        }
        if (byte == '"' || byte == '\\') *out++ = '\\';
        *out++ = (char)byte;
    }
    return out;
}

#define EVENT_BEGIN "{\"event\":\"progress\",\"job\":\""
#define EVENT_MIDDLE "\",\"progress\":\""
#define EVENT_END "\"}"

/* The length of what write_json writes: most texts need next to no escapes, so the worst case is not set aside. */
static size_t json_length(ValkeyModuleString *string) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(string, &length);
    size_t written = length;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        written += byte < 0x20 ? 5 : byte == '"' || byte == '\\';
    }
    return written;
}

static ValkeyModuleString *progress_event(emq_call *call, emq_job *job, ValkeyModuleString *text) {
    char *event = ValkeyModule_Alloc(sizeof EVENT_BEGIN + EMQ_ID_LENGTH + sizeof EVENT_MIDDLE + json_length(text) + sizeof EVENT_END),
         *end = event;
    end = memcpy(end, EVENT_BEGIN, sizeof EVENT_BEGIN - 1) + sizeof EVENT_BEGIN - 1;
    end = write_json(end, job->id);
    end = memcpy(end, EVENT_MIDDLE, sizeof EVENT_MIDDLE - 1) + sizeof EVENT_MIDDLE - 1;
    end = write_json(end, text);
    end = memcpy(end, EVENT_END, sizeof EVENT_END - 1) + sizeof EVENT_END - 1;
    ValkeyModuleString *string = emq_store_keep(call, ValkeyModule_CreateString(NULL, event, (size_t)(end - event)));
    ValkeyModule_Free(event);
    return string;
}

/* EMQ.PROGRESS queue id text */
void cmd_progress(emq_call *call) {
    emq_job *job = find(call);
    if (!job) return;

    emq_job_set(call, job, EMQ_PROGRESS, call->args.text);
    char channel[EMQ_KEY_MAX];
    size_t length = emq_key_fixed(channel, call->queue, call->queue_length, "events");
    ValkeyModuleString *name = emq_store_keep(call, ValkeyModule_CreateString(NULL, channel, length));
    emq_publish(call, name, progress_event(call, job, call->args.text));
    emq_reply_integer(call, 1);
}

/* EMQ.LOG queue id line [KEEP n] */
void cmd_log(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key logs = {0};
    emq_store_name_row(call, &logs, job->entry.text, ":logs");
    if (emq_store_see(call, &logs, VALKEYMODULE_KEYTYPE_LIST) && find(call)) {
        emq_list_append(call, &logs, call->args.text);
        int64_t length = (int64_t)emq_store_length(call, &logs), keep = call->args.keep;
        if (keep > 0 && length > keep) emq_list_trim(call, &logs, -keep, -1);
        emq_reply_integer(call, keep > 0 && length > keep ? keep : length);
    }
    emq_store_forget(call, &logs);
}
