/* onnx_fuzz.c: an ONNX model: what is read has an index or a message, can be looked at, and is written as it is. */
#include <string.h>

#include "onnx/onnx.h"
#include "tests/fuzz/fuzz.h"

static const char path[] = "/nowhere/fuzz.onnx";

static void check_message(amp_status status, const amp_error *err) {
    if (status != AMP_BAD_FILE && status != AMP_NOT_FOUND) fuzz_fail("%d: %s", (int)status, err->message);
    if (strncmp(err->message, path, strlen(path))) fuzz_fail("a message without its file: %s", err->message);
}

static amp_status add_up(void *user, const void *elements, size_t bytes, amp_error *err) {
    (void)err;
    for (size_t i = 0; i < bytes; i++) *(unsigned *)user += ((const unsigned char *)elements)[i];
    return AMP_OK;
}

static void look_at(const OnnxModel *model, const OnnxIndex *index) {
    unsigned sum = 0;
    amp_error err = {0};
    for (int32_t v = 0; v < index->value_count; v++) {
        const OnnxValue *value = &index->values[v];
        for (int32_t u = value->first_use; u < value->first_use + value->uses; u++)
            if (index->uses[u].node >= index->node_count) fuzz_fail("use %d of '%s'", u, value->name);
        if (onnx_find(index, value->graph, value->name) != v) fuzz_fail("'%s' is not found", value->name);
        if (value->initializer) onnx_data_each(model, value->initializer, add_up, &sum, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const amp_allocator allocator = fuzz_allocator(400 * size + (1 << 20));
    const OnnxWriteOptions options = {.force = true, .external = ONNX_EXTERNAL_NEVER};
    OnnxModel model = {0};
    OnnxIndex index;
    Arena arena;
    amp_error err = {0};
    arena_init(&arena, &allocator);
    if (setjmp(arena.out_of_memory)) fuzz_fail("no memory");
    amp_status status = onnx_read_memory(data, size, path, &arena, &model, &err);
    if (status) check_message(status, &err);
    else if ((status = onnx_index(&model, &arena, &index, &err))) check_message(status, &err);
    else look_at(&model, &index);
    if (!status && onnx_write(&model, "/dev/null", &options, &err)) fuzz_fail("not written: %s", err.message);
    onnx_close(&model);
    arena_free(&arena);
    fuzz_check_freed();
    return 0;
}
