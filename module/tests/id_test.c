/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Branded ids against the vectors, and what vectors cannot hold: ends of ranges, NUL bytes, a mint over a bad clock. */
#include "id.h"
#include "vectors.h"

static const vectors HERE = {.line = "no vector\n"};

static void numbers_decode_and_encode_as_listed(void) {
    vectors all = vectors_of("numbers");
    char previous[EMQ_ID_LENGTH] = "";
    while (vectors_next(&all)) {
        char digits[TEXT_MAX], id[EMQ_ID_LENGTH] = "USR", space[3], again[EMQ_ID_LENGTH];
        uint64_t wanted = vectors_number(&all, "value"), value = 0;
        CHECK(&all, vectors_text(&all, "digits", digits) == EMQ_ID_DIGITS);
        memcpy(id + EMQ_ID_SPACE_LENGTH, digits, EMQ_ID_DIGITS);

        CHECK(&all, emq_id_decode(id, sizeof id, space, &value) == EMQ_ID_OK);
        CHECK(&all, value == wanted && memcmp(space, "USR", 3) == 0);
        CHECK(&all, emq_id_encode("USR", wanted, again) == EMQ_ID_OK && memcmp(again, id, sizeof again) == 0);
        CHECK(&all, memcmp(previous, again, sizeof again) < 0); /* the vectors are listed in numeric order */
        memcpy(previous, again, sizeof again);

        CHECK(&all, (int64_t)(value >> 22) + EMQ_ID_EPOCH_MS == (int64_t)vectors_number(&all, "ms"));
        CHECK(&all, (value >> 12 & EMQ_ID_NODE_MAX) == vectors_number(&all, "node"));
        CHECK(&all, (value & EMQ_ID_SEQUENCE_MAX) == vectors_number(&all, "sequence"));
        CHECK(&all, emq_id_hash32(value) == vectors_number(&all, "hash32"));
    }
}

static void every_text_gets_its_verdict(void) {
    static const char *const STATUS[] = {"ok", "length", "namespace", "charset", "range"};
    static const char *const REFUSAL[] = {"", EMQ_ERR_KIND_SPACE, EMQ_ERR_KIND_SHAPE};
    vectors all = vectors_of("ids");
    while (vectors_next(&all)) {
        char text[TEXT_MAX], wanted[TEXT_MAX], space[4] = "";
        uint64_t value = 0;
        size_t length = vectors_text(&all, "text", text);

        emq_id_status status = emq_id_decode(text, length, space, &value);
        vectors_text(&all, "status", wanted);
        CHECK(&all, strcmp(STATUS[status], wanted) == 0);
        if (status == EMQ_ID_OK) {
            vectors_text(&all, "namespace", wanted);
            CHECK(&all, strcmp(space, wanted) == 0 && value == vectors_number(&all, "value"));
        } else {
            CHECK(&all, space[0] == '\0' && value == 0);
        }
        vectors_text(&all, "refusal", wanted);
        CHECK(&all, strcmp(REFUSAL[emq_job_id_check(text, length)], wanted) == 0);
    }
}

static void no_byte_outside_the_alphabet_is_a_digit(void) {
    for (int byte = 0; byte < 256; byte++) {
        bool letter = byte >= 'A' && byte <= 'Z';
        bool digit = letter || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z');
        char space[3], id[] = "JOB00000000000";
        uint64_t value;
        id[13] = (char)byte;
        CHECK(&HERE, (emq_id_decode(id, 14, space, &value) == EMQ_ID_OK) == digit);
        CHECK(&HERE, (emq_job_id_check(id, 14) == EMQ_JOB_ID_OK) == digit);
        char brand[] = "AAA00000000000";
        brand[1] = (char)byte;
        CHECK(&HERE, (emq_id_decode(brand, 14, space, &value) == EMQ_ID_OK) == letter);
    }
}

static void encode_refuses_and_then_writes_nothing(void) {
    char text[EMQ_ID_LENGTH] = "untouched text";
    CHECK(&HERE, emq_id_encode("JOB", (uint64_t)INT64_MAX + 1, text) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_encode("JOB", UINT64_MAX, text) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_encode("job", 0, text) == EMQ_ID_NAMESPACE_ERROR);
    CHECK(&HERE, emq_id_encode("J[B", 0, text) == EMQ_ID_NAMESPACE_ERROR);
    CHECK(&HERE, memcmp(text, "untouched text", sizeof text) == 0);
}

static void a_mint_gives_the_listed_ids(void) {
    vectors all = vectors_of("mint");
    while (vectors_next(&all)) {
        int64_t clock = (int64_t)vectors_number(&all, "clock");
        uint64_t cell = emq_id_mint_start(clock), value = 0;
        char text[EMQ_ID_LENGTH], wanted[TEXT_MAX];
        for (uint64_t nth = vectors_number(&all, "nth"); nth > 0; nth--) {
            CHECK(&all, emq_id_mint_step(clock, &cell, (uint32_t)vectors_number(&all, "node"), 0, &value) == EMQ_ID_OK);
        }
        vectors_text(&all, "id", wanted);
        CHECK(&all, emq_id_encode("JOB", value, text) == EMQ_ID_OK && memcmp(text, wanted, sizeof text) == 0);
    }
}

static void a_mint_never_goes_back_whatever_the_clock_does(void) {
    static const int64_t CLOCKS[] = {1750000000000, 1750000000001, 1749999990000, 0, -1, INT64_MIN, 1750000000001, 1750000000002};
    uint64_t cell = emq_id_mint_start(CLOCKS[0]), last = 0, value = 0;
    for (size_t i = 0; i < sizeof CLOCKS / sizeof CLOCKS[0]; i++) {
        for (int n = 0; n < 5000; n++) {
            CHECK(&HERE, emq_id_mint_step(CLOCKS[i], &cell, 1023, 1023, &value) == EMQ_ID_OK);
            CHECK(&HERE, value > last);
            last = value;
        }
    }
}

static void a_mint_refuses_what_no_id_can_hold_and_keeps_its_cell(void) {
    const int64_t last_ms = EMQ_ID_EPOCH_MS + (INT64_C(1) << 41) - 1;
    uint64_t value = 0, cell = emq_id_mint_start(last_ms);
    for (int n = 1; n < 4096; n++) CHECK(&HERE, emq_id_mint_step(last_ms, &cell, 1023, 0, &value) == EMQ_ID_OK);
    CHECK(&HERE, value == INT64_MAX);

    uint64_t before = cell;
    CHECK(&HERE, emq_id_mint_step(last_ms, &cell, 0, 0, &value) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_mint_step(last_ms + 1, &cell, 0, 0, &value) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, cell == before && value == INT64_MAX);

    cell = emq_id_mint_start(INT64_MAX); /* a clock beyond the end, set right later */
    CHECK(&HERE, emq_id_mint_step(INT64_MAX, &cell, 0, 0, &value) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_mint_step(1750000000000, &cell, 1024, 0, &value) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_mint_step(1750000000000, &cell, 0, 1024, &value) == EMQ_ID_RANGE_ERROR);
    CHECK(&HERE, emq_id_mint_step(1750000000000, &cell, 7, 0, &value) == EMQ_ID_OK && value == UINT64_C(192656126771228672));
}

int main(void) {
    numbers_decode_and_encode_as_listed();
    every_text_gets_its_verdict();
    no_byte_outside_the_alphabet_is_a_digit();
    encode_refuses_and_then_writes_nothing();
    a_mint_gives_the_listed_ids();
    a_mint_never_goes_back_whatever_the_clock_does();
    a_mint_refuses_what_no_id_can_hold_and_keeps_its_cell();
    return failures > 0;
}
