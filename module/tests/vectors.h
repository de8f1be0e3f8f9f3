/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads tests/vectors.json, which the Python tests read too. The file is kept so that this suffices: every section is a
 * line with its name, every vector one line after it, and no text needs an escape. Included by the unit tests; a vector
 * that lacks a field ends the test. */
#ifndef EMQ_TEST_VECTORS_H
#define EMQ_TEST_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS "tests/vectors.json"
#define TEXT_MAX 512

typedef struct {
    FILE *file;
    char line[2048];
    int count;
} vectors;

static int failures;

/* Says what is wrong with which vector, and goes on. */
#define CHECK(vectors, condition)                                                                   \
    do {                                                                                            \
        if (!(condition)) {                                                                         \
            printf("%s:%d: not so: %s\n  for %s", __FILE__, __LINE__, #condition, (vectors)->line); \
            failures++;                                                                             \
        }                                                                                           \
    } while (0)

static vectors vectors_of(const char *section) {
    vectors all = {.file = fopen(VECTORS, "r")};
    char head[64];
    snprintf(head, sizeof head, " \"%s\": [\n", section);
    while (all.file != NULL && fgets(all.line, sizeof all.line, all.file) != NULL) {
        if (strcmp(all.line, head) == 0) return all;
    }
    printf("no section %s in %s\n", section, VECTORS);
    exit(1);
}

/* Steps to the next vector. A section that has none is a broken file, not a pass. */
static bool vectors_next(vectors *all) {
    if (fgets(all->line, sizeof all->line, all->file) != NULL && strstr(all->line, "{\"") != NULL) {
        all->count++;
        return true;
    }
    fclose(all->file);
    if (all->count > 0) return false;
    printf("an empty section in %s\n", VECTORS);
    exit(1);
}

static const char *vectors_field(const vectors *all, const char *field, bool required) {
    char name[64];
    snprintf(name, sizeof name, "\"%s\": ", field);
    const char *at = strstr(all->line, name);
    if (at != NULL) return at + strlen(name);
    if (!required) return NULL;
    printf("no field %s in %s", field, all->line);
    exit(1);
}

/* Copies a text, "" when the field is not there, and answers its length. */
static size_t vectors_text(const vectors *all, const char *field, char text[TEXT_MAX]) {
    const char *at = vectors_field(all, field, false);
    size_t length = at != NULL ? strcspn(at + 1, "\"") : 0;
    memcpy(text, at != NULL ? at + 1 : "", length);
    text[length] = '\0';
    return length;
}

static uint64_t vectors_number(const vectors *all, const char *field) {
    return strtoull(vectors_field(all, field, true), NULL, 10);
}

#endif
