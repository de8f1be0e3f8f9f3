/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace.h"

#include <string.h>

#define HEAD "emq:{"
#define HEAD_LENGTH (sizeof HEAD - 1)

static bool is_name_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' ||
           byte == '-';
}

static bool is_name(const char *text, size_t length, size_t longest) {
    if (length == 0 || length > longest) return false;
    for (size_t i = 0; i < length; i++) {
        if (!is_name_byte(text[i])) return false;
    }
    return true;
}

bool emq_queue_name_valid(const char *name, size_t length) {
    /* A queue called emq would own the hash tag of the fence. */
    bool reserved = length == sizeof EMQ_RESERVED_NAME - 1 && memcmp(name, EMQ_RESERVED_NAME, length) == 0;
    return !reserved && is_name(name, length, EMQ_NAME_MAX);
}

bool emq_queue_key_parse(const char *key, size_t length, const char **name, size_t *name_length) {
    if (length <= HEAD_LENGTH + 1 || memcmp(key, HEAD, HEAD_LENGTH) != 0 || key[length - 1] != '}') return false;
    const char *inner = key + HEAD_LENGTH;
    size_t inner_length = length - HEAD_LENGTH - 1;
    if (!emq_queue_name_valid(inner, inner_length)) return false;
    *name = inner;
    *name_length = inner_length;
    return true;
}

bool emq_group_valid(const char *group, size_t length) {
    return is_name(group, length, EMQ_GROUP_MAX);
}

bool emq_repeat_name_valid(const char *name, size_t length) {
    return is_name(name, length, EMQ_REPEAT_NAME_MAX);
}

/* CRC16/XMODEM, four bits at a step: entry i is the remainder of i times x^16 under the polynomial 0x1021. */
static uint16_t crc16(const char *text, size_t length) {
    static const uint16_t REMAINDERS[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50A5, 0x60C6, 0x70E7,
                                            0x8108, 0x9129, 0xA14A, 0xB16B, 0xC18C, 0xD1AD, 0xE1CE, 0xF1EF};
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = (unsigned char)text[i];
        crc = (crc << 4 & 0xFFFF) ^ REMAINDERS[(crc >> 12) ^ (byte >> 4)];
        crc = (crc << 4 & 0xFFFF) ^ REMAINDERS[(crc >> 12) ^ (byte & 15)];
    }
    return (uint16_t)crc;
}

uint16_t emq_slot(const char *key, size_t length) {
    const char *open = memchr(key, '{', length);
    if (open != NULL) {
        const char *tag = open + 1;
        const char *close = memchr(tag, '}', length - (size_t)(tag - key));
        if (close != NULL && close != tag) {
            key = tag;
            length = (size_t)(close - tag);
        }
    }
    return crc16(key, length) % EMQ_SLOTS;
}

/* Appends to a name under construction and answers its new end. */
static char *put(char *end, const char *text, size_t length) {
    memcpy(end, text, length);
    return end + length;
}

static char *put_text(char *end, const char *text) {
    return put(end, text, strlen(text));
}

size_t emq_key_queue(char *out, const char *name, size_t name_length) {
    char *end = put_text(out, HEAD);
    end = put(end, name, name_length);
    end = put_text(end, "}");
    return (size_t)(end - out);
}

size_t emq_key_fixed(char *out, const char *queue_key, size_t queue_key_length, const char *suffix) {
    char *end = put(out, queue_key, queue_key_length);
    end = put_text(end, ":");
    end = put_text(end, suffix);
    return (size_t)(end - out);
}

size_t emq_key_job(char *out, const char *queue_key, size_t queue_key_length, const char *id, const char *suffix) {
    char *end = put(out, queue_key, queue_key_length);
    end = put_text(end, ":job:");
    end = put(end, id, EMQ_ID_LENGTH);
    end = put_text(end, suffix);
    return (size_t)(end - out);
}

size_t emq_key_lane(char *out, const char *queue_key, size_t queue_key_length, const char *group, size_t group_length) {
    char *end = put(out, queue_key, queue_key_length);
    end = put_text(end, ":g:");
    end = put(end, group, group_length);
    end = put_text(end, ":pending");
    return (size_t)(end - out);
}

size_t emq_key_repeat(char *out, const char *queue_key, size_t queue_key_length, const char *name, size_t name_length) {
    char *end = put(out, queue_key, queue_key_length);
    end = put_text(end, ":repeat:");
    end = put(end, name, name_length);
    return (size_t)(end - out);
}
