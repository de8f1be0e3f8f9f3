/* SPDX-License-Identifier: BSD-3-Clause */
#include "about.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"
#include "lines.h"
#include "reply.h"
#include "stats.h"
#include "waiters.h"
#include "warnings.h"

/* EMQ.VERSION [queue] */
void cmd_version(emq_call *call) {
    int server = ValkeyModule_GetServerVersion();
    char server_text[32];
    snprintf(server_text, sizeof server_text, "%d.%d.%d", server >> 16 & 0xff, server >> 8 & 0xff, server & 0xff);

    emq_reply_map(call, 7);
    emq_reply_text(call, "module");
    emq_reply_text(call, EMQ_MODULE_NAME);
    emq_reply_text(call, "module_version");
    emq_reply_text(call, EMQ_MODULE_VERSION);
    emq_reply_text(call, "wire");
    emq_reply_integer(call, EMQ_WIRE);
    emq_reply_text(call, "identity");
    emq_reply_text(call, EMQ_IDENTITY);
    emq_reply_text(call, "node");
    emq_reply_string(call, emq_fence_value(call));
    emq_reply_text(call, "server");
    emq_reply_text(call, server_text);
    emq_reply_text(call, "api");
    emq_reply_integer(call, EMQ_API);
}

#define CAPABILITY_MAX 64

/* <name>/<revision> */
static int capability(const emq_command *command, char text[CAPABILITY_MAX]) {
    return snprintf(text, CAPABILITY_MAX, "%s/%d", command->name, command->revision);
}

/* An exact entry, or a name without a revision. */
static bool serves(ValkeyModuleString *wanted) {
    size_t length;
    const char *text = ValkeyModule_StringPtrLen(wanted, &length);
    const emq_command *command;
    for (size_t i = 0; (command = emq_commands_at(i)); i++) {
        char entry[CAPABILITY_MAX];
        size_t entry_length = (size_t)capability(command, entry);
        if (!memchr(text, '/', length)) entry_length = strlen(command->name);
        if (length == entry_length && memcmp(text, entry, length) == 0) return true;
    }
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const emq_command *const *)a)->name, (*(const emq_command *const *)b)->name);
}

/* TRA.CAPABILITIES [name ...] */
void cmd_capabilities(emq_call *call) {
    if (call->args.member_count > 0) {
        emq_reply_array(call, (size_t)call->args.member_count);
        for (int i = 0; i < call->args.member_count; i++) emq_reply_integer(call, serves(call->args.members[i]));
        return;
    }
    emq_vector all = {0};
    for (size_t i = 0; emq_commands_at(i); i++) emq_vector_add(&all, (void *)(uintptr_t)emq_commands_at(i));
    qsort(emq_vector_items(&all), all.count, sizeof(void *), by_name);
    emq_reply_array(call, all.count);
    for (uint32_t i = 0; i < all.count; i++) {
        char entry[CAPABILITY_MAX];
        capability(emq_vector_at(&all, i), entry);
        emq_reply_text(call, entry);
    }
    emq_vector_free(&all);
}

void emq_about_info(ValkeyModuleInfoCtx *info, int for_crash_report) {
    (void)for_crash_report; /* nothing here allocates or opens a key */
    ValkeyModule_InfoAddSection(info, "");
    ValkeyModule_InfoAddFieldCString(info, "version", EMQ_MODULE_VERSION);
    ValkeyModule_InfoAddFieldLongLong(info, "wire", EMQ_WIRE);
    ValkeyModule_InfoAddFieldLongLong(info, "api", EMQ_API);
    ValkeyModule_InfoAddFieldCString(info, "identity", EMQ_IDENTITY);
    ValkeyModule_InfoAddFieldCString(info, "fence", emq_fence_state());
    ValkeyModule_InfoAddFieldULongLong(info, "calls", emq_stats_calls());
    ValkeyModule_InfoAddFieldULongLong(info, "waiters", emq_lines.waiters);
    ValkeyModule_InfoAddFieldLongLong(info, "max_waiters", emq_waiters_most());
    ValkeyModule_InfoAddFieldULongLong(info, "wakes", emq_lines.wakes);
    ValkeyModule_InfoAddFieldULongLong(info, "batons", emq_lines.batons);
    emq_stats_info(info);
    emq_warnings_info(info);
}
