/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names, key names and slots against the vectors. */
#include "keyspace.h"
#include "vectors.h"

static const vectors HERE = {.line = "no vector\n"};

static void names_are_judged_as_listed(void) {
    vectors all = vectors_of("names");
    while (vectors_next(&all)) {
        char text[TEXT_MAX];
        size_t length = vectors_text(&all, "text", text);
        CHECK(&all, emq_queue_name_valid(text, length) == vectors_number(&all, "queue"));
        CHECK(&all, emq_group_valid(text, length) == vectors_number(&all, "group"));
        CHECK(&all, emq_repeat_name_valid(text, length) == vectors_number(&all, "repeat"));
    }
}

static void every_byte_is_in_the_alphabet_or_refused(void) {
    for (int byte = 0; byte < 256; byte++) {
        char name = (char)byte;
        bool allowed = byte != 0 && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", byte) != NULL;
        CHECK(&HERE, emq_queue_name_valid(&name, 1) == allowed);
        CHECK(&HERE, emq_group_valid(&name, 1) == allowed);
    }
}

static void queue_keys_name_their_queue(void) {
    vectors all = vectors_of("queue_keys");
    while (vectors_next(&all)) {
        char key[TEXT_MAX], wanted[TEXT_MAX], again[EMQ_KEY_MAX];
        const char *name = NULL;
        size_t name_length = 0, length = vectors_text(&all, "key", key), wanted_length = vectors_text(&all, "name", wanted);

        CHECK(&all, emq_queue_key_parse(key, length, &name, &name_length) == (wanted_length > 0));
        CHECK(&all, name_length == wanted_length && (name == NULL || memcmp(name, wanted, wanted_length) == 0));
        if (name == NULL) continue;
        CHECK(&all, emq_key_queue(again, name, name_length) == length && memcmp(again, key, length) == 0);
    }
}

static void keys_are_built_as_listed(void) {
    vectors all = vectors_of("keys");
    while (vectors_next(&all)) {
        char queue[TEXT_MAX], kind[TEXT_MAX], of[TEXT_MAX], suffix[TEXT_MAX], wanted[TEXT_MAX];
        char queue_key[EMQ_KEY_MAX], key[EMQ_KEY_MAX];
        size_t queue_key_length = emq_key_queue(queue_key, queue, vectors_text(&all, "queue", queue));
        size_t of_length = vectors_text(&all, "of", of), length = 0;
        vectors_text(&all, "kind", kind);
        vectors_text(&all, "suffix", suffix);

        if (strcmp(kind, "fixed") == 0) length = emq_key_fixed(key, queue_key, queue_key_length, of);
        if (strcmp(kind, "job") == 0) length = emq_key_job(key, queue_key, queue_key_length, of, suffix);
        if (strcmp(kind, "lane") == 0) length = emq_key_lane(key, queue_key, queue_key_length, of, of_length);
        if (strcmp(kind, "repeat") == 0) length = emq_key_repeat(key, queue_key, queue_key_length, of, of_length);

        CHECK(&all, length == vectors_text(&all, "key", wanted) && memcmp(key, wanted, length) == 0);
        CHECK(&all, emq_slot(key, length) == emq_slot(queue_key, queue_key_length));
    }
}

/* The sanitizer watches the ends of the buffers. */
static void the_longest_keys_fit(void) {
    char name[EMQ_NAME_MAX], queue_key[EMQ_QUEUE_KEY_MAX], *key = malloc(EMQ_KEY_MAX);
    memset(name, 'x', sizeof name);
    size_t length = emq_key_queue(queue_key, name, sizeof name);
    CHECK(&HERE, length == EMQ_QUEUE_KEY_MAX);
    CHECK(&HERE, emq_key_repeat(key, queue_key, length, name, EMQ_REPEAT_NAME_MAX) == EMQ_KEY_MAX);
    CHECK(&HERE, emq_key_lane(key, queue_key, length, name, EMQ_GROUP_MAX) < EMQ_KEY_MAX);
    CHECK(&HERE, emq_key_job(key, queue_key, length, "JOB00000000000", ":unsuccessful") < EMQ_KEY_MAX);
    free(key);
}

static void slots_are_as_listed(void) {
    vectors all = vectors_of("slots");
    while (vectors_next(&all)) {
        char key[TEXT_MAX], tag[TEXT_MAX];
        size_t length = vectors_text(&all, "key", key), tag_length = vectors_text(&all, "tag", tag);
        CHECK(&all, emq_slot(key, length) == vectors_number(&all, "slot"));
        CHECK(&all, emq_slot(key, length) == vectors_number(&all, "crc16") % EMQ_SLOTS);
        CHECK(&all, emq_slot(tag, tag_length) == emq_slot(key, length));
    }
    CHECK(&HERE, emq_slot("", 0) == 0);
}

int main(void) {
    names_are_judged_as_listed();
    every_byte_is_in_the_alphabet_or_refused();
    queue_keys_name_their_queue();
    keys_are_built_as_listed();
    the_longest_keys_fit();
    slots_are_as_listed();
    return failures > 0;
}
