/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of a command: a vector of pointers, a table that finds an entry by its text, and a heap that is given back all
 * at once. All begin as zeroed memory, hold a little without any allocation, and never fail: the server's allocator ends the
 * process instead. */
#ifndef EMQ_MEMORY_H
#define EMQ_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define EMQ_FEW 6

typedef struct emq_vector {
    void **many; /* NULL as long as few is enough */
    uint32_t count, capacity;
    void *few[EMQ_FEW];
} emq_vector;

/* For memory that is not zeroed. */
static inline void emq_vector_begin(emq_vector *vector) {
    vector->many = NULL;
    vector->count = vector->capacity = 0;
}

static inline void **emq_vector_items(emq_vector *vector) {
    return vector->many ? vector->many : vector->few;
}

static inline void *emq_vector_at(emq_vector *vector, size_t index) {
    return emq_vector_items(vector)[index];
}

/* Adds an item to a vector whose few are taken. */
void emq_vector_add_many(emq_vector *vector, void *item);

static inline void emq_vector_add(emq_vector *vector, void *item) {
    if (!vector->many && vector->count < EMQ_FEW) {
        vector->few[vector->count++] = item;
    } else {
        emq_vector_add_many(vector, item);
    }
}

/* Empties the vector and gives its memory back; what the items point to is the caller's. */
void emq_vector_free(emq_vector *vector);

uint32_t emq_text_hash(const char *text, size_t length);

/* First member of whatever a table holds. The text must live as long as the table. */
typedef struct emq_entry {
    const char *text;
    size_t length;
} emq_entry;

typedef struct emq_table {
    emq_vector entries; /* in the order of their arrival */
    uint32_t *index;    /* open addressing, position + 1 of an entry; NULL while a search from end to end is cheaper */
    uint32_t index_size;
} emq_table;

/* The entry with this text, or NULL. */
void *emq_table_find(emq_table *table, const char *text, size_t length);

/* Adds an entry whose text the table does not hold yet. */
void emq_table_add(emq_table *table, emq_entry *entry);

void emq_table_free(emq_table *table);

/* A heap takes from the room that it is lent, then from blocks of its own. */
typedef struct emq_heap {
    char *at;
    size_t left;
    emq_vector blocks;
} emq_heap;

/* Zeroed memory. */
void *emq_heap_take(emq_heap *heap, size_t size);

void emq_heap_free(emq_heap *heap);

#endif
