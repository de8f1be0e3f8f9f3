/* SPDX-License-Identifier: BSD-3-Clause */
#include "fence.h"

#include <string.h>

#define IDENTITY_LENGTH (sizeof EMQ_IDENTITY - 1)

typedef enum finding {
    UNKNOWN,
    OWN,
    MISSING,
    FOREIGN,
} finding;

static bool cluster;
static finding last = UNKNOWN;

void emq_fence_load(ValkeyModuleCtx *ctx) {
    cluster = ValkeyModule_GetContextFlags(ctx) & VALKEYMODULE_CTX_FLAGS_CLUSTER;
}

const char *emq_fence_state(void) {
    static const char *const words[] = {[UNKNOWN] = "unknown", [OWN] = "ok", [MISSING] = "missing", [FOREIGN] = "foreign"};
    return words[last];
}

bool emq_fence_endangers(void) {
    return last == MISSING || last == FOREIGN;
}

/* The fence key, open for reading only; its name is kept. NULL when it is absent. */
static ValkeyModuleKey *open_fence(emq_call *call, ValkeyModuleString **name) {
    *name = emq_words[EMQ_W_FENCE];
    if (cluster) {
        char text[EMQ_KEY_MAX];
        size_t length = emq_key_fixed(text, call->queue, call->queue_length, EMQ_FENCE_SUFFIX);
        *name = emq_store_keep(call, ValkeyModule_CreateString(NULL, text, length));
    }
    return ValkeyModule_OpenKey(call->ctx, *name, VALKEYMODULE_READ);
}

/* Refuses with the fence's name and `found`, and, of a foreign value, its first bytes made printable. */
static bool refuse(emq_call *call, ValkeyModuleString *name, const char *found, const char *value, size_t length) {
    char text[sizeof EMQ_ERR_FENCE + EMQ_KEY_MAX + sizeof EMQ_ERR_FENCE_FOUND_NO_STRING + EMQ_FENCE_SHOWN_MAX + 1], *end = text;
    size_t name_length;
    const char *name_text = ValkeyModule_StringPtrLen(name, &name_length);
    end = memcpy(end, EMQ_ERR_FENCE, sizeof EMQ_ERR_FENCE - 1) + sizeof EMQ_ERR_FENCE - 1;
    end = memcpy(end, name_text, name_length) + name_length;
    end = memcpy(end, found, strlen(found)) + strlen(found);
    for (size_t i = 0; i < length && i < EMQ_FENCE_SHOWN_MAX; i++) {
        char shown = value[i];
        if (shown < 0x20 || shown > 0x7E) shown = '?';
        *end++ = shown;
    }
    *end = '\0';
    return emq_refuse(call, text);
}

/* The value of an open fence, "" of one that is no string. Remembers what it is. */
static const char *look(ValkeyModuleKey *key, size_t *length) {
    int kind = ValkeyModule_KeyType(key);
    const char *value = "";
    *length = 0;
    if (kind == VALKEYMODULE_KEYTYPE_STRING) value = ValkeyModule_StringDMA(key, length, VALKEYMODULE_READ);
    bool own = *length == IDENTITY_LENGTH && memcmp(value, EMQ_IDENTITY, IDENTITY_LENGTH) == 0;
    last = own ? OWN : kind == VALKEYMODULE_KEYTYPE_EMPTY ? MISSING : FOREIGN;
    return value;
}

bool emq_fence_check(emq_call *call) {
    ValkeyModuleString *name;
    ValkeyModuleKey *key = open_fence(call, &name);
    size_t length;
    const char *value = look(key, &length);
    bool own = last == OWN;

    if (last == MISSING) {
        refuse(call, name, EMQ_ERR_FENCE_FOUND_NOTHING, "", 0);
    } else if (!own && ValkeyModule_KeyType(key) != VALKEYMODULE_KEYTYPE_STRING) {
        refuse(call, name, EMQ_ERR_FENCE_FOUND_NO_STRING, "", 0);
    } else if (!own) {
        refuse(call, name, length ? EMQ_ERR_FENCE_FOUND : EMQ_ERR_FENCE_FOUND_EMPTY, value, length);
    }
    ValkeyModule_CloseKey(key);
    return own;
}

ValkeyModuleString *emq_fence_value(emq_call *call) {
    if (cluster && !call->queue) return NULL;
    ValkeyModuleString *name, *value = NULL;
    ValkeyModuleKey *key = open_fence(call, &name);
    size_t length;
    const char *text = look(key, &length);
    if (ValkeyModule_KeyType(key) == VALKEYMODULE_KEYTYPE_STRING) {
        value = emq_store_keep(call, ValkeyModule_CreateString(NULL, text, length));
    }
    ValkeyModule_CloseKey(key);
    return value;
}
