/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abi_names VERSION SERVER: holds the "since" column of valkey_api.h against the names that a valkey-server binary of that
 * version (as 8.1) can answer for. Every name is in the binary as a string, so nothing needs to run. Prints what the server
 * lacks; fails where the column says otherwise. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): memmem */
#include "valkey_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size; /* with its final NUL, so that no longer name matches */
    const char *since;
} names[] = {
#define X(name, result, arguments, since, need) {"ValkeyModule_" #name, sizeof("ValkeyModule_" #name), #since},
    VALKEY_API(X)
#undef X
};

/* "V8_1" or "8.1" as 801 */
static int version_number(const char *text) {
    int major = 0, minor = 0;
    if (sscanf(text, "V%d_%d", &major, &minor) != 2 && sscanf(text, "%d.%d", &major, &minor) != 2) return -1;
    return major * 100 + minor;
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *bytes = NULL;
    if (!fseek(file, 0, SEEK_END)) {
        long end = ftell(file);
        rewind(file);
        bytes = end > 0 ? malloc((size_t)end) : NULL;
        if (bytes) *size = fread(bytes, 1, (size_t)end, file);
    }
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    size_t size = 0;
    int version = argc == 3 ? version_number(argv[1]) : -1;
    char *bytes = version > 0 ? read_file(argv[2], &size) : NULL;
    if (!bytes) {
        fprintf(stderr, "usage: abi_names VERSION SERVER\n");
        return 2;
    }

    int wrong = 0;
    printf("valkey-server %s, lacking:", argv[1]);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool found = memmem(bytes, size, names[i].name, names[i].size) != NULL;
        bool expected = version_number(names[i].since) <= version;
        if (!found) printf(" %s", names[i].name);
        if (found == expected) continue;
        printf(" (the table says %s)", names[i].since);
        wrong++;
    }
    printf("\n");
    free(bytes);
    return wrong != 0;
}
