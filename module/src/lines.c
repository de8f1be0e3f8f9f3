/* SPDX-License-Identifier: BSD-3-Clause */
#include "lines.h"

#include <string.h>

#define LINES (1u << (EMQ_SOURCES + 1)) /* by what is waited for */
#define NEVER INT64_MAX
#define PROBED_PER_TICK 100

/* A queue of one database that somebody waits for. */
struct emq_waited {
    emq_waited *before, *after; /* among all */
    int db;
    size_t name_length;
    char name[EMQ_QUEUE_KEY_MAX];
    uint32_t standers;
    struct {
        emq_stander *first, *last;
    } lines[LINES];
    unsigned ready;
    int64_t due_ms; /* the alarm's; NEVER when there is none */
    uint64_t alarm; /* a timer, 0 when there is none */
};

emq_lines_stats emq_lines;

static uint64_t arrivals;
static ValkeyModuleDict *queues; /* by database and name */
static emq_waited *first_queue, *last_queue;
static bool deferred; /* signals were withheld because the server must not write */

/* The call that runs, if one does. */
static struct {
    bool running;
    emq_waited *queue; /* what follows is about this one */
    unsigned known;    /* bits that the call has decided */
    unsigned ready;    /* bits that its effects have set */
} turn;

/* Queues */

typedef struct queue_name {
    char bytes[sizeof(int) + EMQ_QUEUE_KEY_MAX];
    size_t length;
} queue_name;

static queue_name name_queue(int db, const char *name, size_t length) {
    queue_name queue;
    memcpy(queue.bytes, &db, sizeof db);
    memcpy(queue.bytes + sizeof db, name, length);
    queue.length = sizeof db + length;
    return queue;
}

static emq_waited *find(int db, const char *name, size_t length) {
    if (emq_lines.waiters == 0 || length > EMQ_QUEUE_KEY_MAX) return NULL;
    queue_name queue = name_queue(db, name, length);
    return ValkeyModule_DictGetC(queues, queue.bytes, queue.length, NULL);
}

static emq_waited *find_of(emq_call *call) {
    return find(ValkeyModule_GetSelectedDb(call->ctx), call->queue, call->queue_length);
}

static void link_queue(emq_waited *queue) {
    queue->before = last_queue;
    queue->after = NULL;
    *(last_queue ? &last_queue->after : &first_queue) = queue;
    last_queue = queue;
}

static void unlink_queue(emq_waited *queue) {
    *(queue->before ? &queue->before->after : &first_queue) = queue->after;
    *(queue->after ? &queue->after->before : &last_queue) = queue->before;
}

static emq_waited *open_queue(emq_call *call) {
    emq_waited *queue = find_of(call);
    if (queue) return queue;
    queue = ValkeyModule_Calloc(1, sizeof *queue);
    queue->db = ValkeyModule_GetSelectedDb(call->ctx);
    queue->due_ms = NEVER;
    queue->name_length = call->queue_length;
    memcpy(queue->name, call->queue, call->queue_length);
    queue_name name = name_queue(queue->db, queue->name, queue->name_length);
    ValkeyModule_DictSetC(queues, name.bytes, name.length, queue);
    link_queue(queue);
    return queue;
}

static void stop_alarm(ValkeyModuleCtx *ctx, uint64_t *alarm) {
    if (*alarm) ValkeyModule_StopTimer(ctx, *alarm, NULL);
    *alarm = 0;
}

static void close_queue(ValkeyModuleCtx *ctx, emq_waited *queue) {
    stop_alarm(ctx, &queue->alarm);
    queue_name name = name_queue(queue->db, queue->name, queue->name_length);
    ValkeyModule_DictDelC(queues, name.bytes, name.length, NULL);
    unlink_queue(queue);
    if (turn.queue == queue) turn.queue = NULL;
    ValkeyModule_Free(queue);
}

/* Signals */

static void give_turn(ValkeyModuleCtx *ctx, emq_stander *first) {
    first->signalled = true;
    emq_lines.wakes++;
    ValkeyModule_SignalKeyAsReady(ctx, first->key);
}

static bool is_wanted(const emq_waited *queue, unsigned bit) {
    for (unsigned wants = 0; wants < LINES; wants++) {
        if (wants & bit && queue->lines[wants].first) return true;
    }
    return false;
}

/* Of those who wait for this, the one who came first; NULL when nobody does or one of them is signalled already. */
static emq_stander *next_for(emq_waited *queue, unsigned bit) {
    emq_stander *next = NULL;
    for (unsigned wants = 0; wants < LINES; wants++) {
        emq_stander *first = wants & bit ? queue->lines[wants].first : NULL;
        if (!first) continue;
        if (first->signalled) return NULL;
        if (!next || first->number < next->number) next = first;
    }
    return next;
}

static void dispatch(ValkeyModuleCtx *ctx, emq_waited *queue) {
    if (!queue->ready) return;
    if (ValkeyModule_AvoidReplicaTraffic()) {
        deferred = true;
        return;
    }
    for (unsigned left = queue->ready; left; left &= left - 1) {
        emq_stander *next = next_for(queue, left & -left);
        if (next) give_turn(ctx, next);
    }
}

/* The schedule */

int64_t emq_lines_instant(double score) {
    if (!(score > 0)) return 0;
    if (score > (double)EMQ_MAX_INTEGER) return NEVER;
    int64_t whole = (int64_t)score;
    return (double)whole < score ? whole + 1 : whole;
}

/* A key of the queue, for reading without any effect; the caller closes it. */
static ValkeyModuleKey *open_key(ValkeyModuleCtx *ctx, emq_waited *queue, const char *suffix) {
    char text[EMQ_KEY_MAX];
    size_t length = emq_key_fixed(text, queue->name, queue->name_length, suffix);
    ValkeyModuleString *name = ValkeyModule_CreateString(NULL, text, length);
    ValkeyModuleKey *key = ValkeyModule_OpenKey(ctx, name, VALKEYMODULE_READ | VALKEYMODULE_OPEN_KEY_NOEFFECTS);
    ValkeyModule_FreeString(NULL, name);
    return key;
}

static int64_t first_due(ValkeyModuleCtx *ctx, emq_waited *queue) {
    ValkeyModuleKey *key = open_key(ctx, queue, "schedule");
    double score = 0;
    bool any = ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_ZSET;
    if (any) {
        ValkeyModule_ZsetFirstInScoreRange(key, VALKEYMODULE_NEGATIVE_INFINITE, VALKEYMODULE_POSITIVE_INFINITE, 0, 0);
        ValkeyModule_FreeString(NULL, ValkeyModule_ZsetRangeCurrentElement(key, &score));
        ValkeyModule_ZsetRangeStop(key);
    }
    ValkeyModule_CloseKey(key);
    return any ? emq_lines_instant(score) : NEVER;
}

static void on_due(ValkeyModuleCtx *ctx, void *data);

/* Learns when the queue's first scheduled job comes due, and sees to it that somebody looks then: those who have been
 * waiting for longer do not know of it. added: the schedule got an entry; if it is the first, one of them is told at once,
 * asks again, and waits no longer than until then. */
static void look_ahead(ValkeyModuleCtx *ctx, emq_waited *queue, bool added) {
    if (!added && queue->due_ms != NEVER) return;
    if (!is_wanted(queue, EMQ_READY_DUE)) return;
    int64_t due_ms = first_due(ctx, queue), now_ms = ValkeyModule_Milliseconds();
    if (due_ms <= now_ms) queue->ready |= EMQ_READY_DUE;
    if (due_ms <= now_ms || due_ms == queue->due_ms) return;

    stop_alarm(ctx, &queue->alarm);
    queue->due_ms = due_ms;
    if (due_ms == NEVER) return;
    /* A moment later than those whose own time ends then, who will have taken the job by themselves. */
    int64_t left_ms = due_ms - now_ms < EMQ_BLOCK_MAX ? due_ms - now_ms + 1 : EMQ_BLOCK_MAX;
    queue->alarm = ValkeyModule_CreateTimer(ctx, left_ms, on_due, queue);
    emq_stander *next = added && !ValkeyModule_AvoidReplicaTraffic() ? next_for(queue, EMQ_READY_DUE) : NULL;
    if (next && next->cut_ms > due_ms) give_turn(ctx, next);
}

static void on_due(ValkeyModuleCtx *ctx, void *data) {
    emq_waited *queue = data;
    queue->alarm = 0;
    queue->due_ms = NEVER;
    ValkeyModule_SelectDb(ctx, queue->db);
    look_ahead(ctx, queue, false);
    dispatch(ctx, queue);
}

/* Standing */

void emq_lines_join(emq_call *call, emq_stander *stander) {
    emq_waited *queue = open_queue(call);
    stander->queue = queue;
    stander->number = ++arrivals;
    stander->before = queue->lines[stander->wants].last;
    *(stander->before ? &stander->before->after : &queue->lines[stander->wants].first) = stander;
    queue->lines[stander->wants].last = stander;
    queue->standers++;
    emq_lines.waiters++;
}

void emq_lines_leave(ValkeyModuleCtx *ctx, emq_stander *stander, bool given_up) {
    emq_waited *queue = stander->queue;
    if (!queue) return;
    *(stander->before ? &stander->before->after : &queue->lines[stander->wants].first) = stander->after;
    *(stander->after ? &stander->after->before : &queue->lines[stander->wants].last) = stander->before;
    stander->queue = NULL;
    emq_lines.waiters--;
    if (--queue->standers == 0) return close_queue(ctx, queue);
    if (!given_up || !stander->signalled || !queue->ready) return;
    emq_lines.batons++;
    dispatch(ctx, queue);
}

bool emq_lines_may_look(ValkeyModuleCtx *ctx, emq_stander *stander) {
    stander->signalled = false;
    bool may = !ValkeyModule_AvoidReplicaTraffic() && ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_PRIMARY;
    if (may) turn.queue = stander->queue; /* of the call that begins now */
    deferred |= !may;
    return may;
}

/* Events */

bool emq_lines_any(void) {
    return emq_lines.waiters > 0;
}

bool emq_lines_here(emq_call *call) {
    return find_of(call);
}

void emq_lines_note(emq_call *call, unsigned known, unsigned ready) {
    emq_waited *queue = find_of(call);
    if (!queue) return;
    turn.queue = queue;
    turn.known |= known;
    queue->ready = (queue->ready & ~known) | ready;
}

void emq_lines_resume(emq_call *call) {
    emq_lines_ready(call->ctx, call->queue, call->queue_length, EMQ_READY(EMQ_FLAT) | EMQ_READY(EMQ_LANE));
}

void emq_lines_ready(ValkeyModuleCtx *ctx, const char *name, size_t length, unsigned ready) {
    emq_waited *queue = find(ValkeyModule_GetSelectedDb(ctx), name, length);
    if (!queue) return;
    if (turn.running) {
        turn.queue = queue;
        turn.ready |= ready;
        return;
    }
    queue->ready |= ready & ~EMQ_READY_DUE;
    if (ready & EMQ_READY_DUE) look_ahead(ctx, queue, true);
    dispatch(ctx, queue);
}

void emq_lines_hold(void) {
    turn.running = true;
}

void emq_lines_release(ValkeyModuleCtx *ctx) {
    emq_waited *queue = turn.queue;
    bool added = turn.ready & EMQ_READY_DUE;
    if (queue) {
        queue->ready |= turn.ready & ~turn.known & ~EMQ_READY_DUE;
        look_ahead(ctx, queue, added);
        dispatch(ctx, queue);
    }
    memset(&turn, 0, sizeof turn);
}

/* Asks the data what is ready. */
static void probe(ValkeyModuleCtx *ctx, emq_waited *queue) {
    static const char *const listings[EMQ_SOURCES] = {[EMQ_FLAT] = "pending", [EMQ_LANE] = "ring"};
    ValkeyModule_SelectDb(ctx, queue->db);
    ValkeyModuleKey *meta = open_key(ctx, queue, "meta");
    int paused = 0;
    if (ValkeyModule_KeyType(meta) == VALKEYMODULE_KEYTYPE_HASH) {
        ValkeyModule_HashGet(meta, VALKEYMODULE_HASH_EXISTS, emq_words[EMQ_W_PAUSED], &paused, NULL);
    }
    ValkeyModule_CloseKey(meta);
    for (unsigned source = 0; source < EMQ_SOURCES && !paused; source++) {
        ValkeyModuleKey *key = open_key(ctx, queue, listings[source]);
        if (ValkeyModule_ValueLength(key) > 0) queue->ready |= EMQ_READY(source);
        ValkeyModule_CloseKey(key);
    }
    look_ahead(ctx, queue, false);
    dispatch(ctx, queue);
}

void emq_lines_swapped(ValkeyModuleCtx *ctx, int db) {
    for (emq_waited *queue = first_queue; queue; queue = queue->after) {
        if (queue->db != db) continue;
        stop_alarm(ctx, &queue->alarm);
        queue->due_ms = NEVER;
        probe(ctx, queue);
    }
}

void emq_lines_tick(ValkeyModuleCtx *ctx) {
    if (!first_queue || ValkeyModule_AvoidReplicaTraffic()) return;
    for (emq_waited *queue = deferred ? first_queue : NULL; queue; queue = queue->after) {
        ValkeyModule_SelectDb(ctx, queue->db);
        dispatch(ctx, queue);
    }
    deferred = false;
    emq_waited *last = last_queue;
    for (int left = PROBED_PER_TICK; left > 0 && first_queue; left--) {
        emq_waited *queue = first_queue;
        probe(ctx, queue);
        unlink_queue(queue);
        link_queue(queue);
        if (queue == last) break;
    }
}

void emq_lines_load(void) {
    queues = ValkeyModule_CreateDict(NULL);
}

void emq_lines_unload(void) {
    ValkeyModule_FreeDict(NULL, queues);
}
