/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Repeats: names with a next run, and what a run is made of. A pump outside decides when to fire; firing is one step with
 * the advance, conditional on the next run it saw, so that of two pumps one fires. */
#include "effects.h"
#include "jobs.h"
#include "reply.h"

/* Opens the row of the call's repeat. The caller forgets it. */
static bool see_row(emq_call *call, emq_key *row, bool *exists) {
    emq_store_name_repeat(call, row, call->args.name);
    if (!emq_store_see(call, row, VALKEYMODULE_KEYTYPE_HASH)) return false;
    *exists = emq_store_length(call, row) > 0;
    return true;
}

/* EMQ.REPEAT queue name EVERY ms template [AT first] */
void cmd_repeat(emq_call *call) {
    const emq_args *args = &call->args;
    emq_key row = {0};
    bool exists;
    if (see_row(call, &row, &exists)) {
        if (!exists) {
            emq_pair pairs[] = {{emq_words[EMQ_W_TEMPLATE], args->payload},
                                {emq_words[EMQ_W_EVERY], emq_store_number(call, args->every_ms)}};
            emq_hash_put(call, &row, pairs, 2);
            int64_t first = args->when_ms == EMQ_UNSAID ? call->now_ms + args->every_ms : args->when_ms;
            emq_zset_put(call, emq_store_key(call, EMQ_REPEAT), args->name, first);
        }
        emq_reply_integer(call, !exists);
    }
    emq_store_forget(call, &row);
}

/* EMQ.UNREPEAT queue name */
void cmd_unrepeat(emq_call *call) {
    emq_key row = {0}, *names = emq_store_key(call, EMQ_REPEAT);
    bool exists;
    double next;
    if (see_row(call, &row, &exists)) {
        bool listed = emq_store_score(call, names, call->args.name, &next);
        emq_zset_take(call, names, call->args.name);
        emq_key_delete(call, &row);
        emq_reply_integer(call, listed || exists);
    }
    emq_store_forget(call, &row);
}

static bool fire(emq_call *call, emq_job *job, emq_key *row, bool exists) {
    emq_key *names = emq_store_key(call, EMQ_REPEAT);
    double due;
    if (!emq_store_score(call, names, call->args.name, &due)) return false;
    if (!exists) return emq_zset_take(call, names, call->args.name), false;
    if (due > (double)call->now_ms || (double)call->args.next_ms <= due || job->exists) return false;

    ValkeyModuleString *template = emq_store_field(call, row, emq_words[EMQ_W_TEMPLATE]);
    emq_zset_put(call, names, call->args.name, call->args.next_ms);
    emq_job_create(call, job, EMQ_W_PENDING, template ? template : emq_words[EMQ_W_NOTHING], NULL);
    emq_zset_put(call, emq_store_key(call, EMQ_PENDING), job->id, 0);
    return true;
}

/* EMQ.FIRE queue name next id */
void cmd_fire(emq_call *call) {
    emq_job *job = emq_job_of(call, call->args.id);
    emq_key row = {0};
    bool exists;
    if (see_row(call, &row, &exists) && emq_job_peek(call, job)) emq_reply_integer(call, fire(call, job, &row, exists));
    emq_store_forget(call, &row);
}
