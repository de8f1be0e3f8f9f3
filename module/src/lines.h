/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who waits for a queue, and who is next.
 *
 * Those who wait for a queue stand in lines, one for every combination of what they wait for, in the order in which they
 * came. A queue that is waited for knows what may be ready: jobs without a group, lanes, scheduled jobs that came due. As
 * long as something may be ready and somebody waits for it, exactly one of those who do is signalled. That one looks for
 * itself; what it finds to be left is ready for the next, what it finds gone is not. One that leaves before it has looked
 * hands its turn on.
 *
 * A queue is looked after when one of its keys got an entry (bridge.c), when a call of this module ends, when the alarm of
 * its schedule rings, and now and then in any case. All of these do no more than signal, and not even that while the
 * server must not write. */
#ifndef EMQ_LINES_H
#define EMQ_LINES_H

#include "call.h"

/* What may be ready, and what one can wait for. */
#define EMQ_READY(source) (1u << (source))
#define EMQ_READY_DUE (1u << EMQ_SOURCES)

typedef struct emq_waited emq_waited;

/* One that waits. Zeroed memory stands nowhere. */
typedef struct emq_stander {
    struct emq_stander *before, *after;
    emq_waited *queue;       /* NULL when it stands in no line */
    unsigned wants;          /* bits; also the number of its line */
    uint64_t number;         /* in the order of arrival */
    bool signalled;          /* and has not looked yet; only the first of a line ever is */
    int64_t cut_ms;          /* it waits no longer than until then */
    ValkeyModuleString *key; /* what is signalled */
} emq_stander;

/* Joins the line of those who wait for the same in the queue of the call. */
void emq_lines_join(emq_call *call, emq_stander *stander);

/* Leaves the line, if it still stands there. given_up: without having been served, so that its turn is handed on. */
void emq_lines_leave(ValkeyModuleCtx *ctx, emq_stander *stander, bool given_up);

/* Its look begins: it is no longer signalled. False when this is no time to look; it will be signalled again. */
bool emq_lines_may_look(ValkeyModuleCtx *ctx, emq_stander *stander);

/* Whether anybody waits for anything; whether anybody waits for the queue of the call. */
bool emq_lines_any(void);
bool emq_lines_here(emq_call *call);

/* What this call knows to be ready in its queue: of the bits known, those in ready. */
void emq_lines_note(emq_call *call, unsigned known, unsigned ready);

/* The queue of the call is no longer paused. */
void emq_lines_resume(emq_call *call);

/* Something of a queue may have become ready, in the context's database. EMQ_READY_DUE: its schedule got an entry. */
void emq_lines_ready(ValkeyModuleCtx *ctx, const char *name, size_t length, unsigned ready);

/* The content of a database was exchanged for another. */
void emq_lines_swapped(ValkeyModuleCtx *ctx, int db);

/* Looks after queues that no event has reached. */
void emq_lines_tick(ValkeyModuleCtx *ctx);

/* Between these two, what becomes ready is only remembered: a call that takes what it has made ready signals nobody. */
void emq_lines_hold(void);
void emq_lines_release(ValkeyModuleCtx *ctx);

/* The first instant in milliseconds that is not before a score. */
int64_t emq_lines_instant(double score);

/* The latter as long as nobody has waited. */
void emq_lines_load(void);
void emq_lines_unload(void);

/* For INFO: who waits; how often one was signalled; how often one left before it had looked and handed its turn on. */
typedef struct emq_lines_stats {
    uint64_t waiters, wakes, batons;
} emq_lines_stats;

extern emq_lines_stats emq_lines;

#endif
