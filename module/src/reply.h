/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shapes of replies: integer, text, array, map, null; nothing else is ever answered. */
#ifndef EMQ_REPLY_H
#define EMQ_REPLY_H

#include "jobs.h"

void emq_reply_integer(emq_call *call, int64_t number);
void emq_reply_text(emq_call *call, const char *text);
void emq_reply_null(emq_call *call);
void emq_reply_array(emq_call *call, size_t length);
void emq_reply_map(emq_call *call, size_t pairs);

/* Null when the string is NULL. */
void emq_reply_string(emq_call *call, ValkeyModuleString *string);

/* id, payload, attempts, and with a group that too: a claimed job. */
void emq_reply_job(emq_call *call, emq_job *job, ValkeyModuleString *group);

/* id, payload, attempts, and the group or null. */
void emq_reply_taken(emq_call *call, emq_job *job);

#endif
