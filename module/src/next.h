/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a waiter does when it is woken, and what it is told when its time is up. */
#ifndef EMQ_NEXT_H
#define EMQ_NEXT_H

#include "call.h"

/* What became of one ending. */
typedef enum emq_verdict {
    EMQ_COMPLETED_NOW,
    EMQ_SCHEDULED_AGAIN,
    EMQ_DEAD_NOW,
    EMQ_DELAYED,
    EMQ_GONE,
    EMQ_STALE,
    EMQ_INACTIVE
} emq_verdict;

/* Verdicts of the first run, one byte each, in the order of the endings. Freed by emq_verdicts_free. */
typedef struct emq_verdicts {
    uint8_t *list;
    size_t count;
} emq_verdicts;

void emq_verdicts_free(emq_verdicts *verdicts);

/* Looks again for jobs, with the call's arguments. Answers the client and returns true when there are jobs or a fault, or
 * when there would be before that instant. */
bool emq_next_again(emq_call *call, int64_t cut_ms, const emq_verdicts *verdicts);

/* The empty answer. */
void emq_next_nothing(emq_call *call, const emq_verdicts *verdicts);

#endif
