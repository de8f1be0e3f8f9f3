/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a command is. The table in commands.c describes each one once; registration, access control, COMMAND DOCS, parsing
 * and TRA.CAPABILITIES all come from that description. */
#ifndef EMQ_COMMAND_H
#define EMQ_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "valkey_api.h"

typedef struct emq_call emq_call;

/* Every command, by the name of its handler. */
#define EMQ_COMMANDS(X) \
    X(enqueue)          \
    X(schedule)         \
    X(claim)            \
    X(complete)         \
    X(retry)            \
    X(delay)            \
    X(extend)           \
    X(promote)          \
    X(reap)             \
    X(state)            \
    X(counts)           \
    X(peek)             \
    X(menqueue)         \
    X(mclaim)           \
    X(mcomplete)        \
    X(mextend)          \
    X(genqueue)         \
    X(gclaim)           \
    X(gwclaim)          \
    X(gmclaim)          \
    X(gpause)           \
    X(gresume)          \
    X(glimit)           \
    X(gweight)          \
    X(greassign)        \
    X(gdrain)           \
    X(greap)            \
    X(gcounts)          \
    X(pause)            \
    X(resume)           \
    X(drain)            \
    X(obliterate)       \
    X(remove)           \
    X(reprocess)        \
    X(update)           \
    X(progress)         \
    X(log)              \
    X(repeat)           \
    X(unrepeat)         \
    X(fire)             \
    X(next)             \
    X(version)          \
    X(capabilities)

#define X(verb) void cmd_##verb(emq_call *call);
EMQ_COMMANDS(X)
#undef X

/* A number for each command. */
typedef enum emq_command_index {
#define X(verb) EMQ_COMMAND_##verb,
    EMQ_COMMANDS(X)
#undef X
    EMQ_COMMAND_COUNT
} emq_command_index;

/* What a word of a command may be. */
typedef enum emq_word_kind {
    EMQ_WORD_END,
    EMQ_WORD_ID,
    EMQ_WORD_BYTES,
    EMQ_WORD_GROUP,
    EMQ_WORD_REPEAT,
    EMQ_WORD_NUMBER,
    EMQ_WORD_WHEN,    /* IN or AT, then milliseconds: an instant */
    EMQ_WORD_FLAG,    /* the keyword alone */
    EMQ_WORD_FROM,    /* one or two sources */
    EMQ_WORD_ENDINGS, /* their number, then that many endings up to the end */
} emq_word_kind;

typedef enum emq_presence {
    EMQ_ONCE,     /* always, at its position */
    EMQ_OPTIONAL, /* an option: keyword and value, in any order after the fixed words, each at most once */
    EMQ_MANY,     /* all such words together are one member, repeated to the end */
} emq_presence;

typedef enum emq_number {
    EMQ_N_LEASE,
    EMQ_N_DELAY,
    EMQ_N_IN,
    EMQ_N_AT,
    EMQ_N_MAX,
    EMQ_N_LIMIT,
    EMQ_N_KEEP,
    EMQ_N_COUNT,
    EMQ_N_EVERY,
    EMQ_N_NEXT,
    EMQ_N_CEILING,
    EMQ_N_WEIGHT,
    EMQ_N_BLOCK,
    EMQ_N_PROMOTE,
    EMQ_N_REAP,
    EMQ_N_SETTLE,
    EMQ_NUMBERS
} emq_number;

typedef struct emq_word {
    emq_word_kind kind;
    emq_presence presence;
    const char *name;    /* in the documentation */
    const char *keyword; /* what the client writes before the value, if anything */
    emq_number number;   /* of a NUMBER */
    size_t at;           /* offset of the value in emq_args */
} emq_word;

typedef enum emq_queue_word {
    EMQ_QUEUE, /* the first word is a queue key */
    EMQ_QUEUE_OPTIONAL,
    EMQ_NO_QUEUE,
} emq_queue_word;

enum {
    EMQ_WRITES = 1 << 0,
    EMQ_GROWS = 1 << 1, /* deny-oom */
    EMQ_FAST = 1 << 2,
    EMQ_CAPPED = 1 << 3, /* one to EMQ_MEMBERS members */
    EMQ_BLOCKS = 1 << 4, /* may keep its client waiting */
};

/* Who needs a command. */
enum {
    EMQ_PRODUCES = 1 << 0,
    EMQ_CONSUMES = 1 << 1,
    EMQ_OPERATES = 1 << 2,
};

#define EMQ_WORDS_MAX 8

typedef struct emq_command {
    const char *name;
    void (*handler)(emq_call *call);
    unsigned flags, roles;
    emq_queue_word queue;
    emq_word words[EMQ_WORDS_MAX + 1];
    uint32_t keys; /* bit 1 << emq_queue_key: kinds that are tested whatever the state */
    bool lane;     /* also the lane keys of the group named */
    int revision;
    const char *summary;
    const char *complexity;
} emq_command;

/* Registers every command; the log names what the server refuses. */
bool emq_commands_register(ValkeyModuleCtx *ctx);

/* The i-th command of the table, NULL after the last. */
const emq_command *emq_commands_at(size_t i);

#endif
