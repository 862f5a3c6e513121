/*
 * Runs a fuzz target over its corpus, without libFuzzer: every regular file below the folders given
 * as arguments, once, in the order of the names. So each test run, with any compiler, proves that
 * inputs found earlier stay harmless. An empty or missing folder is a failure: it would prove
 * nothing.
 */
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Targets that need setting up define it, as for libFuzzer. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* The buffer has exactly the file's size, so that AddressSanitizer sees a read past the end. */
static int replay_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        return -1;
    }
    uint8_t *data = mem_alloc(size);
    int rc = -1;
    if (data != NULL && fread(data, 1, size, f) == size) {
        /* Named before the run: after a crash the last line tells the input. */
        printf("replay %s (%zu bytes)\n", path, size);
        (void)fflush(stdout);
        (void)LLVMFuzzerTestOneInput(data, size);
        rc = 0;
    } else {
        (void)fprintf(stderr, "%s: cannot read %zu bytes\n", path, size);
    }
    mem_free(data);
    (void)fclose(f);
    return rc;
}

static int replay_tree(char *root, size_t *count)
{
    char *roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    int rc = 0;

    if (tree == NULL) {
        perror(root);
        return -1;
    }
    for (FTSENT *e = fts_read(tree); e != NULL; e = fts_read(tree)) {
        if (e->fts_info == FTS_F) {
            if (replay_file(e->fts_path, (size_t)e->fts_statp->st_size) != 0)
                rc = -1;
            else
                ++*count;
        } else if (e->fts_info == FTS_NS || e->fts_info == FTS_DNR || e->fts_info == FTS_ERR) {
            (void)fprintf(stderr, "%s: %s\n", e->fts_path, "cannot be read");
            rc = -1;
        }
    }
    (void)fts_close(tree);
    return rc;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER...\n", argv[0]);
        return 2;
    }
    if (LLVMFuzzerInitialize != NULL)
        (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        size_t count = 0;
        if (replay_tree(argv[i], &count) != 0)
            rc = 1;
        printf("%s: %zu inputs\n", argv[i], count);
        if (count == 0) {
            (void)fprintf(stderr, "%s: no inputs\n", argv[i]);
            rc = 1;
        }
    }
    return rc;
}
