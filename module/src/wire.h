/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The constants of the wire contract: identities, limits and every refusal text, each once. Section numbers are those of
 * docs/protocol.md. Texts are what a client sees after the leading '-'; they are part of the contract, to the byte. */
#ifndef EMQ_WIRE_H
#define EMQ_WIRE_H

/* Text of the value of a constant, for use inside string literals. */
#define EMQ_TEXT_OF(token) #token
#define EMQ_TEXT(constant) EMQ_TEXT_OF(constant)

/* Identity (6.1). */
#define EMQ_WIRE 6
#define EMQ_API 1
#define EMQ_MODULE_NAME "emq"
#define EMQ_MODULE_VERSION "0.1.0"
#define EMQ_MODULE_VERSION_NUMBER 100 /* what MODULE LIST shows: major * 10000 + minor * 100 + patch */
#define EMQ_IDENTITY "echomq:6.0.0"
#define EMQ_IDENTITY_SCRIPTED "echomq:4.0.0"
#define EMQ_FENCE_KEY "{emq}:version" /* outside cluster mode */
#define EMQ_FENCE_SUFFIX "version"    /* in cluster mode, a key of the queue */
#define EMQ_FENCE_SHOWN_MAX 64        /* bytes of a foreign fence value in a refusal */

/* Names and ids (3.1, 4.1). */
#define EMQ_NAME_MAX 128
#define EMQ_GROUP_MAX 64
#define EMQ_REPEAT_NAME_MAX 128
#define EMQ_RESERVED_NAME "emq"
#define EMQ_ID_LENGTH 14
#define EMQ_ID_SPACE_LENGTH 3
#define EMQ_ID_DIGITS 11
#define EMQ_JOB_SPACE "JOB"
#define EMQ_ID_EPOCH_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */
#define EMQ_ID_NODE_BITS 10
#define EMQ_ID_SEQUENCE_BITS 12
#define EMQ_ID_NODE_MAX 1023
#define EMQ_ID_SEQUENCE_MAX 4095
#define EMQ_ID_JITTER_MAX 1023

/* Numbers (7.1). M is the largest integer that a double, so a sorted-set score, holds exactly. */
#define EMQ_MAX_INTEGER INT64_C(9007199254740991)
#define EMQ_MAX_INTEGER_TEXT "9007199254740991"
#define EMQ_STORED_DIGITS_MAX 16 /* a stored number with more digits counts as absent */
#define EMQ_MAX_MAX 2147483647
#define EMQ_LIMIT_MAX 10000
#define EMQ_LIMIT_DEFAULT 1000
#define EMQ_KEEP_MAX 10000
#define EMQ_SETTLE_MAX 10000
#define EMQ_COUNT_MAX 10000
#define EMQ_COUNT_DEFAULT 1
#define EMQ_CEILING_MAX 2147483647
#define EMQ_WEIGHT_MAX 10000
#define EMQ_CHILDREN_MAX 10000
#define EMQ_BLOCK_MAX 86400000
#define EMQ_SWEEP_MAX 10000 /* PROMOTE and REAP of EMQ.NEXT */
#define EMQ_SWEEP_DEFAULT 100

/* Bounds on the work of one call (7.2). */
#define EMQ_MEMBERS 10000
#define EMQ_DROP 1000
#define EMQ_ROUND 1000
#define EMQ_SCAN 10000
#define EMQ_UP 8
#define EMQ_WAKE 64
#define EMQ_POISON 10000

/* Refusals, in the order of 7.4. */
#define EMQ_ERR_SYNTAX "ERR syntax error"
#define EMQ_ERR_MEMBERS "ERR at most 10000 members in one call"
#define EMQ_ERR_FLOW_IDS "ERR flow ids must differ"
#define EMQ_ERR_QUEUE_KEY "ERR queue key must be emq:{name}, name of 1 to 128 of A-Z a-z 0-9 . _ -"
#define EMQ_ERR_QUEUE_NAME "ERR queue must be a name of 1 to 128 of A-Z a-z 0-9 . _ -"
#define EMQ_ERR_GROUP "ERR group must be 1 to 64 of A-Z a-z 0-9 . _ -"
#define EMQ_ERR_REPEAT_NAME "ERR name must be 1 to 128 of A-Z a-z 0-9 . _ -"
#define EMQ_ERR_FLOW_ENTRY "ERR flow entry is malformed"
#define EMQ_ERR_FLOW_ENTRY_QUEUE "ERR flow entry is for another queue"

/* name and bounds are string literals: EMQ_ERR_NUMBER("lease", "1", EMQ_MAX_INTEGER_TEXT). */
#define EMQ_ERR_NUMBER(name, low, high) "ERR " name " must be an integer between " low " and " high
#define EMQ_ERR_LEASE EMQ_ERR_NUMBER("lease", "1", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_DELAY EMQ_ERR_NUMBER("delay", "0", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_IN EMQ_ERR_NUMBER("in", "0", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_AT EMQ_ERR_NUMBER("at", "0", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_MAX EMQ_ERR_NUMBER("max", "1", EMQ_TEXT(EMQ_MAX_MAX))
#define EMQ_ERR_LIMIT EMQ_ERR_NUMBER("limit", "1", EMQ_TEXT(EMQ_LIMIT_MAX))
#define EMQ_ERR_KEEP EMQ_ERR_NUMBER("keep", "1", EMQ_TEXT(EMQ_KEEP_MAX))
#define EMQ_ERR_SETTLE EMQ_ERR_NUMBER("settle", "1", EMQ_TEXT(EMQ_SETTLE_MAX))
#define EMQ_ERR_COUNT EMQ_ERR_NUMBER("count", "1", EMQ_TEXT(EMQ_COUNT_MAX))
#define EMQ_ERR_EVERY EMQ_ERR_NUMBER("every", "1", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_NEXT EMQ_ERR_NUMBER("next", "0", EMQ_MAX_INTEGER_TEXT)
#define EMQ_ERR_CEILING EMQ_ERR_NUMBER("ceiling", "0", EMQ_TEXT(EMQ_CEILING_MAX))
#define EMQ_ERR_WEIGHT EMQ_ERR_NUMBER("weight", "0", EMQ_TEXT(EMQ_WEIGHT_MAX))
#define EMQ_ERR_CHILDREN EMQ_ERR_NUMBER("children", "0", EMQ_TEXT(EMQ_CHILDREN_MAX))
#define EMQ_ERR_BLOCK EMQ_ERR_NUMBER("block", "1", EMQ_TEXT(EMQ_BLOCK_MAX))
#define EMQ_ERR_PROMOTE EMQ_ERR_NUMBER("promote", "0", EMQ_TEXT(EMQ_SWEEP_MAX))
#define EMQ_ERR_REAP EMQ_ERR_NUMBER("reap", "0", EMQ_TEXT(EMQ_SWEEP_MAX))

/* A fence refusal is EMQ_ERR_FENCE, the fence key, then one of the three FOUND texts or ", found " and the value (6.3). */
#define EMQ_ERR_FENCE "EMQFENCE wants " EMQ_IDENTITY " at "
#define EMQ_ERR_FENCE_FOUND ", found "
#define EMQ_ERR_FENCE_FOUND_NOTHING ", found nothing"
#define EMQ_ERR_FENCE_FOUND_EMPTY ", found an empty string"
#define EMQ_ERR_FENCE_FOUND_NO_STRING ", found a key that is no string"

#define EMQ_ERR_KIND_SPACE "EMQKIND job id must be JOB-namespaced"
#define EMQ_ERR_KIND_SHAPE "EMQKIND job id must be 14 bytes: JOB and 11 base62 digits"

#define EMQ_ERR_WRONGTYPE "WRONGTYPE Operation against a key holding the wrong kind of value"
#define EMQ_ERR_DAMAGED "EMQSTATE job row is damaged"

#define EMQ_ERR_GONE "EMQSTALE job gone"
#define EMQ_ERR_STALE(word) "EMQSTALE " word " token mismatch"
#define EMQ_ERR_STALE_COMPLETE EMQ_ERR_STALE("complete")
#define EMQ_ERR_STALE_RETRY EMQ_ERR_STALE("retry")
#define EMQ_ERR_STALE_DELAY EMQ_ERR_STALE("delay")
#define EMQ_ERR_STALE_EXTEND EMQ_ERR_STALE("extend")

#define EMQ_ERR_NOT_ACTIVE "EMQSTATE job is not active"
#define EMQ_ERR_NOT_DEAD "EMQSTATE not dead"
#define EMQ_ERR_NOT_PAUSED "EMQSTATE not paused"
#define EMQ_ERR_ACTIVE_JOBS "EMQSTATE active jobs present"
#define EMQ_ERR_OUTBOX "EMQSTATE flow outbox is not empty"
#define EMQ_ERR_LOCK_ACTIVE "EMQLOCK job is active"
#define EMQ_ERR_LOCK_MARKER "EMQLOCK job is locked"

/* Texts that a transition stores (5). */
#define EMQ_LAST_ERROR_EXPIRED "lease expired"
#define EMQ_LAST_ERROR_CHILD "child failed: "
#define EMQ_ERROR_REMOVED "removed"

#endif
