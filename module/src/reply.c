/* SPDX-License-Identifier: BSD-3-Clause */
#include "reply.h"

#include <string.h>

/* Shorter strings cost less copied than looked at; of long ones a server may keep a reference instead of a copy. */
#define SHORT 1024

void emq_reply_integer(emq_call *call, int64_t number) {
    ValkeyModule_ReplyWithLongLong(call->ctx, number);
}

void emq_reply_text(emq_call *call, const char *text) {
    ValkeyModule_ReplyWithStringBuffer(call->ctx, text, strlen(text));
}

void emq_reply_null(emq_call *call) {
    ValkeyModule_ReplyWithNull(call->ctx);
}

void emq_reply_array(emq_call *call, size_t length) {
    ValkeyModule_ReplyWithArray(call->ctx, (long)length);
}

void emq_reply_map(emq_call *call, size_t pairs) {
    ValkeyModule_ReplyWithMap(call->ctx, (long)pairs);
}

void emq_reply_string(emq_call *call, ValkeyModuleString *string) {
    if (!string) return emq_reply_null(call);
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(string, &length);
    if (length < SHORT) {
        ValkeyModule_ReplyWithStringBuffer(call->ctx, text, length);
    } else {
        ValkeyModule_ReplyWithString(call->ctx, string);
    }
}

static void reply_run(emq_call *call, emq_job *job) {
    emq_reply_string(call, job->id);
    ValkeyModuleString *payload = emq_job_payload(call, job);
    emq_reply_string(call, payload);
    if (payload) ValkeyModule_FreeString(NULL, payload);
    emq_reply_integer(call, job->attempts);
}

void emq_reply_job(emq_call *call, emq_job *job, ValkeyModuleString *group) {
    emq_reply_array(call, group ? 4 : 3);
    reply_run(call, job);
    if (group) emq_reply_string(call, group);
}

void emq_reply_taken(emq_call *call, emq_job *job) {
    emq_reply_array(call, 4);
    reply_run(call, job);
    emq_reply_string(call, emq_job_field(call, job, EMQ_GROUP));
}
