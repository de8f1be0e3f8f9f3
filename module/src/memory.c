/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdbool.h>
#include <string.h>

#include "valkey_api.h"

#define BLOCK 8192
#define ALIGNMENT sizeof(void *)

/* Up to here a table is searched from end to end. */
#define INDEX_FROM 8

void emq_vector_add_many(emq_vector *vector, void *item) {
    bool first = !vector->many;
    if (first || vector->count >= vector->capacity) {
        vector->capacity = first ? 4 * EMQ_FEW : 2 * vector->capacity;
        vector->many = ValkeyModule_Realloc(vector->many, vector->capacity * sizeof(void *));
        if (first) memcpy(vector->many, vector->few, sizeof vector->few);
    }
    vector->many[vector->count++] = item;
}

void emq_vector_free(emq_vector *vector) {
    if (vector->many) ValkeyModule_Free(vector->many);
    vector->many = NULL;
    vector->count = vector->capacity = 0;
}

uint32_t emq_text_hash(const char *text, size_t length) {
    uint32_t value = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) value = (value ^ (unsigned char)text[i]) * 16777619u;
    return value;
}

static bool is(const emq_entry *entry, const char *text, size_t length) {
    return entry->length == length && memcmp(entry->text, text, length) == 0;
}

/* Where the text is in the index, or the free cell where it belongs. */
static uint32_t *cell(emq_table *table, const char *text, size_t length) {
    uint32_t mask = table->index_size - 1;
    for (uint32_t at = emq_text_hash(text, length) & mask;; at = (at + 1) & mask) {
        uint32_t *position = &table->index[at];
        if (*position == 0 || is(emq_vector_at(&table->entries, *position - 1), text, length)) return position;
    }
}

void *emq_table_find(emq_table *table, const char *text, size_t length) {
    if (table->index) {
        uint32_t position = *cell(table, text, length);
        return position ? emq_vector_at(&table->entries, position - 1) : NULL;
    }
    for (uint32_t i = 0; i < table->entries.count; i++) {
        if (is(emq_vector_at(&table->entries, i), text, length)) return emq_vector_at(&table->entries, i);
    }
    return NULL;
}

/* A new index, at most half full until the number of entries has doubled. */
static void reindex(emq_table *table) {
    if (table->index) ValkeyModule_Free(table->index);
    table->index_size = table->index ? 4 * table->index_size : 8 * INDEX_FROM;
    table->index = ValkeyModule_Calloc(table->index_size, sizeof(uint32_t));
    for (uint32_t i = 0; i < table->entries.count; i++) {
        const emq_entry *entry = emq_vector_at(&table->entries, i);
        *cell(table, entry->text, entry->length) = i + 1;
    }
}

void emq_table_add(emq_table *table, emq_entry *entry) {
    emq_vector_add(&table->entries, entry);
    uint32_t count = table->entries.count;
    if (count <= INDEX_FROM) return;
    if (!table->index || 2 * count > table->index_size) {
        reindex(table);
    } else {
        *cell(table, entry->text, entry->length) = count;
    }
}

void emq_table_free(emq_table *table) {
    emq_vector_free(&table->entries);
    if (table->index) ValkeyModule_Free(table->index);
    table->index = NULL;
}

void *emq_heap_take(emq_heap *heap, size_t size) {
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (size > heap->left) {
        heap->left = size > BLOCK ? size : BLOCK;
        heap->at = ValkeyModule_Alloc(heap->left);
        emq_vector_add(&heap->blocks, heap->at);
    }
    void *taken = memset(heap->at, 0, size);
    heap->at += size;
    heap->left -= size;
    return taken;
}

void emq_heap_free(emq_heap *heap) {
    for (uint32_t i = 0; i < heap->blocks.count; i++) ValkeyModule_Free(emq_vector_at(&heap->blocks, i));
    emq_vector_free(&heap->blocks);
}
