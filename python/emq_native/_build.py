"""Describes the extension `emq_native._native` to cffi; setup.py runs it, nothing imports it.

The extension is compiled from the module's own pure sources, so that the package and the server judge the same bytes
with the same code. It uses the stable ABI: one build serves every Python from 3.10 on. Paths start at the project
root.
"""

from cffi import FFI

builder = FFI()

builder.cdef(
    """
    typedef enum {
        EMQ_ID_OK, EMQ_ID_LENGTH_ERROR, EMQ_ID_NAMESPACE_ERROR, EMQ_ID_CHARSET_ERROR, EMQ_ID_RANGE_ERROR, ...
    } emq_id_status;
    typedef enum { EMQ_JOB_ID_OK, EMQ_JOB_ID_SPACE, EMQ_JOB_ID_SHAPE, ... } emq_job_id_status;

    emq_id_status emq_id_decode(const char *text, size_t length, char *space, uint64_t *value);
    emq_id_status emq_id_encode(const char *space, uint64_t value, char *text);
    emq_job_id_status emq_job_id_check(const char *text, size_t length);
    uint64_t emq_id_mint_start(int64_t wall_ms);
    uint32_t emq_id_hash32(uint64_t value);
    static emq_id_status mint(int64_t wall_ms, uint64_t *cell, uint32_t node, uint32_t jitter, const char *space,
                              char *texts, size_t count);

    bool emq_queue_name_valid(const char *name, size_t length);
    static size_t queue_key_name(const char *key, size_t length);
    bool emq_group_valid(const char *group, size_t length);
    bool emq_repeat_name_valid(const char *name, size_t length);
    uint16_t emq_slot(const char *key, size_t length);
    size_t emq_key_queue(char *out, const char *name, size_t name_length);
    size_t emq_key_fixed(char *out, const char *queue_key, size_t length, const char *suffix);
    size_t emq_key_job(char *out, const char *queue_key, size_t length, const char *id, const char *suffix);
    size_t emq_key_lane(char *out, const char *queue_key, size_t length, const char *group, size_t group_length);
    size_t emq_key_repeat(char *out, const char *queue_key, size_t length, const char *name, size_t name_length);

    #define EMQ_KEY_MAX ...
    #define EMQ_ID_EPOCH_MS ...
    #define EMQ_WIRE ...
    #define EMQ_API ...
    static char *const EMQ_IDENTITY;
    static char *const EMQ_IDENTITY_SCRIPTED;
    static char *const EMQ_FENCE_KEY;
    static char *const EMQ_MODULE_VERSION;
    static char *const EMQ_ERR_KIND_SPACE;
    static char *const EMQ_ERR_KIND_SHAPE;
    """
)

builder.set_source(
    "emq_native._native",
    """
    #include "id.h"
    #include "keyspace.h"

    /* Mints `count` ids into `texts`, one behind the other, in one call because the way into C is most of what a mint
     * costs, and by compare-and-swap because no lock is held here, not even the interpreter's: threads, signal handlers
     * and a fork meet a whole cell. */
    static emq_id_status mint(int64_t wall_ms, uint64_t *cell, uint32_t node, uint32_t jitter, const char *space,
                              char *texts, size_t count) {
        for (size_t i = 0; i < count; i++) {
            uint64_t seen = __atomic_load_n(cell, __ATOMIC_RELAXED);
            uint64_t next, value;
            emq_id_status status;
            do {
                next = seen;
                status = emq_id_mint_step(wall_ms, &next, node, jitter, &value);
                if (status != EMQ_ID_OK) return status;
            } while (!__atomic_compare_exchange_n(cell, &seen, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
            status = emq_id_encode(space, value, texts + 14 * i);
            if (status != EMQ_ID_OK) return status;
        }
        return EMQ_ID_OK;
    }

    /* The length of the name in a queue key, or 0. */
    static size_t queue_key_name(const char *key, size_t length) {
        const char *name;
        size_t name_length;
        return emq_queue_key_parse(key, length, &name, &name_length) ? name_length : 0;
    }
    """,
    sources=["module/src/id.c", "module/src/keyspace.c"],
    include_dirs=["module/src"],
    depends=["module/src/id.h", "module/src/keyspace.h", "module/src/wire.h"],
    extra_compile_args=["-std=c11"],
)
