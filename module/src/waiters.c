/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiters.h"

#include <stdio.h>
#include <string.h>

#include "bridge.h"

#define LINES (1u << (EMQ_SOURCES + 1)) /* by what is waited for */
#define NEVER INT64_MAX
#define MOST_DEFAULT 10000
#define MOST_MAX 1000000
#define PROBED_PER_TICK 100

typedef struct emq_waiter emq_waiter;
typedef struct emq_waited emq_waited;

struct emq_waiter {
    emq_waiter *before, *after; /* in its line */
    emq_waited *queue;          /* NULL when it has left */
    unsigned wants;             /* and the number of its line */
    uint64_t number;            /* in the order of arrival */
    bool signalled;             /* and has not looked yet; only the first of a line ever is */
    int64_t cut_ms;
    uint64_t alarm; /* a timer, 0 when there is none */
    ValkeyModuleString *key;
    const emq_command *command;
    emq_args args; /* the numbers; strings are not kept */
    emq_verdicts verdicts;
};

/* A queue of one database that somebody waits for. */
struct emq_waited {
    emq_waited *before, *after; /* among all */
    int db;
    size_t name_length;
    char name[EMQ_QUEUE_KEY_MAX];
    uint32_t waiters;
    struct {
        emq_waiter *first, *last;
    } lines[LINES];
    unsigned ready;
    int64_t due_ms; /* the alarm's; NEVER when there is none */
    uint64_t alarm; /* a timer, 0 when there is none */
};

emq_waiters_stats emq_waiters;

static long long most = MOST_DEFAULT;
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
    if (emq_waiters.waiters == 0 || length > EMQ_QUEUE_KEY_MAX) return NULL;
    queue_name queue = name_queue(db, name, length);
    return ValkeyModule_DictGetC(queues, queue.bytes, queue.length, NULL);
}

static emq_waited *find_of(emq_call *call) {
    if (emq_waiters.waiters == 0) return NULL;
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

static void give_turn(ValkeyModuleCtx *ctx, emq_waiter *first) {
    first->signalled = true;
    emq_waiters.wakes++;
    ValkeyModule_SignalKeyAsReady(ctx, first->key);
}

static bool is_wanted(const emq_waited *queue, unsigned bit) {
    for (unsigned wants = 0; wants < LINES; wants++) {
        if (wants & bit && queue->lines[wants].first) return true;
    }
    return false;
}

/* Of those who wait for this, the one who came first; NULL when nobody does or one of them is signalled already. */
static emq_waiter *next_for(emq_waited *queue, unsigned bit) {
    emq_waiter *next = NULL;
    for (unsigned wants = 0; wants < LINES; wants++) {
        emq_waiter *first = wants & bit ? queue->lines[wants].first : NULL;
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
        emq_waiter *next = next_for(queue, left & -left);
        if (next) give_turn(ctx, next);
    }
}

/* The schedule */

int64_t emq_waiters_instant(double score) {
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
    return any ? emq_waiters_instant(score) : NEVER;
}

static void on_due(ValkeyModuleCtx *ctx, void *data);

/* Learns when the queue's first scheduled job comes due, and sees to it that somebody looks then: those who have been
 * waiting for longer do not know of it. added: the schedule got an entry, and if it is the first, one of them is told
 * at once, asks again and waits no longer than until then. */
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
    emq_waiter *next = added && !ValkeyModule_AvoidReplicaTraffic() ? next_for(queue, EMQ_READY_DUE) : NULL;
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

/* Waiters */

/* The server ends waits when it looks at the clock, which on an idle one is not often; an alarm makes it look. */
static void on_alarm(ValkeyModuleCtx *ctx, void *data);

static void set_alarm(ValkeyModuleCtx *ctx, emq_waiter *waiter) {
    int64_t left_ms = waiter->cut_ms - ValkeyModule_Milliseconds();
    waiter->alarm = ValkeyModule_CreateTimer(ctx, left_ms > 0 ? left_ms : 1, on_alarm, waiter);
}

static void on_alarm(ValkeyModuleCtx *ctx, void *data) {
    set_alarm(ctx, data); /* in case the clock that ends the wait is not there yet */
}

static void join(emq_waited *queue, emq_waiter *waiter) {
    waiter->queue = queue;
    waiter->before = queue->lines[waiter->wants].last;
    *(waiter->before ? &waiter->before->after : &queue->lines[waiter->wants].first) = waiter;
    queue->lines[waiter->wants].last = waiter;
    queue->waiters++;
    emq_waiters.waiters++;
}

/* Answers the queue, NULL when nobody waits for it any more. */
static emq_waited *leave(ValkeyModuleCtx *ctx, emq_waiter *waiter) {
    emq_waited *queue = waiter->queue;
    if (!queue) return NULL;
    stop_alarm(ctx, &waiter->alarm);
    *(waiter->before ? &waiter->before->after : &queue->lines[waiter->wants].first) = waiter->after;
    *(waiter->after ? &waiter->after->before : &queue->lines[waiter->wants].last) = waiter->before;
    waiter->queue = NULL;
    emq_waiters.waiters--;
    if (--queue->waiters > 0) return queue;
    close_queue(ctx, queue);
    return NULL;
}

/* Leaves without having been served. */
static void give_up(ValkeyModuleCtx *ctx, emq_waiter *waiter) {
    bool signalled = waiter->signalled;
    emq_waited *queue = leave(ctx, waiter);
    if (!queue || !signalled || !queue->ready) return;
    emq_waiters.batons++;
    dispatch(ctx, queue);
}

typedef struct looking {
    emq_waiter *waiter;
    bool answered;
} looking;

/* Whether the server would let the client write now, had it just asked: that a slot is not on its way to another node, that
 * there are enough replicas, that the disk works. */
static bool may_write(emq_call *call) {
    ValkeyModuleCallReply *reply = ValkeyModule_Call(call->ctx, "ZREM", "DSss", call->argv[1], call->argv[1]); /* a dry run */
    bool refused = reply && ValkeyModule_CallReplyType(reply) == VALKEYMODULE_REPLY_ERROR;
    if (reply) ValkeyModule_FreeCallReply(reply);
    return !refused;
}

/* Who may not write is told nothing, asks again, and is refused or sent on by the server itself. */
static void look(emq_call *call, void *data) {
    looking *looks = data;
    call->args = looks->waiter->args;
    if (may_write(call)) {
        looks->answered = emq_next_again(call, looks->waiter->cut_ms, &looks->waiter->verdicts);
    } else {
        emq_next_nothing(call, &looks->waiter->verdicts);
        looks->answered = true;
    }
    if (looks->answered) leave(call->ctx, looks->waiter);
}

static int on_signal(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    looking looks = {.waiter = ValkeyModule_GetBlockedClientPrivateData(ctx)};
    if (!looks.waiter->queue) return VALKEYMODULE_ERR;
    looks.waiter->signalled = false;
    if (ValkeyModule_AvoidReplicaTraffic() || !(ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_PRIMARY)) {
        deferred = true;
        return VALKEYMODULE_ERR;
    }
    turn.queue = looks.waiter->queue;
    emq_call_resume(looks.waiter->command, ctx, argv, argc, look, &looks);
    return looks.answered ? VALKEYMODULE_OK : VALKEYMODULE_ERR;
}

static int on_time_out(ValkeyModuleCtx *ctx, ValkeyModuleString **argv, int argc) {
    (void)argv, (void)argc;
    emq_waiter *waiter = ValkeyModule_GetBlockedClientPrivateData(ctx);
    emq_call call = {.ctx = ctx};
    emq_next_nothing(&call, &waiter->verdicts);
    give_up(ctx, waiter);
    return VALKEYMODULE_OK;
}

static void on_gone(ValkeyModuleCtx *ctx, ValkeyModuleBlockedClient *client) {
    (void)client;
    give_up(ctx, ValkeyModule_GetBlockedClientPrivateData(ctx));
}

static void on_free(ValkeyModuleCtx *ctx, void *data) {
    emq_waiter *waiter = data;
    leave(ctx, waiter);
    emq_verdicts_free(&waiter->verdicts);
    ValkeyModule_FreeString(NULL, waiter->key);
    ValkeyModule_Free(waiter);
}

/* A name that is never stored, in the slot of the queue. */
static ValkeyModuleString *name_key(emq_call *call, uint64_t number) {
    char suffix[32], text[EMQ_KEY_MAX];
    snprintf(suffix, sizeof suffix, "waiter:%llu", (unsigned long long)number);
    return ValkeyModule_CreateString(NULL, text, emq_key_fixed(text, call->queue, call->queue_length, suffix));
}

static bool may_wait(emq_call *call) {
    static const int hindrances = VALKEYMODULE_CTX_FLAGS_DENY_BLOCKING | VALKEYMODULE_CTX_FLAGS_MULTI | VALKEYMODULE_CTX_FLAGS_LUA |
                                  VALKEYMODULE_CTX_FLAGS_REPLICATED | VALKEYMODULE_CTX_FLAGS_REPLICA | VALKEYMODULE_CTX_FLAGS_LOADING |
                                  VALKEYMODULE_CTX_FLAGS_ASYNC_LOADING;
    return emq_waiters.waiters < (uint64_t)most && !(ValkeyModule_GetContextFlags(call->ctx) & hindrances);
}

static unsigned wants_of(const emq_args *args) {
    unsigned wants = args->promote > 0 ? EMQ_READY_DUE : 0;
    for (int i = 0; i < args->sources; i++) wants |= EMQ_READY(args->from[i]);
    return wants;
}

bool emq_wait(emq_call *call, int64_t cut_ms, emq_verdicts *verdicts) {
    if (!may_wait(call)) return false;
    emq_waiter *waiter = ValkeyModule_Calloc(1, sizeof *waiter);
    waiter->number = ++arrivals;
    waiter->wants = wants_of(&call->args);
    waiter->cut_ms = cut_ms;
    waiter->command = call->command;
    waiter->args = call->args;
    waiter->key = name_key(call, waiter->number);

    /* The server lets a time-out pass by a millisecond; 0 would be for ever. */
    int64_t left_ms = cut_ms - ValkeyModule_Milliseconds() - 1;
    ValkeyModuleBlockedClient *client = ValkeyModule_BlockClientOnKeysWithFlags(
        call->ctx, on_signal, on_time_out, on_free, left_ms > 0 ? left_ms : 1, &waiter->key, 1, waiter, VALKEYMODULE_BLOCK_UNBLOCK_DELETED);
    if (!client) {
        ValkeyModule_FreeString(NULL, waiter->key);
        ValkeyModule_Free(waiter);
        return false;
    }
    ValkeyModule_SetDisconnectCallback(client, on_gone);
    emq_bridge_open(call->ctx);
    waiter->verdicts = *verdicts;
    *verdicts = (emq_verdicts){NULL, 0};
    join(open_queue(call), waiter);
    set_alarm(call->ctx, waiter);
    return true;
}

/* Events */

bool emq_waiters_any(void) {
    return emq_waiters.waiters > 0;
}

bool emq_waiters_here(emq_call *call) {
    return find_of(call);
}

void emq_waiters_note(emq_call *call, unsigned known, unsigned ready) {
    emq_waited *queue = find_of(call);
    if (!queue) return;
    turn.queue = queue;
    turn.known |= known;
    queue->ready = (queue->ready & ~known) | ready;
}

void emq_waiters_resume(emq_call *call) {
    if (emq_waiters.waiters > 0) {
        emq_waiters_ready(call->ctx, call->queue, call->queue_length, EMQ_READY(EMQ_FLAT) | EMQ_READY(EMQ_LANE));
    }
}

void emq_waiters_ready(ValkeyModuleCtx *ctx, const char *name, size_t length, unsigned ready) {
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

void emq_waiters_hold(void) {
    turn.running = true;
}

void emq_waiters_release(ValkeyModuleCtx *ctx) {
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

void emq_waiters_swapped(ValkeyModuleCtx *ctx, int db) {
    for (emq_waited *queue = first_queue; queue; queue = queue->after) {
        if (queue->db != db) continue;
        stop_alarm(ctx, &queue->alarm);
        queue->due_ms = NEVER;
        probe(ctx, queue);
    }
}

void emq_waiters_tick(ValkeyModuleCtx *ctx) {
    if (!first_queue || ValkeyModule_AvoidReplicaTraffic()) return;
    for (emq_waited *queue = deferred ? first_queue : NULL; queue; queue = queue->after) {
        ValkeyModule_SelectDb(ctx, queue->db);
        dispatch(ctx, queue);
    }
    deferred = false;
    emq_waited *last = last_queue;
    for (int i = 0; i < PROBED_PER_TICK; i++) {
        emq_waited *queue = first_queue;
        probe(ctx, queue);
        unlink_queue(queue);
        link_queue(queue);
        if (queue == last) break;
    }
}

/* Configuration */

static long long get_most(const char *name, void *data) {
    (void)name, (void)data;
    return most;
}

static int set_most(const char *name, long long value, void *data, ValkeyModuleString **error) {
    (void)name, (void)data, (void)error;
    most = value;
    return VALKEYMODULE_OK;
}

bool emq_waiters_load(ValkeyModuleCtx *ctx) {
    queues = ValkeyModule_CreateDict(NULL);
    return ValkeyModule_RegisterNumericConfig(ctx, "max-waiters", MOST_DEFAULT, VALKEYMODULE_CONFIG_DEFAULT, 0, MOST_MAX, get_most,
                                              set_most, NULL, NULL) == VALKEYMODULE_OK &&
           ValkeyModule_LoadConfigs(ctx) == VALKEYMODULE_OK;
}
