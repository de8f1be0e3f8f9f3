/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What INFO counts since the module was loaded: calls by command, refusals by class. A refusal is an error, the fault of
 * EMQ.NEXT, and each job in the list of a call (EMQ.NEXT, EMQ.MCOMPLETE, EMQ.MEXTEND) that the command for one job would
 * have answered with an error.
 *
 * Nothing sets a counter back. The server tells a module nothing of CONFIG RESETSTAT; what that resets are the server's own
 * counts of the same commands, in INFO commandstats, errorstats and latencystats. */
#ifndef EMQ_STATS_H
#define EMQ_STATS_H

#include "command.h"
#include "valkey_api.h"

/* X(class, first word of the texts): classes of the contract that are raised (7.5); all other texts, of bad arguments, are
 * one class more. */
#define EMQ_REFUSALS(X)       \
    X(fence, "EMQFENCE")      \
    X(kind, "EMQKIND")        \
    X(stale, "EMQSTALE")      \
    X(state, "EMQSTATE")      \
    X(lock, "EMQLOCK")        \
    X(wrongtype, "WRONGTYPE") \
    X(other, "")

typedef enum emq_refusal {
#define X(class, word) EMQ_REFUSED_##class,
    EMQ_REFUSALS(X)
#undef X
    EMQ_REFUSAL_CLASSES
} emq_refusal;

typedef struct emq_stats {
    uint64_t calls[EMQ_COMMAND_COUNT];
    uint64_t refused[EMQ_REFUSAL_CLASSES];
} emq_stats;

extern emq_stats emq_counted;

/* Counts a refusal with this text. */
void emq_count_refusal(const char *text);

/* The sections of INFO. */
void emq_stats_info(ValkeyModuleInfoCtx *info);

/* All calls. */
uint64_t emq_stats_calls(void);

#endif
