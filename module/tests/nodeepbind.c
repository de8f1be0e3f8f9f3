/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preloaded before AddressSanitizer: the server opens modules with RTLD_DEEPBIND, which the sanitizer refuses. And
 * an unloaded module could not be named in the report of leaks at the end, so none is ever unloaded. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): RTLD_NEXT */
#include <dlfcn.h>
#include <string.h>

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
__attribute__((visibility("default"))) void *dlopen(const char *path, int flags) {
    void *(*next)(const char *, int);
    void *symbol = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &symbol, sizeof(next));
    return next(path, (flags & ~RTLD_DEEPBIND) | RTLD_NODELETE);
}
