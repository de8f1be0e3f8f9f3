/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words of a command, parsed as its row in the table says, strictly and in the order of refusals: structure, queue key,
 * names, numbers; then, after the fence, job ids. */
#ifndef EMQ_ARGS_H
#define EMQ_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"

/* An optional instant that was not sent. */
#define EMQ_UNSAID (-1)

/* Where EMQ.NEXT takes jobs from. */
typedef enum emq_source {
    EMQ_FLAT,
    EMQ_LANE,
    EMQ_SOURCES
} emq_source;

/* Values by the name that the grammar gives them. Strings are those of argv. An option that was not sent leaves NULL,
 * false, its default, or 0 where 0 is no legal value. */
typedef struct emq_args {
    ValkeyModuleString *id, *token, *payload, *group, *name, *error, *result, *text;
    int64_t lease_ms, delay_ms, when_ms, every_ms, next_ms;
    int64_t max, limit, keep, count, ceiling, weight, block_ms, promote, reap, settle;
    bool force, scheduled;

    emq_source from[EMQ_SOURCES]; /* in the order in which they are asked */
    int sources;
    int endings; /* where in argv the list of endings begins; 0 when there is none */

    ValkeyModuleString **members; /* the repeated words */
    int member_count, member_width;
} emq_args;

/* Steps 1 to 4. Answers false when it refused. */
bool emq_args_parse(emq_call *call);

/* Step 6. */
bool emq_args_check_ids(emq_call *call);

/* Reads a number of that kind; of a delay it answers the delay, of EMQ_N_IN the instant. Answers false when it refused. */
bool emq_args_number(emq_call *call, emq_number number, ValkeyModuleString *text, int64_t *value);

/* Refuses what is no job id. */
bool emq_args_check_id(emq_call *call, ValkeyModuleString *id);

/* Whether a word is that keyword, in any letter case. */
bool emq_args_says(ValkeyModuleString *word, const char *keyword);

/* Number of words that a command takes with its name, negative when that is the least: the server's arity. */
int emq_args_arity(const emq_command *command);

/* Reads decimal text: 0, or an optional '-' and a digit 1..9 with at most most_digits - 1 further digits. */
bool emq_args_decimal(ValkeyModuleString *string, size_t most_digits, int64_t *number);

#endif
