/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients that wait for jobs.
 *
 * Each is blocked on a key of its own, which never exists and lies in the slot of its queue, so that waking one costs the
 * same however many wait. Whose turn it is, lines.c decides. Waiting changes no data. */
#ifndef EMQ_WAITERS_H
#define EMQ_WAITERS_H

#include "call.h"
#include "next.h"

/* Registers how many may wait; answers how many. */
bool emq_waiters_load(ValkeyModuleCtx *ctx);
long long emq_waiters_most(void);

/* Makes the client of the call wait until that instant, and takes the verdicts over. Answers false when it cannot wait
 * here, or when as many wait as may: then nothing has happened. */
bool emq_wait(emq_call *call, int64_t cut_ms, emq_verdicts *verdicts);

#endif
