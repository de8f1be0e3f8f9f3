/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names in the keyspace. A queue is known by its queue key, the text emq:{NAME}; no key of that name exists, and every key
 * of the queue is that text, a colon and a type, so all of them share the hash tag NAME and with it one slot.
 *
 * The builders write into buffers of EMQ_KEY_MAX bytes, without a terminator, and answer the length. They trust their
 * arguments: a queue key, an id, a group or a name has passed its test here or in id.h before it reaches one. A group or
 * an id that was read from a row is not exempt: a foreign writer may have put it there. */
#ifndef EMQ_KEYSPACE_H
#define EMQ_KEYSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define EMQ_QUEUE_KEY_MAX (EMQ_NAME_MAX + 6)                          /* emq:{NAME} */
#define EMQ_KEY_MAX (EMQ_QUEUE_KEY_MAX + 1 + 7 + EMQ_REPEAT_NAME_MAX) /* the longest is ...:repeat:<name> */
#define EMQ_SLOTS 16384

bool emq_queue_name_valid(const char *name, size_t length);

/* Tests a queue key and points name into it. Leaves name and name_length alone when the key is none. */
bool emq_queue_key_parse(const char *key, size_t length, const char **name, size_t *name_length);

bool emq_group_valid(const char *group, size_t length);
bool emq_repeat_name_valid(const char *name, size_t length);

/* The cluster slot of any key, 0 to 16383. */
uint16_t emq_slot(const char *key, size_t length);

/* emq:{NAME}, from a valid name. */
size_t emq_key_queue(char *out, const char *name, size_t name_length);

/* emq:{NAME}:<suffix>, for example "pending" or "metrics:completed". */
size_t emq_key_fixed(char *out, const char *queue_key, size_t queue_key_length, const char *suffix);

/* emq:{NAME}:job:<id><suffix>; id is EMQ_ID_LENGTH bytes; suffix is "" for the row, or ":logs" and the like. */
size_t emq_key_job(char *out, const char *queue_key, size_t queue_key_length, const char *id, const char *suffix);

/* emq:{NAME}:g:<group>:pending */
size_t emq_key_lane(char *out, const char *queue_key, size_t queue_key_length, const char *group, size_t group_length);

/* emq:{NAME}:repeat:<name> */
size_t emq_key_repeat(char *out, const char *queue_key, size_t queue_key_length, const char *name, size_t name_length);

#endif
