/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that wait for jobs.
 *
 * Each waiter is blocked on a key of its own, which never exists and lies in the slot of its queue, so that waking one
 * costs the same however many wait. Who is next is decided here: the waiters of a queue stand in lines, one for every
 * combination of what they wait for, in the order in which they came.
 *
 * A queue that is waited for knows what may be ready: jobs without a group, lanes, scheduled jobs that came due. As long as
 * something may be ready and somebody waits for it, exactly one of those who do is signalled. It looks for itself; what it
 * finds to be left is ready for the next, what it finds gone is not. A signalled waiter that leaves before it has looked
 * hands its turn on.
 *
 * Waiting changes no data. A time-out, an alarm or the server's cron at most signals a waiter, and signals come to nothing
 * while the server must not write. */
#ifndef EMQ_WAITERS_H
#define EMQ_WAITERS_H

#include "call.h"
#include "next.h"

/* What may be ready, and what a waiter can wait for. */
#define EMQ_READY(source) (1u << (source))
#define EMQ_READY_DUE (1u << EMQ_SOURCES)

bool emq_waiters_load(ValkeyModuleCtx *ctx);

/* Makes the client of the call wait until that instant, and takes the verdicts over. Answers false when it cannot wait
 * here, or when as many wait as may: then nothing has happened. */
bool emq_wait(emq_call *call, int64_t cut_ms, emq_verdicts *verdicts);

/* Whether anybody waits; whether anybody waits for the queue of the call. */
bool emq_waiters_any(void);
bool emq_waiters_here(emq_call *call);

/* What this call knows to be ready in its queue: of the bits known, those in ready. */
void emq_waiters_note(emq_call *call, unsigned known, unsigned ready);

/* The queue of the call is no longer paused. */
void emq_waiters_resume(emq_call *call);

/* Something of a queue may have become ready, in the context's database. EMQ_READY_DUE: its schedule got an entry. */
void emq_waiters_ready(ValkeyModuleCtx *ctx, const char *queue, size_t length, unsigned ready);

/* The content of a database was exchanged for another. */
void emq_waiters_swapped(ValkeyModuleCtx *ctx, int db);

/* Looks after queues whose waiters no event has reached. */
void emq_waiters_tick(ValkeyModuleCtx *ctx);

/* Between these two, what becomes ready is only remembered: a call that takes what it has made ready signals nobody. */
void emq_waiters_hold(void);
void emq_waiters_release(ValkeyModuleCtx *ctx);

/* The first instant in milliseconds that is not before a score. */
int64_t emq_waiters_instant(double score);

/* For INFO: who waits; how often a waiter was signalled; how often one left before it had looked and handed its turn on. */
typedef struct emq_waiters_stats {
    uint64_t waiters, wakes, batons;
} emq_waiters_stats;

extern emq_waiters_stats emq_waiters;

#endif
