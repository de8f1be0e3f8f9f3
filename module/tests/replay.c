/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a fuzz entry point over files: the corpus, or what a fuzzer found. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (file == NULL || fseek(file, 0, SEEK_END) != 0) return perror(argv[i]), 1;
        size_t size = (size_t)ftell(file);
        rewind(file);
        uint8_t *data = malloc(size > 0 ? size : 1); /* its own block, so that a read past the end is seen */
        if (data == NULL || fread(data, 1, size, file) != size) return perror(argv[i]), 1;
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    printf("%d inputs\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
