/* SPDX-License-Identifier: BSD-3-Clause
 *
 * EMQ.NEXT, a worker's round: it ends the jobs that it took before, sees to what is due and what has lapsed, takes the next
 * jobs, and waits when there are none.
 *
 * The endings are one transition: refused as a whole, or carried out. What follows is several, each of which is tried: one
 * that is refused has written nothing, and its text is the fault of the answer. Whether a step finds something depends on
 * what the steps before it wrote, all in this call; the jobs and lanes that the call has met remember that. */
#include "next.h"

#include "endings.h"
#include "fence.h"
#include "flows.h"
#include "lanes.h"
#include "lines.h"
#include "reply.h"
#include "stats.h"
#include "steps.h"
#include "transitions.h"
#include "waiters.h"

static const char *const verdict_words[] = {
    [EMQ_COMPLETED_NOW] = "completed",
    [EMQ_SCHEDULED_AGAIN] = "scheduled",
    [EMQ_DEAD_NOW] = "dead",
    [EMQ_DELAYED] = "delayed",
    [EMQ_GONE] = "gone",
    [EMQ_STALE] = "stale",
    [EMQ_INACTIVE] = "inactive",
};

void emq_verdicts_free(emq_verdicts *verdicts) {
    if (verdicts->list) ValkeyModule_Free(verdicts->list);
    *verdicts = (emq_verdicts){NULL, 0};
}

/* Endings */

static uint32_t keys_of(emq_call *call) {
    static const uint32_t keys[EMQ_ENDINGS] = {EMQ_SEES_COMPLETE, EMQ_SEES_COMPLETE, EMQ_SEES_RETRY, EMQ_SEES_DELAY};
    uint32_t all = 0;
    emq_ending ending;
    for (int at = call->args.endings; emq_endings_next(call, &at, &ending);) all |= keys[ending.kind];
    return all;
}

static bool is_last(emq_call *call, emq_job *job, const emq_ending *ending) {
    return ending->kind == EMQ_ENDS_RETRY && emq_job_last(call, job, ending->max);
}

/* Sees everything that the endings may touch: first rows, whatever the keys are that only other rows name. */
static bool see_endings(emq_call *call) {
    emq_ending ending;
    if (!emq_call_see(call, keys_of(call))) return false;
    for (int at = call->args.endings; emq_endings_next(call, &at, &ending);) {
        emq_key *place;
        emq_job *job = emq_job_of(call, ending.id);
        if (!emq_job_load(call, job) || (job->exists && !emq_job_place(call, job, &place))) return false;
    }
    for (int at = call->args.endings; emq_endings_next(call, &at, &ending);) {
        emq_job *job = emq_job_of(call, ending.id);
        if (!job->exists) continue;
        if (!emq_lane_see_job(call, job)) return false;
        bool completes = ending.kind == EMQ_ENDS_COMPLETE || ending.kind == EMQ_ENDS_RESULT, last = is_last(call, job, &ending);
        if ((completes || last) && !emq_see_up(call, job, last)) return false;
    }
    return true;
}

/* The job is looked up when it is its turn, because an ending before it may have moved it. Every key that can then be asked
 * was seen: places that a job can have been moved to belong to the command that moved it. */
static emq_verdict end(emq_call *call, const emq_ending *ending) {
    emq_key *place = NULL;
    emq_job *job = emq_job_of(call, ending->id);
    if (!job->exists) return EMQ_GONE;
    if (!emq_job_holds(call, job, ending->token)) return EMQ_STALE;
    if (!emq_job_place(call, job, &place) || !emq_job_owned(call, job, place)) return EMQ_INACTIVE;
    if (ending->kind == EMQ_ENDS_RETRY) {
        bool last = is_last(call, job, ending);
        emq_fail(call, job, place, last, ending->delay_ms, ending->bytes);
        return last ? EMQ_DEAD_NOW : EMQ_SCHEDULED_AGAIN;
    }
    if (ending->kind == EMQ_ENDS_DELAY) {
        emq_put_off(call, job, place, ending->when_ms);
        return EMQ_DELAYED;
    }
    emq_finish(call, job, place, ending->bytes ? ending->bytes : job->id);
    return EMQ_COMPLETED_NOW;
}

/* An ending counts as a refusal when its own command would have been refused. */
static void count(emq_verdict verdict, emq_ending_kind kind) {
    bool needs_job = kind == EMQ_ENDS_RETRY || kind == EMQ_ENDS_DELAY;
    emq_counted.refused[EMQ_REFUSED_stale] += verdict == EMQ_STALE || (verdict == EMQ_GONE && needs_job);
    emq_counted.refused[EMQ_REFUSED_state] += verdict == EMQ_INACTIVE;
}

static emq_verdicts end_all(emq_call *call) {
    emq_verdicts verdicts = {NULL, 0};
    emq_ending ending;
    if (!call->args.endings) return verdicts;
    verdicts.list = ValkeyModule_Alloc((size_t)call->args.settle);
    for (int at = call->args.endings; emq_endings_next(call, &at, &ending);) {
        emq_verdict verdict = end(call, &ending);
        count(verdict, ending.kind);
        verdicts.list[verdicts.count++] = (uint8_t)verdict;
    }
    return verdicts;
}

/* Steps */

/* What a source had when it was last asked. */
typedef enum outlook {
    UNKNOWN, /* more, perhaps */
    DRY,
    REFUSED,
} outlook;

typedef struct next_round {
    emq_vector taken; /* emq_job */
    outlook sources[EMQ_SOURCES];
} next_round;

/* Begins and ends the trial of a transition. What was written before it does not hinder its refusal. */
static bool try_begin(emq_call *call, uint32_t keys) {
    call->trying = true;
    call->changed = false;
    return emq_call_see(call, keys);
}

static bool try_end(emq_call *call, bool sound, bool changed_before) {
    call->trying = false;
    call->changed |= changed_before;
    return sound;
}

static void try_sweep(emq_call *call, bool (*sweep)(emq_call *, int64_t, int64_t *), int64_t limit, uint32_t keys) {
    bool changed = call->changed;
    int64_t moved;
    if (limit > 0) try_end(call, try_begin(call, keys) && sweep(call, limit, &moved), changed);
}

/* Takes one job. */
static outlook try_source(emq_call *call, emq_source source, emq_vector *taken) {
    bool changed = call->changed, flat = source == EMQ_FLAT;
    emq_job *job = NULL;
    bool sound = try_begin(call, flat ? EMQ_SEES_CLAIM : EMQ_SEES_GCLAIM) && (flat ? emq_take_flat : emq_take_lane)(call, &job);
    try_end(call, sound, changed);
    if (job) emq_vector_add(taken, job);
    return !sound ? REFUSED : job ? UNKNOWN : DRY;
}

static bool any_source_left(const emq_args *args, const next_round *round) {
    for (int i = 0; i < args->sources; i++) {
        if (round->sources[args->from[i]] == UNKNOWN) return true;
    }
    return false;
}

static void take_steps(emq_call *call, next_round *round) {
    const emq_args *args = &call->args;
    try_sweep(call, emq_reap, args->reap, EMQ_SEES_REAP);
    try_sweep(call, emq_promote, args->promote, EMQ_SEES_PROMOTE);
    while (any_source_left(args, round)) {
        for (int i = 0; i < args->sources; i++) {
            outlook *source = &round->sources[args->from[i]];
            if (round->taken.count == args->count) return;
            if (*source == UNKNOWN) *source = try_source(call, args->from[i], &round->taken);
        }
    }
}

/* When the first member of a place comes due; INT64_MAX when it has none. */
static int64_t first_due(emq_call *call, emq_queue_key place) {
    double score;
    if (!emq_store_first_score(call, emq_store_key(call, place), &score)) return INT64_MAX;
    return emq_lines_instant(score);
}

/* The first instant at which a later round could find more than this one did. */
static int64_t cut(emq_call *call, int64_t latest_ms) {
    int64_t due = call->args.promote > 0 ? first_due(call, EMQ_SCHEDULE) : INT64_MAX;
    int64_t lapse = call->args.reap > 0 ? first_due(call, EMQ_ACTIVE) : INT64_MAX;
    int64_t first = due < lapse ? due : lapse;
    return first < latest_ms ? first : latest_ms;
}

/* Tells the waiters of the queue what is left for them, as far as this round has found out. */
static void note(emq_call *call, const next_round *round) {
    static const emq_queue_key listings[EMQ_SOURCES] = {[EMQ_FLAT] = EMQ_PENDING, [EMQ_LANE] = EMQ_RING};
    const emq_args *args = &call->args;
    if (!emq_lines_here(call)) return;
    unsigned known = 0, ready = 0;
    for (int i = 0; i < args->sources; i++) {
        emq_source source = args->from[i];
        bool left = round->sources[source] != DRY && emq_store_length(call, emq_store_key(call, listings[source])) > 0;
        known |= EMQ_READY(source);
        if (left) ready |= EMQ_READY(source);
    }
    if (args->promote > 0) {
        known |= EMQ_READY_DUE;
        if (first_due(call, EMQ_SCHEDULE) <= call->now_ms) ready |= EMQ_READY_DUE;
    }
    emq_lines_note(call, known, ready);
}

static void reply(emq_call *call, const emq_verdicts *verdicts, emq_vector *taken) {
    emq_reply_array(call, 3);
    emq_reply_array(call, verdicts->count);
    for (size_t i = 0; i < verdicts->count; i++) emq_reply_text(call, verdict_words[verdicts->list[i]]);
    emq_reply_array(call, taken->count);
    for (uint32_t i = 0; i < taken->count; i++) emq_reply_taken(call, emq_vector_at(taken, i));
    emq_reply_string(call, call->fault);
}

void emq_next_nothing(emq_call *call, const emq_verdicts *verdicts) {
    emq_vector none = {0};
    reply(call, verdicts, &none);
}

/* EMQ.NEXT queue lease [COUNT n] [FROM FLAT|LANES [FLAT|LANES]] [BLOCK ms] [PROMOTE n] [REAP n] [MAX m] [SETTLE n ending ...] */
void cmd_next(emq_call *call) {
    if (!see_endings(call)) return;
    emq_verdicts verdicts = end_all(call);
    next_round round = {.taken = {0}};
    take_steps(call, &round);

    bool idle = round.taken.count == 0 && !call->fault, waits = false;
    if (idle && call->args.block_ms > 0) {
        int64_t until = cut(call, call->now_ms + call->args.block_ms);
        waits = until > call->now_ms && emq_wait(call, until, &verdicts);
    }
    note(call, &round);
    if (!waits) {
        reply(call, &verdicts, &round.taken);
        emq_verdicts_free(&verdicts);
    }
    emq_vector_free(&round.taken);
}

bool emq_next_again(emq_call *call, int64_t cut_ms, const emq_verdicts *verdicts) {
    next_round round = {.taken = {0}};
    call->trying = true;
    bool ours = emq_fence_check(call);
    call->trying = false;
    if (ours) {
        take_steps(call, &round);
        note(call, &round);
    }
    bool answers = round.taken.count > 0 || call->fault || cut(call, cut_ms) < cut_ms;
    if (answers) reply(call, verdicts, &round.taken);
    emq_vector_free(&round.taken);
    return answers;
}
