/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of endings of EMQ.NEXT: what became of jobs that were taken before.
 *
 *   COMPLETE id token  |  RESULT id token bytes  |  RETRY id token delay max error  |  DELAY id token IN|AT ms
 *
 * The list stays in argv and is walked again for every step of the order of refusals, so that ten thousand endings need
 * no memory of their own. */
#ifndef EMQ_ENDINGS_H
#define EMQ_ENDINGS_H

#include "call.h"

typedef enum emq_ending_kind {
    EMQ_ENDS_COMPLETE,
    EMQ_ENDS_RESULT,
    EMQ_ENDS_RETRY,
    EMQ_ENDS_DELAY,
    EMQ_ENDINGS
} emq_ending_kind;

typedef struct emq_ending {
    emq_ending_kind kind;
    ValkeyModuleString *id, *token;
    ValkeyModuleString *bytes; /* a result or an error */
    int64_t delay_ms, max;     /* RETRY */
    int64_t when_ms;           /* DELAY: an instant */
} emq_ending;

/* Step 1: passes the endings from argv[*at] to the end, and counts them. Answers false when it refused. */
bool emq_endings_bind(emq_call *call, int *at, int64_t *count);

/* Steps 4 and 6. */
bool emq_endings_check_numbers(emq_call *call);
bool emq_endings_check_ids(emq_call *call);

/* Reads the ending at argv[*at] and passes it; false at the end of the list. Begin with *at = args.endings. */
bool emq_endings_next(emq_call *call, int *at, emq_ending *ending);

#endif
