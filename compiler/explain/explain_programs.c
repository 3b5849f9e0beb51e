/* explain_programs.c: the kernels of a step and the memory that they read and write, of each target, as JSON: what a
 * drawing of memory over a step is made from. */
#include "compiler/explain/explain.h"
#include "ir/words.h"

static void put_numbers(amp_json_writer *w, const char *key, const uint32_t *from_one, int count) {
    amp_json_begin_array(w, key);
    for (int i = 0; i < count; i++) amp_json_put_int(w, NULL, (int64_t)from_one[i] - 1);
    amp_json_end_array(w);
}

/* Of the ops of the graph that the kernel runs something of, each once. */
static void put_paths(amp_json_writer *w, const Func *f, const Kernel *k) {
    Table told = {0};
    amp_json_begin_array(w, "ops");
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (!o->path || table_get(&told, o->path)) continue;
        table_set(f->module->arena, &told, o->path, &told);
        amp_json_put_string(w, NULL, o->path);
    }
    amp_json_end_array(w);
}

/* But what is written only in a run that is looked at. */
static void put_written(amp_json_writer *w, const Func *f, const Kernel *k) {
    amp_json_begin_array(w, "writes");
    for (int i = 0; i < k->writes.len; i++)
        if (f->buffers.data[k->writes.data[i] - 1]->kind != BUFFER_LOOK)
            amp_json_put_int(w, NULL, (int64_t)k->writes.data[i] - 1);
    amp_json_end_array(w);
}

static void put_kernel(amp_json_writer *w, const Func *f, const Kernel *k) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "name", k->name);
    amp_json_put_string(w, "title", k->title ? k->title : "");
    amp_json_put_string(w, "kind", ir_kernel_kind_names[k->kind]);
    put_paths(w, f, k);
    put_numbers(w, "reads", k->reads.data, k->reads.len);
    put_written(w, f, k);
    explain_put_place(w, k->pos);
    amp_json_end_object(w);
}

/* Elements as they are stored; panels round rows and columns up. */
static void put_buffer(amp_json_writer *w, const Func *f, const Buffer *b, const char *value) {
    const Shape shape = ir_buffer_shape(f, b);
    const Bytes bytes = bytes_of_elements(&shape, amp_dtype_size(b->storage));
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "name", b->name);
    amp_json_put_string(w, "value", b->value.id ? value : b->name);
    amp_json_put_string(w, "kind", ir_buffer_kind_names[b->kind]);
    amp_json_put_string(w, "storage", amp_dtype_name(b->storage));
    bytes_put(w, f->module->arena, &bytes);
    amp_json_put_int(w, "first", b->first);
    amp_json_put_int(w, "last", b->last);
    if (b->place) amp_json_put_int(w, "in_place_of", (int64_t)b->place - 1);
    else amp_json_put_null(w, "in_place_of");
    amp_json_end_object(w);
}

static void put_program(amp_json_writer *w, const char *target, const Func *f) {
    amp_json_begin_object(w, NULL);
    amp_json_put_string(w, "target", target);
    amp_json_put_string(w, "function", f->name);
    amp_json_begin_array(w, "kernels");
    for (int i = 0; i < f->kernels.len; i++) put_kernel(w, f, f->kernels.data[i]);
    amp_json_end_array(w);
    amp_json_begin_array(w, "buffers");
    const char *const *names = ir_told_names(f);
    for (int i = 0; i < f->buffers.len; i++) put_buffer(w, f, f->buffers.data[i], names[f->buffers.data[i]->value.id]);
    amp_json_end_array(w);
    amp_json_end_object(w);
}

static void put_programs(amp_json_writer *w, const char *target, const Module *m) {
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    if (!m || m->stage < STAGE_PLAN) return;
    casts_step_funcs(m, funcs);
    for (int i = 0; funcs[i]; i++) put_program(w, target, funcs[i]);
}

void explain_put_programs(amp_json_writer *w, const ExplainSource *s) {
    amp_json_begin_array(w, "programs");
    put_programs(w, "cpu", s->m);
    put_programs(w, "cuda", s->cores.cuda);
    amp_json_end_array(w);
}
