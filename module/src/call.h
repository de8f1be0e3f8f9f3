/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One command while it runs. A handler decides on what it sees through the call, refuses before its first effect or not at
 * all, and replies once. */
#ifndef EMQ_CALL_H
#define EMQ_CALL_H

#include "args.h"
#include "command.h"
#include "keyspace.h"
#include "memory.h"
#include "store.h"
#include "valkey_api.h"
#include "wire.h"
#include "words.h"

#define EMQ_ROOM 512

struct emq_call {
    ValkeyModuleCtx *ctx;
    const emq_command *command;
    ValkeyModuleString **argv;
    int argc;
    int64_t now_ms; /* the only reading of the clock */
    emq_args args;

    const char *queue; /* the queue key, as sent; NULL for a command without one */
    size_t queue_length;
    emq_names *names; /* of the queue's keys; NULL until one is needed */
    uint32_t named;   /* bit 1 << emq_queue_key: keys[] holds that key */
    emq_table jobs;   /* every row that this call has met */
    emq_table lanes;  /* every group that this call has met */
    bool lane_keys_seen;

    emq_heap heap;   /* of the jobs and the lanes */
    emq_vector kept; /* strings to free at the end */
    int64_t number;  /* the last one that was turned into text: deadlines come in rows */
    ValkeyModuleString *number_text;
    emq_vector deleted;        /* names of keys that were deleted and are not replicated yet */
    int64_t completed, failed; /* to be added to the metrics at the end */
    uint32_t wakes;            /* tokens to be pushed at the end */
    bool leaves_later;         /* lanes leave the ring together, when emq_lanes_leave_ring is called */
    emq_vector leaving;        /* emq_lane */
    bool changed;              /* an effect happened: refusing is over */
    bool trying;               /* a refusal is no reply but the fault, unless there is one already */
    ValkeyModuleString *fault; /* kept */

    /* The rest is not zeroed when a call begins. */
    emq_key keys[EMQ_KEYS];
    _Alignas(void *) char room[EMQ_ROOM]; /* of the heap, for the one job that most calls are about */
};

/* Sends an error and answers false. Nothing may have been written, by the call or by what it tries. */
bool emq_refuse(emq_call *call, const char *text);

/* Refuses unless each of these keys is absent or of its kind. keys: bit 1 << emq_queue_key. */
bool emq_call_see(emq_call *call, uint32_t keys);

/* Writes what was put off to the end: counts of active jobs, wake tokens, metrics. */
void emq_call_settle(emq_call *call);

/* Runs one command from its arguments to its reply. */
int emq_call_run(const emq_command *command, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc);

/* Runs a later part of a command that was admitted before. */
void emq_call_resume(const emq_command *command, ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc,
                     void (*part)(emq_call *call, void *data), void *data);

#ifdef EMQ_DEBUG
#include <assert.h>
#define EMQ_ASSERT(condition) assert(condition)
#else
#define EMQ_ASSERT(condition) ((void)0)
#endif

#endif
